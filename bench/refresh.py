"""Refresh transactions: new orders come with their lines, and old orders go with theirs.

All of them are made before anything is measured, from the tables and a seed alone, so every view
and every engine gets the same ones, and the tables after the last of them are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tables import KEYS

CHANGED = ("orders", "lineitem")
PRICES = {"orders": "o_totalprice", "lineitem": "l_extendedprice"}
MEMORY = "6GB"
"""So much is sorted in memory, more in files."""
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


def files(folder: Path, number: int) -> dict[tuple[str, str], Path]:
    """The files of a transaction: what goes and what comes, by table."""
    kinds = ("gone", "come")
    return {(kind, name): _file(folder, number, kind, name) for kind in kinds for name in CHANGED}


class Refreshes:
    """Transactions over the tables of a folder, each order touched once."""

    def __init__(self, tables: Path, into: Path, *, deletes: str = "random", seed: int = 1) -> None:
        self._tables, self._into = tables, into
        into.mkdir(parents=True)
        spilled = str(into / "spilled")
        self._connection = duckdb.connect(
            config={"memory_limit": MEMORY, "temp_directory": spilled}
        )
        self.count = 0
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

    def make(self, percents: Sequence[float]) -> None:
        """Transactions over so many percent of the orders, half of each new; numbered from 0.

        All are made in one pass over each table.
        """
        assert not self.count, "the transactions are made already"
        touched = [round(self.orders * percent / 100) for percent in percents]
        old = [max(1, each // 2) for each in touched]
        new = [max(1, each - each // 2) for each in touched]
        assert sum(old) <= self.orders, "too few orders to delete"
        self.count = len(percents)
        self._choose("leaving", "going", old)
        self._choose("copied", "models", new)
        for name in CHANGED:
            self._write("gone", name, f"FROM {name} JOIN leaving ON {KEYS[name][0]} = old")
            self._write("come", name, self._copies(name))

    def load(self, number: int) -> Refresh:
        """A transaction as Arrow tables."""
        return load(self._into, number)

    def tables_after(self, database: Path) -> None:
        """Write a DuckDB database with the tables as all transactions leave them.

        Each is in the order of its key: the files are, and what comes has the highest keys.
        """
        self._run(f"ATTACH '{database}' AS after")
        for name, keys in KEYS.items():
            rows = f"FROM {name}"
            if name in CHANGED and self.count:
                gone, come = (_file(self._into, "*", kind, name) for kind in ("gone", "come"))
                rows = (
                    f"FROM {name} ANTI JOIN '{gone}' USING ({', '.join(keys)}) "
                    f"UNION ALL (FROM '{come}' ORDER BY {', '.join(keys)})"
                )
            self._run(f"CREATE TABLE after.{name} AS {rows}")
        self._run("DETACH after")

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _choose(self, into: str, among: str, counts: Sequence[int]) -> None:
        """Give each transaction its part of the orders."""
        ends = list(accumulate(counts))
        parts = ", ".join(
            f"({n}, {end - count}, {end})"
            for n, (count, end) in enumerate(zip(counts, ends, strict=True))
        )
        self._run(
            f"CREATE TABLE {into} AS SELECT number, old, {self._last} + 1 + place AS new "
            f"FROM {among} JOIN (VALUES {parts}) AS parts(number, first, stop) "
            "ON place >= first AND place < stop"
        )

    def _copies(self, name: str) -> str:
        """Orders like old ones, with keys above all others and prices that differ by cents."""
        key, price = KEYS[name][0], PRICES[name]
        other = f"CAST({price} + hash({', '.join(KEYS[name])}) % 1000 / 100 AS DECIMAL(15,2))"
        rows = f"{name}.* REPLACE (new AS {key}, {other} AS {price}), number, old, new"
        return f"SELECT {rows} FROM {name} JOIN copied ON {key} = old"

    def _write(self, kind: str, name: str, rows: str) -> None:
        self._run(f"CREATE TABLE rows AS {rows}")
        chosen = "SELECT * EXCLUDE (number, old, new) FROM rows"
        for number in range(self.count):
            part = f"{chosen} WHERE number = {number} ORDER BY {', '.join(KEYS[name])}"
            file = _file(self._into, number, kind, name)
            self._run(f"COPY ({part}) TO '{file}' (FORMAT parquet)")
        self._run("DROP TABLE rows")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


def _file(folder: Path, number: int | str, kind: str, name: str) -> Path:
    return folder / f"{number}-{kind}-{name}.parquet"
