"""The policies beside each other: rows read and time per change as groups grow, and on TPC-H.

python -m bench.policies [--sizes 10,100,1000] [--scale 0.01] [--quick]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import everview as ev
from bench.rows import RESULTS, tell
from bench.tables import KEYS, declaration, generated, queries
from everview.database.database import Database
from everview.program.policy import HIGHER_ORDER, POLICIES

TABLES = """
    CREATE TABLE r (a DECIMAL(12,2), b BIGINT);
    CREATE TABLE s (b BIGINT, d BIGINT, g BIGINT);
    CREATE TABLE t (d BIGINT, f DECIMAL(8,2))
"""
QUERY = """SELECT s.g, SUM(r.a * t.f) AS total, COUNT(*) AS n
    FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d GROUP BY s.g"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the results, and say whether rows read are flat under higher-order."""
    parser = argparse.ArgumentParser(prog="bench.policies", description=__doc__)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two small groups, and no TPC-H")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    sizes = [4, 16] if options.quick else [int(size) for size in options.sizes.split(",")]
    rounds = 2 if options.quick else options.rounds
    rows = [measure(policy, size, rounds) for size in sizes for policy in POLICIES]
    tell(options.results / "policies", rows, table(rows))
    if not options.quick:
        found = tpch(options.scale, options.orders)
        tell(options.results / "policies-tpch", found, table(found))
    read = {row["rows_read"] for row in rows if row["policy"] == HIGHER_ORDER}
    return 0 if len(read) == 1 else 1


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    columns = [*rows[0]]
    lines = [columns, ["---"] * len(columns), *([row[c] for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def tpch(scale: float, orders: int) -> list[dict[str, Any]]:
    """Rows read per view and policy when some orders go with their lines, and come back."""
    folder, found = generated(scale), []
    with TemporaryDirectory() as store, ev.open(f"{store}/store", engine="duckdb") as db:
        for name in KEYS:
            file = folder / f"{name}.parquet"
            db.sql(declaration(name, file))
            with db.transaction() as tx:
                tx.insert(name, pq.read_table(file))
        old = db.sql(f"SELECT * FROM orders ORDER BY o_orderkey LIMIT {orders}").to_arrow()
        known = ", ".join(map(str, old.column("o_orderkey").to_pylist()))
        lines = db.sql(f"SELECT * FROM lineitem WHERE l_orderkey IN ({known})").to_arrow()
        for view, query in queries().items():
            read = {policy: _rows_read(db, policy, query, old, lines) for policy in POLICIES}
            db.sql(f"CREATE VIEW v AS {query}")
            chosen = next(e.policy.split(" ")[0] for e in db.status() if e.name == "v")
            db.sql("DROP VIEW v")
            found.append({"view": view, **read, "chosen": chosen})
    return found


def _rows_read(db: Database, policy: str, query: str, orders: pa.Table, lines: pa.Table) -> int:
    db.sql(f"CREATE VIEW v WITH (policy = '{policy}') AS {query}")
    read = 0
    for change in ("delete", "insert"):
        with db.transaction() as tx:
            getattr(tx, change)("orders", orders)
            getattr(tx, change)("lineitem", lines)
        read += sum(e.rows_read or 0 for e in db.history(1) if e.view == "v")
    if not db.audit("v").ok:
        raise SystemExit(f"under {policy} a view is wrong: {query}")
    db.sql("DROP VIEW v")
    return read


def measure(policy: str, size: int, rounds: int) -> dict[str, Any]:
    """One row into s, whose key has `size` rows in r and in t: the median, and what it reads."""
    with TemporaryDirectory() as folder, ev.open(f"{folder}/store", engine="duckdb") as db:
        db.sql(TABLES)
        db.sql(f"CREATE VIEW q WITH (policy = '{policy}') AS {QUERY}")
        with db.transaction() as tx:
            tx.insert("r", [(f"{n}.25", 1) for n in range(size)])
            tx.insert("t", [(1, f"{n}.50") for n in range(size)])
        times: list[float] = []
        read: list[int] = []
        for number in range(rounds + 2):
            began = perf_counter()
            with db.transaction() as tx:
                tx.insert("s", [(1, 1, number)])
            times.append((perf_counter() - began) * 1000)
            read.append(sum(e.rows_read or 0 for e in db.history(1) if e.view == "q"))
        if not db.audit("q").ok:
            raise SystemExit(f"{policy}: the view is wrong")
        states = [each for each in db.status() if each.kind == "state"]
        return {
            "policy": policy,
            "group": size,
            "rows_read": read[-1],
            "ms": round(median(times[2:]), 2),
            "states": len(states),
            "state_bytes": sum(each.bytes for each in states),
        }


if __name__ == "__main__":
    sys.exit(main())
