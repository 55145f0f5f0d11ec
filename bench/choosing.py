"""What `choose` costs: each view under large changes, kept in either way, and as it is chosen.

python -m bench.choosing [--engine duckdb|spark] [--views q01,q06] [--changes 1%,10%] [--rounds N]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.ours import Ours, copied, template
from bench.plain import started
from bench.prepared import Plan, prepared
from bench.rows import RESULTS, tell
from bench.tables import DATA, generated, queries
from everview.database.cost.choose import Choice, Way, choose

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT = 1.1
"""How many times as long as the better way the chosen one may take."""
WARM, ROUNDS = 1, 2
WAYS: tuple[Way | None, ...] = (None, "incremental", "recompute")
"""None leaves it to the database."""


@dataclass(frozen=True)
class Figure:
    """The median transaction of one size under one view: as chosen, and in either way.

    A view that is always maintained, since its value depends on the order of addition, has no
    `recompute_ms`.
    """

    engine: str
    scale: float
    change: str
    view: str
    way: str
    chosen_ms: float
    incremental_ms: float
    recompute_ms: float | None

    @property
    def over(self) -> float:
        """How many times as long as the better of the two ways the one chosen takes.

        What the transactions took that were chosen for is told beside it: the difference from the
        same way when it is asked for is the machine's.
        """
        incremental, recompute = self.incremental_ms, self.recompute_ms or inf
        return (recompute if self.way == "recompute" else incremental) / min(incremental, recompute)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 when a choice cost too much."""
    options = _options(arguments)
    figures = list(_figures(options))
    tell(
        options.out / f"choosing-{options.engine}",
        (asdict(figure) for figure in figures),
        markdown(figures),
    )
    costly = [each for each in figures if each.over > LIMIT]
    for each in costly:
        print(f"{each.view}, {each.change}: {each.over:.2f} times the better way", file=sys.stderr)
    return 1 if costly else 0


def markdown(figures: Sequence[Figure]) -> str:
    """All figures as a table."""
    lines = [
        "| engine | scale | change | view | chosen | chosen ms | incremental ms | recompute ms"
        " | over the better |",
        "|---|---|---|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {f.engine} | {f.scale:g} | {f.change} | {f.view} | {f.way} | {f.chosen_ms:.1f}"
        f" | {f.incremental_ms:.1f} | {f.recompute_ms or '–'} | {f.over:.2f} |"
        for f in figures
    ]
    return "\n".join(lines)


def _figures(options: argparse.Namespace) -> Iterator[Figure]:
    tables = generated(options.scale, options.data)
    session = started() if options.engine == "spark" else None
    store = template(options.data, tables, options.engine, session, fresh=False)
    for change in options.changes:
        plan = prepared(tables, options.data, [change], options.rounds)
        for view in options.views:
            with TemporaryDirectory(prefix="run-", dir=options.data) as scratch:
                figure = _measured(options, change, view, plan, store, Path(scratch), session)
            print(f"{view}, {change}: {figure.way}, {figure.over:.2f}", file=sys.stderr)
            yield figure
    if session is not None:
        session.stop()


def _measured(
    options: argparse.Namespace,
    change: str,
    view: str,
    plan: Plan,
    store: Path,
    scratch: Path,
    session: SparkSession | None,
) -> Figure:
    """The same transactions in each of the ways, each time from the same tables."""
    spent: dict[Way | None, float] = {}
    taken: dict[Way | None, str] = {}
    for way in WAYS:
        ours = Ours(copied(store, scratch / "store"), options.engine, session)
        ours.create({view: queries()[view]})
        spent[way], taken[way] = _spent(ours, way, plan, options.rounds)
        ours.close()
        shutil.rmtree(scratch / "store")
    return Figure(
        options.engine,
        options.scale,
        change,
        view,
        taken[None],
        round(spent[None], 1),
        round(spent["incremental"], 1),
        round(spent["recompute"], 1) if taken["recompute"] == "recompute" else None,
    )


def _spent(ours: Ours, way: Way | None, plan: Plan, rounds: int) -> tuple[float, str]:
    """The median transaction in one way, without compaction after it, and the way last taken."""
    ours.db.handle.maintainer.chooser = choose if way is None else lambda *_: Choice(way)
    spent = []
    for number in range(WARM + rounds):
        cost = ours.apply(plan.load(number))
        spent.append(cost.ms - cost.phases.get("compaction", 0.0))
    taken = [e.way for e in ours.db.history() if e.kind == "transaction" and e.view is None]
    return median(spent[WARM:]), str(taken[-1])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.choosing", description=__doc__)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--changes", default="1%,10%", help="parts of the orders")
    parser.add_argument("--views", default="all", help="such as q01,q06")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the median of so many")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--data", type=Path, default=DATA, help="where generated tables are kept")
    options = parser.parse_args(arguments)
    options.changes = options.changes.split(",")
    options.views = list(queries()) if options.views == "all" else options.views.split(",")
    unknown = [name for name in options.views if name not in queries()]
    if unknown:
        parser.error(f"there is no view {unknown[0]}")
    return options


if __name__ == "__main__":
    sys.exit(main())
