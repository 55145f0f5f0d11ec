"""Refresh transactions: new orders come with their lines, and old orders go with theirs.

All of them are made before anything is measured, from the tables and a seed alone, so every view
and every engine gets the same ones, and the tables after the last of them are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tables import KEYS

CHANGED = ("orders", "lineitem")
DELETES = {"random": "hash(o_orderkey, {seed})", "recent": "o_orderkey DESC"}
"""In which order the old orders go: as chance has it, or those with the highest keys first."""


@dataclass(frozen=True)
class Refresh:
    """The rows that go and the rows that come, by table."""

    gone: Mapping[str, pa.Table]
    come: Mapping[str, pa.Table]

    @property
    def inverse(self) -> Refresh:
        """The transaction that undoes this one."""
        return Refresh(self.come, self.gone)


def load(folder: Path, number: int) -> Refresh:
    """A transaction that was made before, as Arrow tables."""
    gone, come = (
        {name: pq.read_table(_file(folder, number, kind, name)) for name in CHANGED}
        for kind in ("gone", "come")
    )
    return Refresh(gone, come)


class Refreshes:
    """Transactions over the tables of a folder, each order touched once."""

    def __init__(self, tables: Path, into: Path, *, deletes: str = "random", seed: int = 1) -> None:
        self._tables, self._into = tables, into
        into.mkdir(parents=True)
        self._connection = duckdb.connect()
        self.count = self._taken = self._made = 0
        for name in KEYS:
            self._run(f"CREATE VIEW {name} AS FROM '{tables / name}.parquet'")
        going = DELETES[deletes].format(seed=seed)
        for name, order in (("going", going), ("models", f"hash(o_orderkey, {seed}, 'models')")):
            self._run(
                f"CREATE TABLE {name} AS SELECT o_orderkey AS old, "
                f"row_number() OVER (ORDER BY {order}, o_orderkey) - 1 AS place FROM orders"
            )
        found = self._run("SELECT count(*), max(o_orderkey) FROM orders")[0]
        self.orders, self._last = int(found[0]), int(found[1])

    def add(self, percent: float) -> int:
        """Make a transaction over so many percent of the orders, half of them new; its number."""
        touched = round(self.orders * percent / 100)
        new, old = max(1, touched - touched // 2), max(1, touched // 2)
        assert self._taken + old <= self.orders, "too few orders to delete"
        number, self.count = self.count, self.count + 1
        self._gone(number, self._taken, old)
        self._come(number, self._made, new)
        self._taken, self._made = self._taken + old, self._made + new
        return number

    def load(self, number: int) -> Refresh:
        """A transaction as Arrow tables."""
        return load(self._into, number)

    def tables_after(self, database: Path) -> None:
        """Write a DuckDB database with the tables as all transactions leave them."""
        self._run(f"ATTACH '{database}' AS after")
        for name, keys in KEYS.items():
            rows = f"FROM {name}"
            if name in CHANGED and self.count:
                gone, come = (_file(self._into, "*", kind, name) for kind in ("gone", "come"))
                rows = (
                    f"FROM {name} ANTI JOIN '{gone}' USING ({', '.join(keys)}) "
                    f"UNION ALL FROM '{come}'"
                )
            self._run(f"CREATE TABLE after.{name} AS FROM ({rows}) ORDER BY {', '.join(keys)}")
        self._run("DETACH after")

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _gone(self, number: int, first: int, count: int) -> None:
        chosen = f"(SELECT old FROM going WHERE place >= {first} AND place < {first + count})"
        for name in CHANGED:
            key = KEYS[name][0]
            self._write(number, "gone", name, f"FROM {name} SEMI JOIN {chosen} ON {key} = old")

    def _come(self, number: int, first: int, count: int) -> None:
        """Orders like old ones, with keys above all others and prices that differ by cents."""
        chosen = (
            f"(SELECT old, {self._last} + 1 + place AS new FROM models "
            f"WHERE place >= {first} AND place < {first + count})"
        )
        for name, price in (("orders", "o_totalprice"), ("lineitem", "l_extendedprice")):
            key = KEYS[name][0]
            other = f"CAST({price} + hash({', '.join(KEYS[name])}) % 1000 / 100 AS DECIMAL(15,2))"
            rows = f"{name}.* REPLACE (new AS {key}, {other} AS {price})"
            self._write(
                number, "come", name, f"SELECT {rows} FROM {name} JOIN {chosen} ON {key} = old"
            )

    def _write(self, number: int, kind: str, name: str, rows: str) -> None:
        order = ", ".join(KEYS[name])
        file = _file(self._into, number, kind, name)
        self._run(f"COPY (FROM ({rows}) ORDER BY {order}) TO '{file}' (FORMAT parquet)")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


def _file(folder: Path, number: int | str, kind: str, name: str) -> Path:
    return folder / f"{number}-{kind}-{name}.parquet"
