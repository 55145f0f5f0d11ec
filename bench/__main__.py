"""TPC-H: our transactions against recomputing the same views, on both engines.

python -m bench [--engine spark|duckdb|all] [--scale S] [--changes 0.001%,0.1%,10%]
                [--views q01,q06|all] [--alone | --together] [--deletes random|recent]
                [--rounds N] [--out FOLDER] [--fresh] [--headline]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import everview as ev
from bench import headline, report
from bench.measure import Bench, Plan, Unequal, planned, recompute, together
from bench.ours import template
from bench.plain import PlainDuckDB, PlainSpark, started
from bench.progress import Progress
from bench.refresh import DELETES, Refreshes
from bench.rows import RESULTS, file_of
from bench.tables import DATA, generated, queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("duckdb", "spark")
CHANGES = "0.001%,0.1%,10%"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write results; 1 when a view is refused or not what recomputation says."""
    options = _options(arguments)
    if options.headline:
        headline.write(options.out)
        return 0
    problems = run(options)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def run(options: argparse.Namespace) -> list[str]:
    """Make the transactions once, then measure each engine with them; what went wrong."""
    options.data.mkdir(parents=True, exist_ok=True)
    tables = generated(options.scale, options.data)
    with TemporaryDirectory(prefix="run-", dir=options.data) as folder:
        scratch = Path(folder)
        refreshes = Refreshes(tables, scratch / "changes", deletes=options.deletes)
        plan = planned(refreshes, options.changes, options.rounds)
        refreshes.tables_after(scratch / "after.duckdb")
        refreshes.close()
        progress = Progress(len(options.engines) * _steps(options))
        problems: list[str] = []
        for engine in options.engines:
            progress.about(f"[{engine}, scale {options.scale:g}, {options.deletes} deletes]")
            problems += _measure(engine, options, plan, scratch, tables, progress)
        return problems


def _measure(
    engine: str,
    options: argparse.Namespace,
    plan: Plan,
    scratch: Path,
    tables: Path,
    progress: Progress,
) -> list[str]:
    """Recompute all views, then keep them: each in a store of its own, and many in one."""
    problems = []
    session = started() if engine == "spark" else None
    try:
        plain = _plain(session, scratch)
        recomputed = recompute(plain, options.views, options.rounds, progress)
        plain.close()
        with progress.step("load the tables"):
            store = template(options.data, tables, engine, session, fresh=options.fresh)
        bench = Bench(
            engine, options.scale, options.deletes, store, scratch, session, plan, progress
        )
        file = file_of(options.scale, options.deletes, options.out)
        tables_ms = bench.tables()
        for label, texts in _sets(options).items():
            try:
                report.write(file, bench.views(label, texts, recomputed, tables_ms))
            except (Unequal, ev.UserError) as problem:
                problems.append(f"{engine}, {label}: {problem}")
        return problems
    finally:
        if session is not None:
            session.stop()


def _plain(session: SparkSession | None, scratch: Path) -> PlainDuckDB | PlainSpark:
    if session is None:
        return PlainDuckDB(scratch / "after.duckdb")
    return PlainSpark(session, scratch / "after.duckdb", scratch / "plain")


def _sets(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The sets of views that share a store, by the names of their rows."""
    alone = {name: {name: text} for name, text in options.views.items()}
    many = together(options.views, len(queries()))
    return (alone if options.alone else {}) | (many if options.together else {})


def _steps(options: argparse.Namespace) -> int:
    sizes = len(options.changes)
    return len(options.views) + 1 + sizes + len(_sets(options)) * (sizes + 2)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="TPC-H views against recomputation")
    parser.add_argument("--engine", choices=(*ENGINES, "all"), default="all")
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--changes", default=CHANGES, help="parts of the orders, ascending")
    parser.add_argument("--views", default="all", help="such as q01,q06")
    parser.add_argument("--alone", action="store_true", help="only each view in its own store")
    parser.add_argument("--together", action="store_true", help="only many views in one store")
    parser.add_argument("--deletes", choices=tuple(DELETES), default="random")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many transactions")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--data", type=Path, default=DATA, help="where generated tables are kept")
    parser.add_argument("--fresh", action="store_true", help="load the tables anew")
    parser.add_argument("--headline", action="store_true", help="write the table in README")
    options = parser.parse_args(arguments)
    if options.alone == options.together:
        options.alone = options.together = True
    texts = queries()
    names = list(texts) if options.views == "all" else options.views.split(",")
    unknown = [name for name in names if name not in texts]
    if unknown:
        parser.error(f"there is no view {unknown[0]}; there are {', '.join(texts)}")
    options.views = {name: texts[name] for name in names}
    options.changes = options.changes.split(",")
    options.engines = ENGINES if options.engine == "all" else (options.engine,)
    return options


if __name__ == "__main__":
    sys.exit(main())
