"""CREATE VIEW: one relation, or a flat one and dictionaries where collections are kept apart."""

from __future__ import annotations

from dataclasses import replace

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import (
    UNCOMMENTED,
    Comments,
    ViewDefinition,
    declared_policy,
)
from everview.database.declare_constraints import must_be_no_constraint
from everview.errors import UserError
from everview.lang.front_end import NESTED
from everview.lang.nested.definition import Definition
from everview.lang.nested.from_sql import SqlQuery, has_collections, paths_of
from everview.lang.sql.parse.statements import STRICT, CreateView


def create_view(statement: CreateView, catalog: Catalog) -> Catalog:
    """The catalog with a view, new or replaced."""
    view = ViewDefinition(
        statement.name,
        statement.query,
        statement.columns,
        statement.refresh,
        calls=statement.calls,
        comments=Comments(statement.comment),
        decision=declared_policy(statement.policy),
    )
    grown = _nested_view(view, statement, catalog)
    if grown is not None:
        return grown
    found = catalog.find(view.name)
    if not statement.replaces or found is None:
        return catalog.with_view(view)
    if found in catalog.tables:
        remedy = "choose another name, or DROP TABLE first"
        raise UserError("C005", f"{found} is a table", remedy=remedy)
    must_be_no_constraint(found, catalog)
    return catalog.replacing(view)


def _nested_view(view: ViewDefinition, statement: CreateView, catalog: Catalog) -> Catalog | None:
    """The catalog with all relations of a view; None where its collections are plain arrays."""
    mode = statement.nested
    if mode == "inline" or (mode == "auto" and not has_collections(view.query)):
        return None
    query = SqlQuery(view.query, "shredded" if mode == "shredded" else "auto")
    known = {each.lower(): catalog.source(each) for each in (*catalog.tables, *catalog.views)}
    paths = paths_of(query, known, catalog.analyze)
    if len(paths) == 1 and mode == "auto":
        return None
    if len(paths) == 1:
        raise UserError(
            "N012",
            f"{view.name} has no collection that could be shredded",
            remedy="leave WITH (nested = 'shredded') out",
        )
    _must_be_new(view, statement, catalog)
    for path in paths:
        each = Definition(view.name, path, query)
        said = UNCOMMENTED if path else view.comments
        made = replace(view, name=each.relation, query=each.text, language=NESTED, comments=said)
        catalog = catalog.with_view(replace(made, refresh=STRICT))
    return catalog


def _must_be_new(view: ViewDefinition, statement: CreateView, catalog: Catalog) -> None:
    found = catalog.find(view.name)
    if found is not None and statement.replaces:
        raise UserError(
            "C009",
            f"{found} would have collections kept apart, and cannot replace another view",
            remedy=f"DROP VIEW {found} first, or declare it WITH (nested = 'inline')",
        )
    if view.columns:
        raise UserError(
            "N014",
            f"the columns of {view.name}, which has collections, are named after its name",
            remedy="name them in the SELECT list with AS",
        )
