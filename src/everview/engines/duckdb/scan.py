"""Stored relations as FROM items and in batches: Parquet files in place, small changes apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema, names
from everview.plan.nodes import Empty
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.interpreter import InProcess
from everview.runtime.protocol import Snapshot, Stored
from everview.runtime.workspace import Workspace
from everview.sqlgen.sql import DUCKDB, consolidate, emit
from everview.store.layouts import unpacked_value
from everview.store.manifest import DataFile, parquet_and_pieces
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Scan:
    """Files of one relation.

    `paths` are by layout. `small` are rows that are in no file of their own; they are read under
    the name `small_name`.
    """

    paths: tuple[tuple[int | None, tuple[str, ...]], ...]
    small: pa.Table | None = None
    small_name: str = ""

    def sql(self, workspace: Workspace, stored: Stored) -> str:
        """SQL for the weighted rows; it can be run until the workspace is cleared."""
        fills = f"fill {self.small_name}"
        if self.small is not None:
            workspace.register(self.small_name, self.small)
        if stored.fills and self.paths:
            values = [unpacked_value(fill) for _, fill in stored.fills]
            one = [pa.repeat(value, 1) for value in values]
            workspace.register(fills, pa.table(one, [name for name, _ in stored.fills]))
        selects = [
            f"SELECT {_columns(stored, layout, fills)}{WEIGHT} FROM {_parquet(paths)}"
            for layout, paths in self.paths
        ]
        if self.small is not None:
            columns = _columns(stored, None, fills)
            selects.append(f"SELECT {columns}{WEIGHT} FROM {duckdb_name(self.small_name)}")
        return " UNION ALL ".join(selects) or emit(Empty(stored.schema), DUCKDB)


def _parquet(paths: Iterable[str]) -> str:
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{listed}])"


def _columns(stored: Stored, layout: int | None, fills: str) -> str:
    """The columns of a relation as files of a layout have them, as `layouts.fitted` does."""
    given = {name for name, _ in stored.fills}
    found = []
    for column in stored.schema:
        former = column.name if layout is None else stored.former[layout].name_of(column.name)
        value = "NULL" if former is None else duckdb_name(former)
        if former is None and column.name in given:
            value = f"(SELECT {duckdb_name(column.name)} FROM {duckdb_name(fills)})"
        found.append(
            f"CAST({value} AS {DUCKDB.type_(column.type)}) AS {duckdb_name(column.name)}, "
        )
    return "".join(found)


def scan(name: str, files: Iterable[DataFile], store: Store, stored: Stored) -> Scan:
    """Files of a store as DuckDB reads them, for the relation that is to be called `name`.

    DuckDB verifies no checksum, so they are verified before.
    """
    parquet, pieces = parquet_and_pieces(files)
    store.require_sound(parquet, pages=False)
    small = store.read_files(pieces, schema=stored.arrow()) if pieces else None
    layouts = dict.fromkeys(file.layout for file in parquet)
    paths = (
        (layout, tuple(store.absolute(file.path) for file in parquet if file.layout == layout))
        for layout in layouts
    )
    return Scan(tuple(paths), small, f"small {name}")


def stored_item(name: str, snapshot: Snapshot, workspace: Workspace) -> str:
    """The weighted rows of all segments of a relation as a FROM item."""
    stored = snapshot.stored[name]
    files = snapshot.relation(name).files
    return f"({scan(name, files, snapshot.store, stored).sql(workspace, stored)})"


def consolidated_item(name: str, item: str, snapshot: Snapshot) -> str:
    """A FROM item without rows that cancel."""
    stored = snapshot.stored[name]
    return f"({consolidate(f'SELECT * FROM {item}', stored.schema, stored.rings, DUCKDB)})"


def stored_items(
    relations: Iterable[str],
    snapshot: Snapshot,
    workspace: Workspace,
    *,
    consolidated: bool = False,
) -> dict[str, str]:
    """Relations by name as FROM items."""
    items = {name: stored_item(name, snapshot, workspace) for name in relations}
    if not consolidated:
        return items
    return {name: consolidated_item(name, item, snapshot) for name, item in items.items()}


def stream_relation(
    local: InProcess, name: str, snapshot: Snapshot, size: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a stored relation, each as often as its weight says, read from its files.

    A base is read as it is. Else rows that cancel are taken out first, by an aggregation that uses
    the disk for what exceeds the memory of DuckDB.
    """
    schema, relation = snapshot.stored[name].schema, snapshot.relation(name)
    with local.reading() as workspace:
        item = stored_item(name, snapshot, workspace)
        if not relation.has_unit_weights:
            if not relation.is_base:
                item = consolidated_item(name, item, snapshot)
            item = f"(SELECT *, unnest(range({WEIGHT})) FROM {item})"
        yield from stream_rows(workspace, item, schema, names(schema), size)


def stream_rows(
    workspace: Workspace, item: str, schema: Schema, columns: Sequence[str], size: int
) -> Iterator[pa.RecordBatch]:
    """Some columns of a FROM item, in the types of a schema."""
    typed = arrow_schema(schema)
    wanted = pa.schema([typed.field(column) for column in columns])
    listed = ", ".join(map(duckdb_name, columns))
    for batch in workspace.batches(f"SELECT {listed} FROM {item}", size):
        yield from pa.Table.from_batches([batch]).cast(wanted).to_batches(size)
