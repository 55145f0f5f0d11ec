"""What the check of an assertion costs: a join of two tables, and a change of 100 rows.

    python -m bench.assertions [--engine duckdb] [--rows 1000000] [--quick]

Two stores take the same transactions in turn, one with the assertion and one without it. The check
is the median difference of a pair; beside it the time to evaluate the assertion's query as a whole.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

import everview as ev
from bench.rows import RESULTS, tell
from everview.database.database import Database

CHANGE = 100
ROUNDS = 25
TIMES_CHEAPER = 50
"""How many times cheaper a check has to be than the evaluation of its query."""
VIOLATING = (
    "SELECT l.id, o.most FROM lines AS l JOIN orders AS o ON l.o = o.id WHERE l.price > o.most"
)
TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, most BIGINT);
    CREATE TABLE lines (id BIGINT PRIMARY KEY, o BIGINT, price BIGINT)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the results, and say whether the check is cheap enough."""
    parser = argparse.ArgumentParser(prog="bench.assertions", description=__doc__)
    parser.add_argument("--engine", default="duckdb", choices=["duckdb", "spark"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="few rows; only rows read are judged")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    rows = 10_000 if options.quick else options.rows
    row = measure(options.engine, rows, 3 if options.quick else ROUNDS)
    lines = [[*row], ["---"] * len(row), [*row.values()]]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
    tell(options.results / f"assertions-{options.engine}", [row], table)
    few_rows = row["rows_read"] * TIMES_CHEAPER < 2 * rows
    return 0 if few_rows and (options.quick or row["times"] > TIMES_CHEAPER) else 1


def measure(engine: str, rows: int, rounds: int) -> dict[str, Any]:
    """Milliseconds: the check, transactions without and with it, and its query as a whole."""
    with ExitStack() as stack:
        plain, checked = (_loaded(stack, engine, rows) for _ in range(2))
        checked.sql(f"CREATE ASSERTION within CHECK (NOT EXISTS ({VIOLATING}))")
        without, within, read = [], [], []
        for number in range(rounds + 2):
            change = lines(rows + number * CHANGE, CHANGE, rows)
            for db, times in ((plain, without), (checked, within)):
                began = perf_counter()
                db.insert("lines", change)
                times.append((perf_counter() - began) * 1000)
            read.append(_rows_read(checked) - _rows_read(plain))
        whole = []
        for _ in range(3):
            began = perf_counter()
            found = checked.sql(VIOLATING)
            assert found is not None
            assert not found.rows(), "no row violates the assertion"
            whole.append((perf_counter() - began) * 1000)
    check = median(b - a for a, b in zip(without[2:], within[2:], strict=True))
    return {
        "engine": engine,
        "rows": 2 * rows,
        "changed": CHANGE,
        "without_ms": round(median(without[2:]), 2),
        "with_ms": round(median(within[2:]), 2),
        "check_ms": round(check, 2),
        "whole_ms": round(median(whole), 2),
        "times": round(median(whole) / max(check, 0.01)),
        "rows_read": read[-1],
    }


def _loaded(stack: ExitStack, engine: str, rows: int) -> Database:
    db = stack.enter_context(ev.open(stack.enter_context(TemporaryDirectory()), engine=engine))
    db.sql(TABLES)
    db.insert("orders", pa.table({"id": range(rows), "most": [1000] * rows}))
    db.insert("lines", lines(0, rows, rows))
    return db


def lines(first: int, count: int, among: int) -> pa.Table:
    """Lines of orders spread over all there are; no price is beyond the limit of an order."""
    ids = range(first, first + count)
    return pa.table(
        {"id": ids, "o": [7919 * i % among for i in ids], "price": [i % 999 for i in ids]}
    )


def _rows_read(db: Database) -> int:
    return next(e.rows_read or 0 for e in db.history(1) if e.view is None)


if __name__ == "__main__":
    sys.exit(main())
