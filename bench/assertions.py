"""What the check of an assertion costs: a join of two tables, and a change of 100 rows.

    python -m bench.assertions [--engine duckdb] [--rows 1000000]

The check is the time of a transaction with the assertion less that of one without it, each the
median of some; beside it the time to evaluate the assertion's query as a whole.
"""

from __future__ import annotations

import argparse
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa

import everview as ev

CHANGE = 100
TIMES = 9
VIOLATING = (
    "SELECT l.id, o.most FROM lines AS l JOIN orders AS o ON l.o = o.id WHERE l.price > o.most"
)
TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, most BIGINT);
    CREATE TABLE lines (id BIGINT PRIMARY KEY, o BIGINT, price BIGINT)
"""


def orders(first: int, count: int) -> pa.Table:
    """Orders whose limit is beyond every price."""
    return pa.table({"id": range(first, first + count), "most": [1000] * count})


def lines(first: int, count: int, among: int) -> pa.Table:
    """Lines of orders spread over all there are."""
    ids = range(first, first + count)
    return pa.table(
        {"id": ids, "o": [7919 * i % among for i in ids], "price": [i % 999 for i in ids]}
    )


def transaction_ms(db: ev.Database, rows: int, offset: int) -> float:
    """The median time of a transaction of 100 lines."""
    times = []
    for number in range(TIMES):
        change = lines(rows + offset + number * CHANGE, CHANGE, rows)
        began = perf_counter()
        db.insert("lines", change)
        times.append((perf_counter() - began) * 1000)
    return median(times[2:])


def measure(engine: str, rows: int) -> tuple[float, float, float]:
    """Milliseconds: a transaction without and with the assertion, and its query as a whole."""
    with TemporaryDirectory() as at, ev.open(at, engine=engine) as db:
        db.sql(TABLES)
        db.insert("orders", orders(0, rows))
        db.insert("lines", lines(0, rows, rows))
        without = transaction_ms(db, rows, 0)
        db.sql(f"CREATE ASSERTION within CHECK (NOT EXISTS ({VIOLATING}))")
        within = transaction_ms(db, rows, TIMES * CHANGE)
        whole = []
        for _ in range(3):
            began = perf_counter()
            found = db.sql(VIOLATING)
            assert found is not None
            assert not found.rows()
            whole.append((perf_counter() - began) * 1000)
    return without, within, median(whole)


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="duckdb", choices=["duckdb", "spark"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    without, within, whole = measure(given.engine, given.rows)
    check = max(within - without, 0.0)
    print(
        f"{given.engine}, 2 x {given.rows} rows, {CHANGE} changed: {without:.1f} ms without, "
        f"{within:.1f} ms with the assertion; check {check:.1f} ms, whole {whole:.1f} ms, "
        f"{whole / check if check else float('inf'):.0f} times"
    )


if __name__ == "__main__":
    main()
