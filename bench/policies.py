"""The policies beside each other: rows read and time per change as groups grow, and on TPC-H.

python -m bench.policies [--sizes 10,100,1000] [--scale 0.01] [--quick]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
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
CHOSEN = "as chosen"
QUERY = """SELECT s.g, SUM(r.a * t.f) AS total, COUNT(*) AS n
    FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d GROUP BY s.g"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the results, and say whether rows read are flat under higher-order."""
    parser = argparse.ArgumentParser(prog="bench.policies", description=__doc__)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rows", type=int, default=20, help="of each table that change")
    parser.add_argument("--quick", action="store_true", help="two small groups, and no TPC-H")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    sizes = [4, 16] if options.quick else [int(size) for size in options.sizes.split(",")]
    rounds = 2 if options.quick else options.rounds
    rows = [measure(policy, size, rounds) for size in sizes for policy in POLICIES]
    tell(options.results / "policies", rows, table(rows))
    if not options.quick:
        found = tpch(options.scale, options.rows)
        tell(options.results / "policies-tpch", found, table(found))
    read = {row["rows_read"] for row in rows if row["policy"] == HIGHER_ORDER}
    return 0 if len(read) == 1 else 1


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    columns = [*rows[0]]
    lines = [columns, ["---"] * len(columns), *([row[c] for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def tpch(scale: float, rows: int) -> list[dict[str, Any]]:
    """Rows read per changed row, by view and policy: of orders with their lines, and of each table.

    The second adds up what a row of every table of the query reads. The changed rows go, and come
    back. Each measurement begins with a fresh copy of the store.
    """
    found = []
    with TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        with ev.open(str(base), engine="duckdb") as db:
            _load(db, generated(scale))
            some = {name: _some(db, name, rows) for name in KEYS}
            known = ", ".join(map(str, some["orders"].column("o_orderkey").to_pylist()))
            lines = db.sql(f"SELECT * FROM lineitem WHERE l_orderkey IN ({known})").to_arrow()
        together = {"orders": some["orders"], "lineitem": lines}
        for view, query in queries().items():
            row: dict[str, Any] = {"view": view, "chosen": ""}
            for way in (*POLICIES, CHOSEN):
                policy = "" if way == CHOSEN else f"WITH (policy = '{way}') "
                store = Path(folder) / "declared"
                shutil.copytree(base, store)
                with ev.open(str(store), engine="duckdb") as db:
                    db.sql(f"CREATE VIEW v {policy}AS {query}")
                    row["chosen"] = next(e.policy for e in db.status() if e.name == "v").split()[0]
                each = [{name: some[name]} for name in KEYS if name in query]
                read = [_rows_read(store, change) for change in each]
                if any(name in query for name in together):
                    row[f"{way}, orders"] = round(_rows_read(store, together), 2)
                else:
                    row[f"{way}, orders"] = None
                row[f"{way}, each table"] = round(sum(read), 2)
                shutil.rmtree(store)
            found.append(row)
    return found


def _load(db: Database, folder: Path) -> None:
    for name in KEYS:
        file = folder / f"{name}.parquet"
        db.sql(declaration(name, file))
        with db.transaction() as tx:
            tx.insert(name, pq.read_table(file))


def _some(db: Database, table: str, rows: int) -> pa.Table:
    """Rows from all over a table."""
    first, keys = KEYS[table][0], ", ".join(KEYS[table])
    order = f"({first} + 1) * 7919 % 10007, {keys}"
    return db.sql(f"SELECT * FROM {table} ORDER BY {order} LIMIT {rows}").to_arrow()


def _rows_read(store: Path, change: Mapping[str, pa.Table]) -> float:
    """Rows read per changed row when rows of some tables go and come back."""
    copy, read = store.parent / "copy", 0
    shutil.copytree(store, copy)
    with ev.open(str(copy), engine="duckdb") as db:
        for verb in ("delete", "insert"):
            with db.transaction() as tx:
                for name, rows in change.items():
                    getattr(tx, verb)(name, rows)
            read += sum(e.rows_read or 0 for e in db.history(1) if e.view == "v")
        if not db.audit("v").ok:
            raise SystemExit(f"a view is wrong after a change of {', '.join(change)}")
    shutil.rmtree(copy)
    return read / (2 * sum(rows.num_rows for rows in change.values()))


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
