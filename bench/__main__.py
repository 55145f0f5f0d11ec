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
from bench.measure import Bench, Unequal, together
from bench.ours import template
from bench.plain import PlainDuckDB, PlainSpark, started
from bench.prepared import Plan, prepared
from bench.progress import Progress
from bench.refresh import DELETES
from bench.rows import RESULTS, file_of
from bench.tables import DATA, generated, queries
from bench.view_sets import Turns

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
    plan = prepared(
        tables,
        options.data,
        options.changes,
        options.rounds,
        deletes=options.deletes,
        fresh=options.fresh,
    )
    progress = Progress(len(options.engines) * _steps(options))
    problems: list[str] = []
    for engine in options.engines:
        progress.about(f"[{engine}, scale {options.scale:g}, {options.deletes} deletes]")
        with TemporaryDirectory(prefix="run-", dir=options.data) as folder:
            problems += _measure(engine, options, plan, Path(folder), tables, progress)
    return problems


def _measure(
    engine: str,
    options: argparse.Namespace,
    plan: Plan,
    scratch: Path,
    tables: Path,
    progress: Progress,
) -> list[str]:
    """Keep each view alone, then many together, all in one store."""
    problems = []
    session = started() if engine == "spark" else None
    try:
        with progress.step("load the tables"):
            store = template(options.data, tables, engine, session, fresh=options.fresh)
        plain = _plain(session, plan, scratch)
        turns = Turns(store, scratch / "store", engine, session, plan)
        bench = Bench(engine, options.scale, options.deletes, turns, plain, plan, progress)
        file = file_of(options.scale, options.deletes, options.out)
        without = bench.tables(scratch)
        for label, texts in _sets(options).items():
            try:
                report.write(file, bench.views(label, texts, without))
            except (Unequal, ev.UserError) as problem:
                problems.append(f"{engine}, {label}: {problem}")
        turns.close()
        plain.close()
        return problems
    finally:
        if session is not None:
            session.stop()


def _plain(session: SparkSession | None, plan: Plan, scratch: Path) -> PlainDuckDB | PlainSpark:
    if session is None:
        return PlainDuckDB(plan.database)
    return PlainSpark(session, plan.written(), scratch / "answers")


def _sets(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The sets of views that share a store, by the names of their rows."""
    alone = {name: {name: text} for name, text in options.views.items()}
    many = together(options.views, len(queries()))
    return (alone if options.alone else {}) | (many if options.together else {})


def _steps(options: argparse.Namespace) -> int:
    sizes = len(options.changes)
    return 1 + sizes + len(_sets(options)) * (sizes + 3)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="TPC-H views against recomputation")
    parser.add_argument("--engine", choices=(*ENGINES, "all"), default="all")
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--changes", default=CHANGES, help="parts of the orders, ascending")
    parser.add_argument("--views", default="all", help="such as q01,q06")
    parser.add_argument("--alone", action="store_true", help="only each view in its own store")
    parser.add_argument("--together", action="store_true", help="only many views in one store")
    parser.add_argument("--deletes", choices=tuple(DELETES), default="random")
    parser.add_argument("--rounds", type=int, help="the median of so many transactions")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--data", type=Path, default=DATA, help="where generated tables are kept")
    parser.add_argument("--fresh", action="store_true", help="load the tables again")
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
