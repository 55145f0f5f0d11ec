"""COMMENT ON: what a user says of tables, views and columns."""

from __future__ import annotations

from dataclasses import replace

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import Comments
from everview.errors import UserError
from everview.expr.types import names
from everview.lang.sql.parse.statements import Comment


def with_comment(statement: Comment, catalog: Catalog) -> Catalog:
    """The catalog with another comment on a table, a view, or a column of one."""
    name = catalog.relation(statement.relation)
    given = catalog.tables.get(name) or catalog.views[name]
    kind = "table" if name in catalog.tables else "view"
    if statement.kind not in ("column", kind):
        problem, remedy = f"{name} is a {kind}", f"write COMMENT ON {kind.upper()}"
        raise UserError("C005", problem, span=statement.span, remedy=remedy)
    said = Comments(statement.text, given.comments.columns)
    if statement.column is not None:
        every = {each.lower(): each for each in names(catalog.schema(name))}
        if statement.column.lower() not in every:
            problem = f"{name} has no column {statement.column}"
            remedy = f"there are: {', '.join(every.values())}"
            raise UserError("Q006", problem, span=statement.span, remedy=remedy)
        said = given.comments.with_column(every[statement.column.lower()], statement.text)
    tables, views = dict(catalog.tables), dict(catalog.views)
    if name in tables:
        tables[name] = replace(tables[name], comments=said)
    else:
        views[name] = replace(views[name], comments=said)
    return catalog.with_definitions(tables, views)
