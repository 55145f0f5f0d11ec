"""Three views kept by Everview against scripts written by hand for just these three.

python -m bench.hand [--engine duckdb|spark] [--scale S] [--transactions N] [--quick]
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Protocol

import pyarrow as pa

import everview as ev
from bench import three_views
from bench.delta_duckdb import DeltaDuckDB
from bench.delta_spark import WAYS, DeltaSpark
from bench.rows import RESULTS, tell
from bench.tpch import DATA, Change
from everview.database.database import Database

LIMIT = 1.5
"""How many times as long as by hand a transaction may take."""
OURS = "everview"


class Side(Protocol):
    """Whoever keeps the views."""

    def apply(self, change: Change) -> None:
        """One transaction, durable when this returns."""

    def answers(self) -> dict[str, pa.Table]:
        """The views as they are kept."""

    def close(self) -> None:
        """Give the memory back."""


class Everview:
    """The views in a store."""

    def __init__(self, db: Database, tables: Mapping[str, pa.Table]) -> None:
        self._db = db
        for declaration in three_views.declarations():
            db.sql(declaration)
        for name, rows in tables.items():
            db.insert(name, rows)
        for name, query in three_views.QUERIES.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def apply(self, change: Change) -> None:
        """One transaction."""
        with self._db.transaction() as tx:
            if change.deleted.num_rows:
                tx.delete("lineitem", change.deleted)
            if change.inserted.num_rows:
                tx.insert("lineitem", change.inserted)

    def answers(self) -> dict[str, pa.Table]:
        """What is read from the views."""
        return {name: self._db.read(name).to_arrow() for name in three_views.QUERIES}

    def close(self) -> None:
        """Release the store."""
        self._db.close()


@dataclass(frozen=True)
class Figure:
    """The median transaction of so many lines on one side."""

    engine: str
    scale: float
    side: str
    rows: int
    ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 when answers differ, or when a transaction takes too long."""
    options = _options(arguments)
    with TemporaryDirectory(prefix="everview-hand-") as scratch:
        figures, different = run(options, Path(scratch))
    tell(
        options.results / f"hand-{options.engine}",
        (asdict(figure) for figure in figures),
        markdown(figures),
    )
    for each in different:
        print(f"{each}: not what a recomputation answers", file=sys.stderr)
    slow = (
        [] if options.quick else [rows for rows, ratio in ratios(figures).items() if ratio > LIMIT]
    )
    for each in slow:
        print(f"{each:,} lines take more than {LIMIT} times as long as by hand", file=sys.stderr)
    return 1 if different or slow else 0


def run(options: argparse.Namespace, scratch: Path) -> tuple[list[Figure], list[str]]:
    """The same transactions on every side, in turn, and the views that came out wrong."""
    tables = three_views.tables(options.scale, options.data)
    sides = _sides(options.engine, tables, scratch)
    counts = dict.fromkeys(options.rows, options.warm_up + options.transactions)
    applied: list[Change] = []
    taken: dict[tuple[str, int], list[float]] = {}
    for rows, change in three_views.changes(tables["lineitem"], counts, options.seed):
        turn = len(applied) % len(sides)
        for name in [*sides, *sides][turn : turn + len(sides)]:
            taken.setdefault((name, rows), []).append(_timed(sides[name], change))
        applied.append(change)
    figures = [
        Figure(
            options.engine,
            options.scale,
            name,
            rows,
            round(1000 * median(taken[name, rows][options.warm_up :]), 2),
        )
        for rows in options.rows
        for name in sides
    ]
    wanted = {
        name: rows_of(table) for name, table in three_views.recomputed(tables, applied).items()
    }
    different = [
        f"{side}, {name}"
        for side, kept in sides.items()
        for name, table in kept.answers().items()
        if rows_of(table) != wanted[name]
    ]
    for side in reversed(sides.values()):
        side.close()
    return figures, different


def _sides(engine: str, tables: Mapping[str, pa.Table], scratch: Path) -> dict[str, Side]:
    db: Any = ev.open(str(scratch / "store"), engine=engine)
    ours: dict[str, Side] = {OURS: Everview(db, tables)}
    if engine == "duckdb":
        return ours | {"by hand": DeltaDuckDB(scratch / "by-hand", tables)}
    session = db.engine.session
    return ours | {
        f"by hand, {way}": DeltaSpark(scratch / way, tables, session, way) for way in WAYS
    }


def _timed(side: Side, change: Change) -> float:
    gc.collect()
    began = perf_counter()
    side.apply(change)
    return perf_counter() - began


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows of a table, columns and rows in one order."""
    columns = (table.column(name).to_pylist() for name in sorted(table.column_names))
    return sorted(zip(*columns, strict=True))


def ratios(figures: Iterable[Figure]) -> dict[int, float]:
    """For each number of lines, our time over the better one by hand."""
    times: dict[int, dict[str, float]] = {}
    for figure in figures:
        times.setdefault(figure.rows, {})[figure.side] = figure.ms
    return {rows: each.pop(OURS) / min(each.values()) for rows, each in times.items()}


def markdown(figures: Sequence[Figure]) -> str:
    """A line for each number of lines; the ratio is to the better one by hand."""
    sides = list(dict.fromkeys(figure.side for figure in figures))
    lines = [
        f"Three views, one transaction in milliseconds, engine {figures[0].engine}, "
        f"scale {figures[0].scale:g}.",
        "",
        f"| lines changed | {' | '.join(sides)} | ratio |",
        "|---:" * (len(sides) + 2) + "|",
    ]
    for rows, ratio in ratios(figures).items():
        times = " | ".join(f"{f.ms:.1f}" for f in figures if f.rows == rows)
        lines.append(f"| {rows:,} | {times} | {ratio:.2f} |")
    return "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.hand", description=__doc__)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--transactions", type=int, default=5, help="how many of each size")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA, help="where tables are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--quick", action="store_true", help="small and without a limit")
    options = parser.parse_args(arguments)
    options.warm_up, options.rows = 2, (1, 1000, 60_000)
    if options.quick:
        options.scale, options.rows = 0.01, (1, 1000)
        options.warm_up, options.transactions = 1, 2
    return options


if __name__ == "__main__":
    sys.exit(main())
