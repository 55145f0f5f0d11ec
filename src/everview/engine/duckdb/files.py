"""Parquet files of a relation as SQL."""

from __future__ import annotations

from dataclasses import dataclass

from everview.emit.sql import DUCKDB, emit
from everview.plan.nodes import Empty
from everview.plan.types import WEIGHT, Schema
from everview.program.steps import KeySet


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files of one relation, the keys wanted of them, and whether a key can be null."""

    paths: tuple[str, ...]
    keys: tuple[KeySet, ...] = ()
    nullable: bool = True

    def rows(self, schema: Schema) -> str:
        """SQL for all weighted rows of the files."""
        if not self.paths:
            return emit(Empty(schema), DUCKDB)
        columns = "".join(
            f'CAST("{c.name}" AS {DUCKDB.type_(c.type)}) AS "{c.name}", ' for c in schema
        )
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in self.paths)
        return f"SELECT {columns}{WEIGHT} FROM read_parquet([{listed}])"


def among(every: str, by: str, keys: tuple[KeySet, ...], *, nullable: bool) -> str:
    """The rows whose column `by` is among the keys.

    Null keys are looked for apart, so that the others are found by a pushed-down filter.
    """
    wanted = " UNION ALL ".join(f'SELECT "{k.column}" AS k FROM "{k.relation}"' for k in keys)
    some = f'{every} WHERE "{by}" IN (SELECT k FROM ({wanted}))'
    if not nullable:
        return some
    nulls = f"EXISTS (SELECT 1 FROM ({wanted}) WHERE k IS NULL)"
    return f'{some} UNION ALL {every} WHERE "{by}" IS NULL AND {nulls}'
