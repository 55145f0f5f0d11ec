"""Declares a view in SQL that has collections kept apart: its flat relation, and dictionaries."""

from __future__ import annotations

from dataclasses import replace

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import UNCOMMENTED, ViewDefinition
from everview.errors import UserError
from everview.lang.front_end import NESTED
from everview.lang.nested.definition import Definition
from everview.lang.nested.from_sql import SqlQuery, has_collections, paths_of
from everview.lang.sql.parse.statements import STRICT, CreateView


def nested_view(view: ViewDefinition, statement: CreateView, catalog: Catalog) -> Catalog | None:
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
