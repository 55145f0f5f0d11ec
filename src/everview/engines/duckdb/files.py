"""Files of a relation as SQL: Parquet as it lies there, and few rows from memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema
from everview.plan.nodes import Empty
from everview.program.steps import KeySet
from everview.runtime.arrow_types import arrow_schema
from everview.sqlgen.sql import DUCKDB, emit
from everview.store.manifest import DataFile, parquet_and_pieces
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Files:
    """Files of one relation, the keys wanted of them, and whether a key can be null.

    `few` are rows that are in no file of their own; DuckDB is to know them by the name `known`.
    """

    paths: tuple[str, ...]
    keys: tuple[KeySet, ...] = ()
    nullable: bool = True
    few: pa.Table | None = None
    known: str = ""

    def rows(self, schema: Schema, by: str | None = None) -> str:
        """SQL for the weighted rows of the files: all, or those with a key in the column `by`."""
        columns = "".join(
            f"CAST({name} AS {DUCKDB.type_(c.type)}) AS {name}, "
            for c in schema
            for name in (duckdb_name(c.name),)
        )
        every = [f"SELECT {columns}{WEIGHT} FROM {item}" for item in self._items()]
        if by is not None:
            every = [among(each, by, self.keys, nullable=self.nullable) for each in every]
        return " UNION ALL ".join(every) or emit(Empty(schema), DUCKDB)

    def _items(self) -> list[str]:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in self.paths)
        parquet = [f"read_parquet([{listed}])"] if self.paths else []
        return parquet + ([duckdb_name(self.known)] if self.few is not None else [])


def files_of(
    name: str,
    files: Iterable[DataFile],
    store: Store,
    schema: Schema,
    keys: tuple[KeySet, ...] = (),
    *,
    nullable: bool = True,
) -> Files:
    """Files of a store as DuckDB reads them, for the relation that is to be called `name`.

    DuckDB verifies no checksum, so they are verified before.
    """
    whole, pieces = parquet_and_pieces(files)
    store.require_sound(whole, pages=False)
    few = store.read_files(pieces, schema=arrow_schema(schema)) if pieces else None
    paths = tuple(store.absolute(file.path) for file in whole)
    return Files(paths, keys, nullable, few, f"few {name}")


def among(every: str, by: str, keys: tuple[KeySet, ...], *, nullable: bool) -> str:
    """The rows whose column `by` is among the keys.

    Null keys are looked for apart, so that the others are found by a pushed-down filter.
    """
    wanted = " UNION ALL ".join(
        f"SELECT {duckdb_name(k.column)} AS k FROM {duckdb_name(k.relation)}" for k in keys
    )
    column = duckdb_name(by)
    some = f"{every} WHERE {column} IN (SELECT k FROM ({wanted}))"
    if not nullable:
        return some
    nulls = f"EXISTS (SELECT 1 FROM ({wanted}) WHERE k IS NULL)"
    return f"{some} UNION ALL {every} WHERE {column} IS NULL AND {nulls}"
