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
from everview.runtime.protocol import Snapshot
from everview.runtime.workspace import Workspace
from everview.sqlgen.sql import DUCKDB, consolidate, emit
from everview.store.manifest import DataFile, parquet_and_pieces
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Scan:
    """Files of one relation.

    `small` are rows that are in no file of their own; they are read under the name `small_name`.
    """

    paths: tuple[str, ...]
    small: pa.Table | None = None
    small_name: str = ""

    def sql(self, workspace: Workspace, schema: Schema) -> str:
        """SQL for the weighted rows; it can be run until the workspace is cleared."""
        if self.small is not None:
            workspace.register(self.small_name, self.small)
        columns = "".join(
            f"CAST({name} AS {DUCKDB.type_(c.type)}) AS {name}, "
            for c in schema
            for name in (duckdb_name(c.name),)
        )
        selects = [f"SELECT {columns}{WEIGHT} FROM {item}" for item in self._items()]
        return " UNION ALL ".join(selects) or emit(Empty(schema), DUCKDB)

    def _items(self) -> list[str]:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in self.paths)
        parquet = [f"read_parquet([{listed}])"] if self.paths else []
        return parquet + ([duckdb_name(self.small_name)] if self.small is not None else [])


def scan(name: str, files: Iterable[DataFile], store: Store, schema: Schema) -> Scan:
    """Files of a store as DuckDB reads them, for the relation that is to be called `name`.

    DuckDB verifies no checksum, so they are verified before.
    """
    parquet, pieces = parquet_and_pieces(files)
    store.require_sound(parquet, pages=False)
    small = store.read_files(pieces, schema=arrow_schema(schema)) if pieces else None
    paths = tuple(store.absolute(file.path) for file in parquet)
    return Scan(paths, small, f"small {name}")


def stored_item(name: str, snapshot: Snapshot, workspace: Workspace) -> str:
    """The weighted rows of all segments of a relation as a FROM item."""
    schema = snapshot.stored[name].schema
    files = snapshot.relation(name).files
    return f"({scan(name, files, snapshot.store, schema).sql(workspace, schema)})"


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
