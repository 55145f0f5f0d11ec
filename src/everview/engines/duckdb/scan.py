"""Stored relations as FROM items: Parquet files in place, and small changes from memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema
from everview.plan.nodes import Empty
from everview.program.steps import KeySet
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Snapshot
from everview.runtime.workspace import Workspace
from everview.sqlgen.sql import DUCKDB, consolidate, emit
from everview.store.manifest import DataFile, parquet_and_pieces
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Scan:
    """Files of one relation, the keys wanted of them, and whether a key can be null.

    `small` are rows that are in no file of their own; they are read under the name `small_name`.
    """

    paths: tuple[str, ...]
    keys: tuple[KeySet, ...] = ()
    nullable: bool = True
    small: pa.Table | None = None
    small_name: str = ""

    def sql(self, workspace: Workspace, schema: Schema, by: str | None = None) -> str:
        """SQL for the weighted rows: all, or those with a key in the column `by`.

        It can be run until the workspace is cleared.
        """
        if self.small is not None:
            workspace.register(self.small_name, self.small)
        columns = "".join(
            f"CAST({name} AS {DUCKDB.type_(c.type)}) AS {name}, "
            for c in schema
            for name in (duckdb_name(c.name),)
        )
        selects = [f"SELECT {columns}{WEIGHT} FROM {item}" for item in self._items()]
        if by is not None:
            selects = [_among(each, by, self.keys, nullable=self.nullable) for each in selects]
        return " UNION ALL ".join(selects) or emit(Empty(schema), DUCKDB)

    def fetch(self, name: str, workspace: Workspace, schema: Schema, by: str | None) -> int:
        """Make the rows known under a name; how many there are."""
        sql = self.sql(workspace, schema, by)
        reads = (self.small_name, *(key.relation for key in self.keys))
        return workspace.create_table(name, sql, reads)

    def _items(self) -> list[str]:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in self.paths)
        parquet = [f"read_parquet([{listed}])"] if self.paths else []
        return parquet + ([duckdb_name(self.small_name)] if self.small is not None else [])


def scan(
    name: str,
    files: Iterable[DataFile],
    store: Store,
    schema: Schema,
    keys: tuple[KeySet, ...] = (),
    *,
    nullable: bool = True,
) -> Scan:
    """Files of a store as DuckDB reads them, for the relation that is to be called `name`.

    DuckDB verifies no checksum, so they are verified before.
    """
    parquet, pieces = parquet_and_pieces(files)
    store.require_sound(parquet, pages=False)
    small = store.read_files(pieces, schema=arrow_schema(schema)) if pieces else None
    paths = tuple(store.absolute(file.path) for file in parquet)
    return Scan(paths, keys, nullable, small, f"small {name}")


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
    names: Iterable[str], snapshot: Snapshot, workspace: Workspace, *, consolidated: bool = False
) -> dict[str, str]:
    """Relations by name as FROM items."""
    items = {name: stored_item(name, snapshot, workspace) for name in names}
    if not consolidated:
        return items
    return {name: consolidated_item(name, item, snapshot) for name, item in items.items()}


def _among(select: str, by: str, keys: tuple[KeySet, ...], *, nullable: bool) -> str:
    """The rows whose column `by` is among the keys.

    Null keys are a query of their own, so that the others are found by a pushed-down filter.
    """
    wanted = " UNION ALL ".join(
        f"SELECT {duckdb_name(k.column)} AS k FROM {duckdb_name(k.relation)}" for k in keys
    )
    column = duckdb_name(by)
    some = f"{select} WHERE {column} IN (SELECT k FROM ({wanted}))"
    if not nullable:
        return some
    nulls = f"EXISTS (SELECT 1 FROM ({wanted}) WHERE k IS NULL)"
    return f"{some} UNION ALL {select} WHERE {column} IS NULL AND {nulls}"
