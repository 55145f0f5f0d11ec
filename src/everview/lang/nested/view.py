"""Nested views as texts in a catalog: which relations a definition makes, and the plan of each."""

from __future__ import annotations

from collections.abc import Mapping

from everview.errors import UserError
from everview.lang.nested.check import Checker, row_type
from everview.lang.nested.definition import Definition, read_definition, reads_back
from everview.lang.nested.dictionaries import Dictionaries
from everview.lang.nested.flat_queries import flat_text
from everview.lang.nested.from_sql import SqlQuery, lower_relation, rebuilt_relation
from everview.lang.nested.lower import Lowering
from everview.lang.nested.normal_form import normal_form
from everview.lang.nested.partial import Partial, kept_apart
from everview.lang.nested.rebuild import Rebuilding
from everview.lang.nested.shred import Shredded, shred
from everview.lang.nested.syntax import Expr, relations
from everview.lang.nested.types import Bag, Type, shown
from everview.lang.sql.lower.context import Analyze
from everview.plan.nodes import Plan, Source

Sources = Mapping[str, Source]
"""The relations that a query may read, by lower-case name."""


def definitions(
    view: str, expr: Expr, known: Sources, mode: str = "auto"
) -> tuple[Definition, ...]:
    """The relations of a view, in the order in which they are declared."""
    if not reads_back(expr):
        raise UserError(
            "N007",
            "a variable has the name of a table that is read inside it",
            remedy="use another name for the variable",
        )
    apart = kept_apart(shredded(expr, known), mode)
    return tuple(Definition(view, path, expr, mode) for path in apart)


def query_of(text: str) -> Expr:
    """The query in the calculus of a nested view."""
    return read_definition(text).expr


def type_of_query(expr: Expr, known: Sources) -> Type:
    """The type of a query over the relations there are."""
    read = {name: known[name.lower()] for name in relations(expr) if name.lower() in known}
    types = {name: row_type(source.schema) for name, source in read.items()}
    return Checker(types).type(expr)


def shredded(expr: Expr, known: Sources) -> dict[str, Shredded]:
    """The relations of a query by path, each after the one above it."""
    type_ = type_of_query(expr, known)
    if not isinstance(type_, Bag):
        raise UserError(
            "N003",
            f"a view is a collection, and this is {shown(type_)}",
            remedy="give back a comprehension",
        )
    schemas = {name: known[name.lower()].schema for name in relations(expr)}
    return {each.path: each for each in shred(normal_form(expr, schemas), type_.element)}


def lower_view(text: str, known: Sources, analyze: Analyze) -> Plan:
    """The plan of one relation of a nested view."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return lower_relation(found.query, found.view, found.path, known, analyze)
    sources = {name: known[name.lower()] for name in relations(found.expr) if name.lower() in known}
    parts = shredded(found.expr, known)
    apart = kept_apart(parts, found.mode)
    if found.path not in apart:
        raise UserError(
            "N008",
            f"{found.view} has no collection {found.path}",
            remedy=f"there are: {', '.join(filter(None, apart)) or 'none'}",
        )
    stored = _stored(found.view, parts, known)
    dictionaries = Dictionaries(parts, Lowering(sources, analyze), stored)
    return Partial(dictionaries, apart).plan(found.path)


def rebuilt(text: str, known: Sources) -> Plan:
    """The plan that reads a nested view in its nested form."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return rebuilt_relation(found.view, known)
    parts = kept_apart(shredded(found.expr, known), found.mode)
    return Rebuilding(parts, _stored(found.view, parts, known)).plan()


def flat_texts(text: str, known: Sources) -> dict[str, str]:
    """The flat query of each relation of a nested view, by its name: of a dictionary, per label."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return {}
    parts = shredded(found.expr, known)
    texts: dict[str, str] = {}
    for path, each in kept_apart(parts, found.mode).items():
        name = Definition(found.view, path, found.expr).relation
        texts[name] = flat_text(each, parts)
    return texts


def _stored(view: str, parts: Mapping[str, Shredded], known: Sources) -> dict[str, Source]:
    names = {path: f"{view}.{path}" if path else view for path in parts}
    return {path: known[name.lower()] for path, name in names.items() if name.lower() in known}
