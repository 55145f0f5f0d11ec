"""Nested views as texts in a catalog: which relations a definition makes, and the plan of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from everview.errors import UserError
from everview.lang.nested.cost import LEAST, Cost, Many
from everview.lang.nested.definition import Definition, read_definition, reads_back
from everview.lang.nested.dictionaries import Dictionaries
from everview.lang.nested.estimate import Estimate, estimates
from everview.lang.nested.flat_queries import flat_text
from everview.lang.nested.from_sql import SqlQuery, lower_relation, rebuilt_relation
from everview.lang.nested.known import Known, shredded
from everview.lang.nested.lower import Lowering
from everview.lang.nested.partial import Partial, stored_relations
from everview.lang.nested.rebuild import Rebuilding
from everview.lang.nested.shred import Shredded, relation_of
from everview.lang.nested.syntax import Expr, relations
from everview.lang.sql.lower.context import Analyze
from everview.plan.nodes import Plan, Source


def definitions(view: str, expr: Expr, known: Known, mode: str) -> tuple[Definition, ...]:
    """The relations of a view, in the order in which they are declared."""
    if not reads_back(expr):
        raise UserError(
            "N007",
            "a variable has the name of a table that is read inside it",
            remedy="use another name for the variable",
        )
    whole = Definition(view, "", expr, mode)
    apart = stored_relations(shredded(whole, known), mode).items()
    return tuple(replace(whole, path=path) for path, each in apart if each.shared is None)


def lower_view(text: str, known: Known, analyze: Analyze) -> Plan:
    """The plan of one relation of a nested view."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return lower_relation(found.query, found.view, found.path, known.sources, analyze)
    read = relations(found.expr)
    inside = known.nested(read).values()
    names = (*read, *(each.relation for stored in inside for each in stored.walk()))
    sources = {n: known.sources[n.lower()] for n in names if n.lower() in known.sources}
    parts = shredded(found, known)
    apart = stored_relations(parts, found.mode)
    if found.path not in apart:
        raise UserError(
            "N008",
            f"{found.view} has no collection {found.path}",
            remedy=f"there are: {', '.join(filter(None, apart)) or 'none'}",
        )
    stored = _stored(found.view, parts, known)
    dictionaries = Dictionaries(parts, Lowering(sources, analyze), stored)
    return Partial(dictionaries, apart).plan(found.path)


def rebuilt(text: str, known: Known) -> Plan:
    """The plan that reads a nested view in its nested form."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return rebuilt_relation(found.view, known.sources)
    parts = stored_relations(shredded(found, known), found.mode)
    return Rebuilding(parts, _stored(found.view, parts, known)).plan()


def flat_texts(text: str, known: Known) -> dict[str, str]:
    """The flat query of each relation of a nested view, by its name: of a dictionary, per label."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return {}
    parts = shredded(found, known)
    texts: dict[str, str] = {}
    for each in stored_relations(parts, found.mode).values():
        if each.shared is None:
            texts[relation_of(found.view, each)] = flat_text(each, parts)
    return texts


def shared_by(text: str, known: Known) -> dict[str, str]:
    """The dictionaries of other views that a view has labels of, by their paths in it."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return {}
    parts = stored_relations(shredded(found, known), found.mode)
    return {
        path: relation_of(found.view, each)
        for path, each in parts.items()
        if each.shared is not None
    }


def estimated(text: str, known: Known, rows: Mapping[str, int]) -> dict[str, Estimate]:
    """What each relation of a nested view costs, by its name, where relations have so many rows.

    A query in SQL is not in the calculus, and has no estimate.
    """
    found = read_definition(text)
    if isinstance(found.query, SqlQuery):
        return {}
    sizes: dict[str, Cost] = {}
    for name in relations(found.expr):
        sizes[name] = Many(max(rows.get(name, 0), 1), LEAST)
    for stored in known.nested(relations(found.expr)).values():
        labels = max(rows.get(stored.relation, 0), 1)
        for each in stored.walk():
            under = ceil(rows.get(each.relation, 0) / labels) if each.label else labels
            sizes[each.relation] = Many(max(under, 1), LEAST)
    parts = shredded(found, known)
    found_costs = estimates(parts, sizes)
    return {relation_of(found.view, parts[path]): each for path, each in found_costs.items()}


def _stored(view: str, parts: Mapping[str, Shredded], known: Known) -> dict[str, Source]:
    names = {path: relation_of(view, part).lower() for path, part in parts.items()}
    return {path: known.sources[name] for path, name in names.items() if name in known.sources}
