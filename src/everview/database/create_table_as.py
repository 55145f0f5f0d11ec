"""CREATE TABLE AS: a table with the columns and rows of a query."""

from __future__ import annotations

from dataclasses import replace

from everview.database.backfill import write_change
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.error_context import report_damage
from everview.database.queries import describe, select
from everview.database.time_travel import bind_query
from everview.errors import UserError
from everview.expr.types import PLAIN_NAME, Column, Schema, storable_type, unusable_name
from everview.lang.sql.parse.statements import Query
from everview.runtime.protocol import SIGN, Engine, Snapshot
from everview.store.manifest import Segment


def create_table_as(
    name: str, query: Query, catalog: Catalog, engine: Engine, now: Snapshot
) -> tuple[Catalog, dict[str, Segment]]:
    """The catalog with a table that has the columns of a query, and its rows, written."""
    reads = catalog.read_by(query.reads)
    bound = bind_query(query.text, reads, now, engine)
    known = {name: bound.snapshot.stored[name].schema for name in bound.reads}
    columns = _storable(describe(engine, bound.text, known, once=True), query)
    grown = catalog.with_table(TableDefinition(name, columns, (), ()))
    after = Snapshot(now.store, now.manifest, grown.compile().stored())
    with report_damage(now):
        asked = f"SELECT *, CAST(1 AS BIGINT) AS `{SIGN}` FROM ({bound.text}) AS q"
        result = select(engine, asked, bound.reads, bound.snapshot, {})
        rows = engine.frames.change(result, name, after)
        segment = write_change(name, rows, engine, after, now.manifest.epoch + 1)
    return grown, {name: replace(segment, kind="base")}


def _storable(result: Schema, query: Query) -> Schema:
    """The columns of a query as those of a table, if each has a plain name and a storable type."""
    columns: list[Column] = []
    for column in result:
        type_, code = storable_type(column.type), "Q011"
        if problem := unusable_name(column.name):
            raise UserError("Q011", problem, span=query.span, remedy=PLAIN_NAME)
        if column.name.lower() in {each.name.lower() for each in columns}:
            problem = f"two columns are called {column.name}"
        if type_ is None:
            problem, code = f"{column.name} has a type that cannot be stored: {column.type}", "Q014"
        if problem or type_ is None:
            remedy = "give every column a name of its own with AS, and CAST it to a plain type"
            raise UserError(code, str(problem), span=query.span, remedy=remedy)
        columns.append(Column(column.name, type_))
    return tuple(columns)
