"""One transaction embedded, against a script written by hand that does the same durable work.

python -m bench.embedded [--scale S] [--transactions N] [--seed N] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import everview as ev
from bench.handwritten import Handwritten
from bench.tables import DATA
from bench.tpch import COLUMNS, KEYS, Change, Trade, tables
from bench.views import VIEWS, View
from everview.database.database import Database

LIMIT = 2.0
"""How many times as long as the hand-written script a transaction of many rows may take."""
ROWS = (1, 1000)
FURTHER = (0, 20, 100)


@dataclass(frozen=True)
class Times:
    """Milliseconds of some transactions of one kind."""

    median: float
    p90: float
    mean: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Times:
        """From the seconds each took."""
        taken = [1000 * each for each in seconds]
        return cls(median(taken), quantiles(taken, n=10, method="inclusive")[-1], mean(taken))


@dataclass(frozen=True)
class Comparison:
    """The same transactions on both sides."""

    views: int
    rows: int
    transactions: int
    handwritten: Times
    everview: Times

    @property
    def ratio(self) -> float:
        """How many times as long as by hand."""
        return self.everview.median / self.handwritten.median


@dataclass(frozen=True)
class Untouched:
    """A transaction of one row among tables and views that it does not touch."""

    further: int
    transactions: int
    everview: Times


@dataclass(frozen=True)
class Report:
    """What was measured, and the views on which the two sides or a recomputation differ."""

    scale: float
    comparisons: tuple[Comparison, ...]
    untouched: tuple[Untouched, ...]
    different: tuple[str, ...]

    @property
    def slow(self) -> tuple[Comparison, ...]:
        """The transactions of many rows that take too long."""
        return tuple(c for c in self.comparisons if c.rows == max(ROWS) and c.ratio > LIMIT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when answers differ, or when a transaction takes too long."""
    options = _options(arguments)
    with TemporaryDirectory(prefix="everview-bench-") as scratch:
        report = run(options, Path(scratch))
    if options.json:
        found = asdict(report)
        for told, each in zip(found["comparisons"], report.comparisons, strict=True):
            told["ratio"] = each.ratio
        print(json.dumps(found, indent=2))
    else:
        show(report)
    for name in report.different:
        print(f"{name}: the two sides or a recomputation differ", file=sys.stderr)
    for slow in () if options.quick else report.slow:
        print(
            f"{slow.rows:,} rows under {slow.views} view(s) take {slow.ratio:.2f} times as long as "
            f"by hand, more than {LIMIT:g} times",
            file=sys.stderr,
        )
    return 1 if report.different or (report.slow and not options.quick) else 0


def run(options: argparse.Namespace, scratch: Path) -> Report:
    """Load both sides, measure one view, three views and further tables, and compare answers."""
    rows = tables(options.scale, Path(options.data))
    trade = Trade(rows["lineitem"], options.seed)
    by_hand = Handwritten(scratch / "by-hand", rows)
    with ev.open(str(scratch / "store"), engine="duckdb") as db:
        for name, columns in COLUMNS.items():
            listed = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
            db.sql(f"CREATE TABLE {name} ({listed}, PRIMARY KEY ({', '.join(KEYS[name])}))")
            db.insert(name, rows.pop(name))
        comparisons: list[Comparison] = []
        for before, after in pairwise((0, 1, len(VIEWS))):
            for view in VIEWS[before:after]:
                by_hand.create(view)
                db.sql(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
            comparisons += [_compare(after, n, db, by_hand, trade, options) for n in ROWS]
        different = tuple(view.name for view in VIEWS if not _agree(view, db, by_hand))
        by_hand.close()
        untouched = tuple(_among(n, db, trade, options) for n in options.further)
    return Report(options.scale, tuple(comparisons), untouched, different)


def _compare(
    views: int,
    rows: int,
    db: Database,
    by_hand: Handwritten,
    trade: Trade,
    options: argparse.Namespace,
) -> Comparison:
    """The same changes on both sides, in turn, each side first as often as second."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(options.warm_up + options.transactions):
        change = trade.change(rows)
        sides: list[tuple[Callable[[Change], None], list[float]]]
        sides = [(by_hand.apply, theirs), (lambda c: _apply(db, c), ours)]
        for apply, taken in sides if number % 2 else reversed(sides):
            taken.append(_timed(apply, change))
    return Comparison(
        views,
        rows,
        options.transactions,
        Times.of(theirs[options.warm_up :]),
        Times.of(ours[options.warm_up :]),
    )


def _among(further: int, db: Database, trade: Trade, options: argparse.Namespace) -> Untouched:
    """The transaction of one row in a store that has so many further tables, each with a view."""
    there = sum(name.startswith("further_") for name in db.catalog.tables)
    for number in range(there, further):
        table = f"further_{number}"
        db.sql(f"CREATE TABLE {table} (a INT, b INT)")
        db.insert(table, [(number % 7, number), (number % 5, 1)])
        db.sql(
            f"CREATE MATERIALIZED VIEW {table}_sums AS "
            f"SELECT a, SUM(b) AS b, COUNT(*) AS n FROM {table} GROUP BY a"
        )
    taken = [
        _timed(lambda c: _apply(db, c), trade.change(1))
        for _ in range(options.warm_up + options.transactions)
    ]
    return Untouched(further, options.transactions, Times.of(taken[options.warm_up :]))


def _apply(db: Database, change: Change) -> None:
    with db.transaction() as tx:
        if change.deleted.num_rows:
            tx.delete("lineitem", change.deleted)
        if change.inserted.num_rows:
            tx.insert("lineitem", change.inserted)


def _timed(apply: Callable[[Change], None], change: Change) -> float:
    gc.collect()
    began = perf_counter()
    apply(change)
    return perf_counter() - began


def _agree(view: View, db: Database, by_hand: Handwritten) -> bool:
    """Whether our view, the one kept by hand and a recomputation have the same rows."""
    found = [_rows(each) for each in (by_hand.recomputed(view), by_hand.value(view))]
    return found[0] == found[1] == _rows(db.read(view.name).to_arrow())


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = (table.column(name).to_pylist() for name in sorted(table.column_names))
    return sorted(zip(*columns, strict=True))


def show(report: Report) -> None:
    """Two tables."""
    console = Console(highlight=False, width=100)
    first = Table(
        title=f"One transaction in milliseconds, median (90th percentile), scale {report.scale:g}"
    )
    for title in ("views", "rows changed", "by hand", "Everview", "ratio"):
        first.add_column(title, justify="right")
    for each in report.comparisons:
        first.add_row(
            str(each.views),
            f"{each.rows:,}",
            _told(each.handwritten),
            _told(each.everview),
            f"{each.ratio:.2f}",
        )
    console.print(first)
    second = Table(title="One row changed among tables and views that it does not touch")
    for title in ("further tables and views", "Everview"):
        second.add_column(title, justify="right")
    for one in report.untouched:
        second.add_row(f"{one.further} + {one.further}", _told(one.everview))
    console.print(second)


def _told(times: Times) -> str:
    return f"{times.median:.1f} ({times.p90:.1f})"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.embedded", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--transactions", type=int, default=40, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", default=str(DATA), help="where generated tables are kept")
    parser.add_argument("--quick", action="store_true", help="small and without a limit")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(arguments)
    options.warm_up, options.further = 4, FURTHER
    if options.quick:
        options.scale, options.transactions = 0.01, 2
        options.warm_up, options.further = 1, (0, 2)
    return options


if __name__ == "__main__":
    sys.exit(main())
