"""Nested views as texts in a catalog: which relations a definition makes, and the plan of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from everview.errors import Span, UserError
from everview.lang.nested import from_sql
from everview.lang.nested.check import Checker, row_type
from everview.lang.nested.dictionaries import Dictionaries
from everview.lang.nested.flat_queries import flat_query
from everview.lang.nested.from_sql import SqlQuery, read_query
from everview.lang.nested.lower import Lowering
from everview.lang.nested.normal_form import normal_form
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.partial import Partial, kept_apart
from everview.lang.nested.rebuild import Rebuilding
from everview.lang.nested.shred import Shredded, shred
from everview.lang.nested.syntax import Expr, relations
from everview.lang.nested.text import print_expr, quoted
from everview.lang.nested.types import Bag, Type, shown
from everview.lang.sql.lower.collections import Mode
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.nested_items import nested_relation
from everview.plan.nodes import Plan, Source

_MODES: tuple[Mode, ...] = ("auto", "inline")
Sources = Mapping[str, Source]
"""The relations that a query may read, by lower-case name."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One relation of a nested view: the view, the path of the relation in it, and the query."""

    view: str
    path: str
    query: Expr | SqlQuery
    mode: Mode = "shredded"

    @property
    def expr(self) -> Expr:
        """The query in the calculus; one in SQL has none."""
        if isinstance(self.query, SqlQuery):
            raise UserError(
                "N013",
                f"{self.view} is a nested view in SQL, which a comprehension cannot read",
                remedy="read its tables, or write it as a comprehension too",
            )
        return self.query

    @property
    def relation(self) -> str:
        """The name of the relation."""
        return f"{self.view}.{self.path}" if self.path else self.view

    @property
    def text(self) -> str:
        """The text that a catalog holds of it."""
        place = f"/{self.path}" if self.path else ""
        query = self.query
        marked = "" if self.mode == "shredded" else f"[{self.mode}] "
        text = query.marked if isinstance(query, SqlQuery) else marked + print_expr(query)
        return f"{quoted(self.view)}{place} := {text}"


@lru_cache(maxsize=1024)
def read_definition(text: str) -> Definition:
    """The definition that a text of a catalog holds."""
    head, sign, body = text.partition(" := ")
    # The name of a view may have the sign in it: then it stands in backquotes.
    while head.count("`") % 2 and sign:
        more, sign, body = body.partition(" := ")
        head = f"{head} := {more}"
    name, _, path = head.rpartition("/") if not head.endswith("`") else ("", "", head)
    if not name:
        name, path = path, ""
    if not sign or not name:
        raise UserError(
            "N001",
            "a nested view is written as name := query",
            span=Span(text, 0, len(text)),
            remedy="correct the text",
        )
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    if (in_sql := read_query(body)) is not None:
        return Definition(plain, path, in_sql)
    for mode in _MODES:
        if body.startswith(f"[{mode}] "):
            return Definition(plain, path, parse_expr(body[len(mode) + 3 :]), mode)
    return Definition(plain, path, parse_expr(body))


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a definition reads; a dictionary reads the relations above it too."""
    found = read_definition(text)
    above: list[str] = []
    if found.path:
        steps = found.path.split(".")
        above = [".".join((found.view, *steps[:count])) for count in range(len(steps))]
    query = found.query
    return (*(query.reads if isinstance(query, SqlQuery) else relations(query)), *above)


def definitions(
    view: str, expr: Expr, known: Sources, mode: Mode = "auto"
) -> tuple[Definition, ...]:
    """The relations of a view, in the order in which they are declared."""
    if parse_expr(print_expr(expr)) != expr:
        raise UserError(
            "N007",
            "a variable has the name of a table that is read inside it",
            remedy="use another name for the variable",
        )
    apart = kept_apart(shredded(expr, known), mode)
    return tuple(Definition(view, path, expr, mode) for path in apart)


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
        return from_sql.lower_relation(found.query, found.view, found.path, known, analyze)
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
        nested = nested_relation(known, found.view)
        assert nested is not None
        return nested.fields_with()
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
        owns: list[int | None] = [o.number for o in each.occurrences]
        queries = [print_expr(flat_query(each, parts, own)) for own in owns or [None]]
        texts[name] = "\n".join(queries)
    return texts


def _stored(view: str, parts: Mapping[str, Shredded], known: Sources) -> dict[str, Source]:
    names = {path: f"{view}.{path}" if path else view for path in parts}
    return {path: known[name.lower()] for path, name in names.items() if name.lower() in known}
