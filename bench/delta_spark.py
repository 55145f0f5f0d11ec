"""The three views kept by hand on Spark: everything in Parquet files, nothing in memory.

Orders, lines and the sums of each view are files sorted by key, each with the files that later
transactions added. A transaction fetches the orders and the line numbers of the changed lines, by
Spark or by DuckDB in the driver, checks that a line to delete is there and a line to insert is
not, and adds what it changes in each view's sums. A reader adds up the files of a view, and
leaves out the groups without rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.durable_commit import make_durable
from bench.handwritten import SIGNED, change_query
from bench.three_views import BY_HAND, with_segments
from bench.tpch import Change
from bench.views import View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = ("spark", "driver")
"""Who fetches: a Spark job for each table, or DuckDB in the driver over the same files."""
ROW_GROUP = 1 << 16
LITERALS = 200
"""More keys are joined, fewer are written into the query."""
_SLICES = {
    "orders": (
        "o_orderkey",
        ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority", "c_mktsegment"),
    ),
    "lineitem": ("l_orderkey", ("l_orderkey", "l_linenumber")),
}


class DeltaSpark:
    """The files of three views and of what they read."""

    def __init__(
        self, folder: Path, tables: Mapping[str, pa.Table], session: SparkSession, way: str
    ) -> None:
        folder.mkdir(parents=True)
        self._folder, self._epoch, self._way = folder, 0, way
        self._session = session.newSession()
        self._driver = duckdb.connect(config={"threads": 2})
        self._lines: list[str] = []
        self._sums: dict[str, list[str]] = {}
        self._pool = ThreadPoolExecutor(2)
        for name, rows in with_segments(tables).items():
            pq.write_table(rows, self._base(name), row_group_size=ROW_GROUP)
            frame = self._session.read.parquet(self._base(name))
            frame.createOrReplaceTempView(name)
        for view in BY_HAND:
            made = self._session.sql(view.query).toArrow().sort_by(next(iter(view.keys)))
            pq.write_table(made, self._base(view.name))
            self._sums[view.name] = [self._base(view.name)]

    def apply(self, change: Change) -> None:
        """One transaction, durable when this returns."""
        driver = self._driver
        driver.register("deleted", change.deleted)
        driver.register("inserted", change.inserted)
        driver.execute(f"CREATE OR REPLACE TEMP TABLE signed AS {SIGNED}")
        keys = driver.sql("SELECT DISTINCT l_orderkey AS k FROM signed").to_arrow_table()
        driver.register("keys", keys)
        self._fetch(keys)
        self._check()
        driver.execute(
            "CREATE OR REPLACE TEMP TABLE touched AS "
            "SELECT * FROM signed JOIN orders_slice ON o_orderkey = l_orderkey"
        )
        written = {view.name: driver.sql(change_query(view)).to_arrow_table() for view in BY_HAND}
        written["lineitem"] = driver.sql("FROM signed").to_arrow_table()
        self._epoch += 1
        files = make_durable(self._folder, self._epoch, written)
        self._lines.append(str(files.pop("lineitem")))
        for name, file in files.items():
            self._sums[name].append(str(file))

    def answers(self) -> dict[str, pa.Table]:
        """The views as a reader finds them."""
        return {view.name: self._driver.sql(self._value(view)).to_arrow_table() for view in BY_HAND}

    def close(self) -> None:
        """Give the memory back; Spark stays."""
        self._pool.shutdown()
        self._driver.close()

    def _base(self, name: str) -> str:
        return str(self._folder / f"{name}.parquet")

    def _fetch(self, keys: pa.Table) -> None:
        """The slices of orders and lines that have one of the keys, known to the driver."""
        if self._way == "spark":
            self._by_spark(keys)
        else:
            self._by_driver()

    def _by_driver(self) -> None:
        for name, (by, columns) in _SLICES.items():
            self._driver.execute(
                f"CREATE OR REPLACE TEMP TABLE {name}_slice AS SELECT {', '.join(columns)} "
                f"FROM '{self._base(name)}' SEMI JOIN keys ON {by} = k"
            )

    def _by_spark(self, keys: pa.Table) -> None:
        found = keys.column("k").to_pylist()
        if len(found) > LITERALS:
            frame: Any = self._session.createDataFrame(keys)
            frame.createOrReplaceTempView("keys")
        queries = (_slice(name, found) for name in _SLICES)
        slices = self._pool.map(lambda query: self._session.sql(query).toArrow(), queries)
        for name, rows in zip(_SLICES, slices, strict=True):
            self._driver.register(f"{name}_slice", rows)

    def _check(self) -> None:
        """No line to delete is missing, and no line to insert is there."""
        there = "SELECT *, 1 AS there, 0 AS gone, 0 AS come FROM lineitem_slice"
        if self._lines:
            there += (
                " UNION ALL SELECT l_orderkey, l_linenumber, w, 0, 0 "
                f"FROM read_parquet({self._lines}) SEMI JOIN keys ON l_orderkey = k"
            )
        wrong = self._driver.execute(
            f"SELECT l_orderkey, l_linenumber FROM ({there} UNION ALL SELECT l_orderkey, "
            "l_linenumber, 0, IF(w < 0, 1, 0), IF(w > 0, 1, 0) FROM signed) GROUP BY ALL "
            "HAVING SUM(gone) > SUM(there) OR SUM(there) - SUM(gone) + SUM(come) > 1"
        ).fetchall()
        assert not wrong, f"lines that are not there, or there already: {wrong[:3]}"

    def _value(self, view: View) -> str:
        keys = ", ".join(view.keys)
        sums = ", ".join(f"SUM({name}) AS {name}" for name in (*view.sums, "n"))
        return (
            f"SELECT {keys}, {sums} FROM read_parquet({self._sums[view.name]}) "
            f"GROUP BY {keys} HAVING SUM(n) <> 0"
        )


def _slice(name: str, keys: list[int]) -> str:
    """A query for the rows with some keys; the bounds let Spark skip row groups."""
    by, columns = _SLICES[name]
    rows = f"SELECT {', '.join(columns)} FROM {name}"
    if len(keys) <= LITERALS:
        return f"{rows} WHERE {by} IN ({', '.join(map(str, keys))})"
    return (
        f"{rows} LEFT SEMI JOIN (SELECT /*+ BROADCAST(keys) */ k FROM keys) ON {by} = k "
        f"WHERE {by} BETWEEN {min(keys)} AND {max(keys)}"
    )
