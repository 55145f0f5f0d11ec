"""The three views that scripts written by hand and peers keep as well, and their tables.

One has no join and few groups, one joins two tables and has many groups, one is TPC-H's third
query without its limit. Transactions change lines.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from bench import tpch
from bench.tpch import DATA, Change, Trade
from bench.views import View

COLUMNS = {
    "customer": {"c_custkey": "BIGINT", "c_mktsegment": "STRING"},
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_orderdate": "DATE",
        "o_shippriority": "INT",
    },
    "lineitem": tpch.COLUMNS["lineitem"],
}
KEYS = {"customer": ("c_custkey",), **tpch.KEYS}
_REVENUE = "l_extendedprice * (1 - l_discount)"
QUERIES = {
    "line_totals": f"""
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity,
            SUM(l_extendedprice) AS price, SUM({_REVENUE}) AS revenue, COUNT(*) AS n
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "by_customer": f"""
        SELECT o_custkey, SUM({_REVENUE}) AS revenue, COUNT(*) AS n
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey""",
    "shipping_priority": f"""
        SELECT l_orderkey, o_orderdate, o_shippriority, SUM({_REVENUE}) AS revenue, COUNT(*) AS n
        FROM customer JOIN orders ON c_custkey = o_custkey
            JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
            AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
}
BY_HAND = (
    View(
        "line_totals",
        {"l_returnflag": "l_returnflag", "l_linestatus": "l_linestatus"},
        {"quantity": "l_quantity", "price": "l_extendedprice", "revenue": _REVENUE},
        "l_shipdate <= DATE '1998-09-02'",
    ),
    View("by_customer", {"o_custkey": "o_custkey"}, {"revenue": _REVENUE}),
    View(
        "shipping_priority",
        {
            "l_orderkey": "l_orderkey",
            "o_orderdate": "o_orderdate",
            "o_shippriority": "o_shippriority",
        },
        {"revenue": _REVENUE},
        "c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' "
        "AND l_shipdate > DATE '1995-03-15'",
    ),
)
"""The same views over orders that carry the segment of their customer: customers never change."""


def tables(scale: float, folder: Path = DATA) -> dict[str, pa.Table]:
    """The three tables at a scale; what was generated once is kept."""
    kept = folder / f"scale-{scale:g}"
    missing = [name for name in COLUMNS if not (kept / f"{name}.parquet").exists()]
    if missing:
        kept.mkdir(parents=True, exist_ok=True)
        generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        what = ["-s", f"{scale:g}", "-T", ",".join(missing), "-o", str(kept), "--overwrite"]
        subprocess.run([str(generator), "parquet", *what], check=True, capture_output=True)
    return {name: tpch.read(kept / f"{name}.parquet", list(COLUMNS[name])) for name in COLUMNS}


def declarations() -> Iterator[str]:
    """The statements that declare the tables."""
    for name, columns in COLUMNS.items():
        listed = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
        yield f"CREATE TABLE {name} ({listed}, PRIMARY KEY ({', '.join(KEYS[name])}))"


def with_segments(rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Orders with the segment of their customer, and lines, each in the order of its key."""
    connection = duckdb.connect()
    for name, table in rows.items():
        connection.register(name, table)
    found = {
        "orders": "SELECT orders.*, c_mktsegment FROM orders "
        "JOIN customer ON o_custkey = c_custkey ORDER BY o_orderkey",
        "lineitem": "FROM lineitem ORDER BY l_orderkey, l_linenumber",
    }
    made = {name: connection.sql(query).to_arrow_table() for name, query in found.items()}
    connection.close()
    return made


def changes(lines: pa.Table, counts: Mapping[int, int], seed: int) -> Iterator[tuple[int, Change]]:
    """For each number of changed lines, so many transactions."""
    needed = sum(rows * times for rows, times in counts.items())
    assert needed <= lines.num_rows, f"there are no {needed:,} lines to change"
    trade = Trade(lines, seed, most=needed)
    for rows, times in counts.items():
        for _ in range(times):
            yield rows, trade.change(rows)


def recomputed(rows: Mapping[str, pa.Table], applied: Sequence[Change]) -> dict[str, pa.Table]:
    """The views' queries over the tables as transactions leave them; no line changes twice."""
    connection = duckdb.connect()
    for name, table in rows.items():
        connection.register("before" if name == "lineitem" else name, table)
    connection.register("gone", pa.concat_tables(change.deleted for change in applied))
    connection.register("come", pa.concat_tables(change.inserted for change in applied))
    connection.execute(
        "CREATE TABLE lineitem AS FROM before ANTI JOIN gone USING (l_orderkey, l_linenumber) "
        "UNION ALL FROM come"
    )
    found = {name: connection.sql(query).to_arrow_table() for name, query in QUERIES.items()}
    connection.close()
    return found
