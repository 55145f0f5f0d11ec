"""Spark does the work: DataFrames in, nothing held, the first transaction, a bounded driver.

python -m bench.driver [--measure frame,large,unheld,policies,first,memory,stream|all] [--scale S]
                       [--views q01,q06|all] [--changes 1%,10%] [--rounds N] [--memory 1GB]
                       [--transactions N] [--heap 8g] [--out FOLDER] [--data FOLDER] [--fresh]
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq

import everview as ev
from bench import driver_rows, resource_usage
from bench.baseline import Baseline, as_frames
from bench.driver_rows import Batches, Figure, Phase, UnderPolicy
from bench.measure import Unequal, must_be_equal
from bench.ours import Committed, Ours, copied, template
from bench.plain import started
from bench.prepared import Plan, prepared
from bench.refresh import Refresh
from bench.rows import RESULTS
from bench.tables import DATA, generated, queries
from bench.three_views import QUERIES as THREE_VIEWS
from everview.program.policy import CIRCUIT, HIGHER_ORDER
from everview.store.manifest import Manifest
from everview.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = 10
"""How many orders a small DataFrame has: half of them new, half of them deleted."""
CHANGES = {
    "large": ("1%", "10%", "50%"),
    "unheld": ("0.001%", "0.1%"),
    "policies": ("0.001%", "1%"),
    "memory": ("0.001%",),
}
ROUNDS = {"frame": 10, "large": 2, "unheld": 5, "policies": 3, "first": 3, "stream": 50}
RECOMPUTED = 3
"""How often the baseline is measured, at most."""
BATCH_ROWS, FRESH_LINES = 1_000, 100
"""Lines of a batch of a stream, and what their numbers are raised by to be new ones."""
HALF = 25.0
"""Of changes of so many percent or more, one is measured: the tables have no more orders to go."""


@dataclass(frozen=True)
class Bench:
    """What all measures share: Spark, the tables at a scale, and where results go."""

    options: argparse.Namespace
    session: SparkSession
    tables: Path
    scratch: Path

    @property
    def views(self) -> dict[str, str]:
        """The queries asked for, each to be a view alone."""
        return {name: queries()[name] for name in self.options.views}

    def rounds(self, measure: str) -> int:
        """How many transactions are measured."""
        return int(self.options.rounds or ROUNDS[measure])

    def plan(self, changes: Sequence[str], rounds: int) -> Plan:
        """Transactions over the tables, made once and kept."""
        data, fresh = self.options.data, self.options.fresh
        return prepared(self.tables, data, changes, rounds, fresh=fresh)

    def ten_orders(self) -> str:
        """The part of the orders that ten of them are."""
        orders = pq.read_metadata(self.tables / "orders.parquet").num_rows
        return f"{100 * ORDERS / orders:.6g}%"

    @contextmanager
    def store(
        self, views: Mapping[str, str], memory: int | str | None, policy: str | None = None
    ) -> Iterator[Ours]:
        """A copy of the store with all tables, with views over them."""
        options = self.options
        kept = template(options.data, self.tables, "spark", self.session, fresh=False)
        folder = copied(kept, self.scratch / "store")
        ours = Ours(folder, "spark", self.session, memory)
        try:
            ours.create(views, policy)
            yield ours
        finally:
            ours.close()
            shutil.rmtree(folder)

    @contextmanager
    def baseline(self, plan: Plan) -> Iterator[Baseline]:
        """Plain Spark over the tables after a plan."""
        made = Baseline(self.session, plan, self.scratch)
        try:
            yield made
        finally:
            made.close()


@dataclass(frozen=True)
class Turn:
    """Some views, and what the driver may hold for them."""

    measure: str
    label: str
    texts: Mapping[str, str]
    memory: int | str | None


def frame(bench: Bench) -> Iterator[Figure]:
    """Ten orders as a DataFrame under three views."""
    change = bench.ten_orders()
    plan = bench.plan([change], bench.rounds("frame"))
    turn = Turn("frame", "three views", THREE_VIEWS, bench.options.memory)
    with bench.baseline(plan) as baseline:
        yield from _figures(bench, turn, plan, baseline, _as_frames(bench, plan))


def large(bench: Bench) -> Iterator[Figure]:
    """A part of all orders as a DataFrame, each view alone, in the way that is chosen."""
    for change in bench.options.changes or CHANGES["large"]:
        percent = float(change.rstrip("%"))
        plan = bench.plan([change], 1 if percent >= HALF else bench.rounds("large"))
        with bench.baseline(plan) as baseline:
            for view, text in bench.views.items():
                turn = Turn("large", view, {view: text}, bench.options.memory)
                yield from _figures(bench, turn, plan, baseline, _as_frames(bench, plan))


def unheld(bench: Bench) -> Iterator[Figure]:
    """Small changes as Arrow with nothing held in the driver, each view alone."""
    changes = bench.options.changes or CHANGES["unheld"]
    plan = bench.plan(changes, bench.rounds("unheld"))
    memory = 0 if bench.options.memory is None else bench.options.memory
    with bench.baseline(plan) as baseline:
        for view, text in bench.views.items():
            turn = Turn("unheld", view, {view: text}, memory)
            yield from _figures(bench, turn, plan, baseline, plan.load)


def policies(bench: Bench) -> Iterator[UnderPolicy]:
    """Changes with nothing held, each view alone for which higher-order is chosen.

    As chosen and under circuit, with the same answers. Other views have no rows.
    """
    changes = bench.options.changes or CHANGES["policies"]
    plan = bench.plan(changes, bench.rounds("policies"))
    memory = 0 if bench.options.memory is None else bench.options.memory
    for view, text in bench.views.items():
        answers = {}
        for declared in (None, CIRCUIT):
            with bench.store({view: text}, memory, declared) as ours:
                policy = ours.policy(view)
                if declared is None and policy != HIGHER_ORDER:
                    break
                for done in _done(ours, plan, plan.load):
                    yield UnderPolicy(
                        measure="policies",
                        scale=bench.options.scale,
                        change=done.change,
                        view=view,
                        memory=_told(memory),
                        policy=policy,
                        ms=round(done.middle.ms, 1),
                        rows_read=_entry(ours, done.middle, view).rows_read,
                        jobs=done.middle.jobs,
                        gear=done.entry.gear,
                        state_bytes=ours.state_bytes(),
                    )
                answers[policy] = ours.answer(view)
        else:
            must_be_equal(view, answers[CIRCUIT], answers[HIGHER_ORDER])


def first(bench: Bench) -> Iterator[Figure]:
    """The first transaction after opening a store with three views, and the one after it."""
    change, rounds = bench.ten_orders(), bench.rounds("first")
    plan = bench.plan([change], 2 * rounds)
    opening, firsts, nexts, done = [], [], [], []
    with bench.store(THREE_VIEWS, bench.options.memory) as ours:
        ours.db.close()
        for number in range(rounds):
            began = perf_counter()
            again = Ours(bench.scratch / "store", "spark", bench.session, bench.options.memory)
            opening.append(1000 * (perf_counter() - began))
            firsts.append(again.commit(plan.load(2 * number)))
            nexts.append(again.commit(plan.load(2 * number + 1)).ms)
            done.append(_entry(again, firsts[-1]))
            again.close()
        with bench.baseline(plan) as baseline:
            spent = baseline.spent(0, THREE_VIEWS, min(rounds, RECOMPUTED))
    middle = sorted(range(rounds), key=lambda each: firsts[each].ms)[(rounds - 1) // 2]
    yield Figure(
        measure="first",
        scale=bench.options.scale,
        change=change,
        view="three views",
        memory=_told(bench.options.memory),
        ours_ms=round(firsts[middle].ms, 1),
        baseline_ms=round(spent.ms, 1),
        baseline_write_ms=round(spent.write_ms, 1),
        jobs=firsts[middle].jobs,
        way=done[middle].way,
        gear=done[middle].gear,
        rounds=rounds,
        open_ms=round(median(opening), 1),
        next_ms=round(median(nexts), 1),
    )


def memory(bench: Bench) -> Iterator[Phase]:
    """Peak memory of the driver and bytes written: load, many transactions, compaction, audit."""
    (change,) = bench.options.changes or CHANGES["memory"]
    bound, count = bench.options.memory or "1GB", bench.options.transactions
    plan = bench.plan([change], count)
    ours = Ours(bench.scratch / "bounded", "spark", bench.session, bound)
    try:
        yield from _phase(bench, ours, bound, "load", lambda: ours.load(bench.tables))
        yield from _phase(bench, ours, bound, "views", lambda: ours.create(THREE_VIEWS))

        def transactions() -> None:
            for number in range(count):
                ours.commit(plan.load(number))

        yield from _phase(bench, ours, bound, f"{count} transactions", transactions)
        yield from _phase(bench, ours, bound, "compaction", ours.db.compact)

        def audit() -> None:
            if not ours.db.audit().ok:
                raise Unequal("a view is not its query")

        yield from _phase(bench, ours, bound, "audit", audit)
    finally:
        ours.close()
        shutil.rmtree(bench.scratch / "bounded", ignore_errors=True)


def stream(bench: Bench) -> Iterator[Batches]:
    """Lines that arrive as files, taken by `foreachBatch` under three views, a file at a time."""
    arrivals, count = bench.scratch / "arrivals", bench.rounds("stream")
    _arrived(bench.tables / "lineitem.parquet", arrivals, count)
    jobs, taken = [], []
    with bench.store(THREE_VIEWS, bench.options.memory) as ours:

        def take(rows: Any, _: int) -> None:
            before, began = ours.jobs, perf_counter()
            ours.db.insert("lineitem", rows)
            taken.append(1000 * (perf_counter() - began))
            jobs.append(ours.jobs - before)

        files = bench.session.read.parquet(str(arrivals))
        lines = bench.session.readStream.schema(files.schema).option("maxFilesPerTrigger", 1)
        query = (
            lines.parquet(str(arrivals))
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(bench.scratch / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        if len(jobs) != count or not ours.db.audit().ok:
            raise Unequal("not every batch was taken, or a view is not its query")
    yield Batches(
        measure="stream",
        scale=bench.options.scale,
        memory=_told(bench.options.memory),
        batches=count,
        rows=BATCH_ROWS,
        jobs=round(mean(jobs), 2),
        most_jobs=max(jobs),
        ms=round(median(taken), 1),
        most_ms=round(max(taken), 1),
    )


def _arrived(lines: Path, folder: Path, batches: int) -> None:
    """Files of new lines of old orders from all over the table, in a random order."""
    folder.mkdir()
    with duckdb.connect() as plain:
        renumbered = f"l_linenumber + {FRESH_LINES} AS l_linenumber"
        wanted = plain.sql(
            f"SELECT * REPLACE ({renumbered}) FROM read_parquet(?) "
            f"ORDER BY hash(l_orderkey * 8 + l_linenumber) LIMIT {batches * BATCH_ROWS}",
            params=[str(lines)],
        ).to_arrow_table()
    like = pq.read_schema(lines).remove_metadata()
    for batch in range(batches):
        rows = wanted.slice(batch * BATCH_ROWS, BATCH_ROWS).cast(like)
        pq.write_table(rows, folder / f"{batch:04}.parquet")


MEASURES: dict[str, Callable[[Bench], Iterator[Any]]] = {
    "frame": frame,
    "large": large,
    "unheld": unheld,
    "policies": policies,
    "first": first,
    "memory": memory,
    "stream": stream,
}


def written(store: Store, after: int, upto: int) -> tuple[int, int]:
    """Bytes that epochs wrote as changes, and bytes that compaction wrote, from manifests."""
    changes = compaction = 0
    before = store.read(after)
    for epoch in range(after + 1, upto + 1):
        manifest = store.read(epoch)
        added = _bytes_added(before, manifest)
        if "compacted" in manifest.note:
            compaction += added
        else:
            changes += added
        before = manifest
    return changes, compaction


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write each row as it is known; 1 when a view fails or is not its query."""
    options = parsed(arguments)
    session = started(options.heap)
    try:
        problems = run(options, session)
    finally:
        session.stop()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def run(options: argparse.Namespace, session: SparkSession) -> list[str]:
    """All measures that were asked for; what went wrong."""
    options.data.mkdir(parents=True, exist_ok=True)
    tables = generated(options.scale, options.data)
    problems = []
    for measure in options.measures:
        with TemporaryDirectory(prefix="run-", dir=options.data) as scratch:
            problems += _measured(measure, Bench(options, session, tables, Path(scratch)))
    return problems


def _measured(measure: str, bench: Bench) -> list[str]:
    """Write the rows of one measure; a view at a time, so that one that fails stops no other."""
    problems = []
    alone = measure in ("large", "unheld", "policies")
    parts = [[view] for view in bench.options.views] if alone else [bench.options.views]
    for views in parts:
        wanted = argparse.Namespace(**{**vars(bench.options), "views": views})
        part = Bench(wanted, bench.session, bench.tables, bench.scratch)
        try:
            for row in MEASURES[measure](part):
                driver_rows.write(bench.options.out, row)
                print(row.told, file=sys.stderr, flush=True)
        except (ev.UserError, Unequal) as problem:
            problems.append(f"{measure}, {','.join(views)}: {problem}")
    print(driver_rows.table(bench.options.out, measure))
    return problems


def _figures(
    bench: Bench, turn: Turn, plan: Plan, baseline: Baseline, made: Callable[[int], Refresh]
) -> Iterator[Figure]:
    """The transactions of a plan, those of a size followed by the baseline; answers compared."""
    texts = turn.texts
    with bench.store(texts, turn.memory) as ours:
        for done in _done(ours, plan, made):
            spent = baseline.spent(done.last, texts, min(len(done.costs), RECOMPUTED))
            yield Figure(
                measure=turn.measure,
                scale=bench.options.scale,
                change=done.change,
                view=turn.label,
                memory=_told(turn.memory),
                ours_ms=round(median(cost.ms for cost in done.costs), 1),
                baseline_ms=round(spent.ms, 1),
                baseline_write_ms=round(spent.write_ms, 1),
                jobs=done.middle.jobs,
                way=done.entry.way,
                gear=done.entry.gear,
                rounds=len(done.costs),
            )
        for name in texts:
            must_be_equal(name, baseline.answer(name), ours.answer(name))


@dataclass(frozen=True)
class Done:
    """The measured transactions of one size, the middle one of them, and what history says of it.

    `last` is the number of the last one in the plan.
    """

    change: str
    last: int
    costs: Sequence[Committed]
    middle: Committed
    entry: Any


def _done(ours: Ours, plan: Plan, made: Callable[[int], Refresh]) -> Iterator[Done]:
    """Commit the transactions of a plan, size by size."""
    first = 0
    for change, numbers in plan.numbers.items():
        for number in range(first, numbers[0]):
            ours.commit(made(number))
        changes = [made(number) for number in numbers]
        costs = [ours.commit(each) for each in changes]
        first = numbers[-1] + 1
        middle = sorted(costs, key=lambda cost: cost.ms)[(len(costs) - 1) // 2]
        yield Done(change, numbers[-1], costs, middle, _entry(ours, middle))


def _phase(
    bench: Bench, ours: Ours, bound: int | str, label: str, work: Callable[[], object]
) -> Iterator[Phase]:
    """A piece of work, its peak of memory and the bytes that it wrote."""
    resource_usage.forget_peak()
    before, began = ours.db.epoch, perf_counter()
    work()
    taken = perf_counter() - began
    own, every = resource_usage.own_peak_mb(), resource_usage.peak_mb()
    changes, compaction = written(ours.db.store, before, ours.db.epoch)
    yield Phase(
        measure="memory",
        scale=bench.options.scale,
        memory=_told(bound),
        phase=label,
        seconds=round(taken, 1),
        driver_mb=round(own),
        java_mb=round(every - own),
        bytes_changed=changes,
        bytes_compacted=compaction,
        heap=bench.options.heap,
    )


def _as_frames(bench: Bench, plan: Plan) -> Callable[[int], Refresh]:
    return lambda number: as_frames(bench.session, plan, number)


def _entry(ours: Ours, done: Committed, view: str | None = None) -> Any:
    """What the store's own history says about a transaction, or of a view in it."""
    newest = ours.db.epoch - done.before.epoch
    entries = ours.db.history(newest)
    return next(e for e in entries if e.view == view and e.epoch == done.before.epoch + 1)


def _bytes_added(before: Manifest, after: Manifest) -> int:
    known = {file.path for file in before.files}
    return sum(file.bytes for file in after.files if file.path not in known)


def _told(bound: int | str | None) -> str:
    return "default" if bound is None else str(bound)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="bench.driver", description=__doc__)
    parser.add_argument("--measure", default="all", help=f"some of {','.join(MEASURES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="the TPC-H scale factor")
    parser.add_argument("--views", default="all", help="such as q01,q06, each alone")
    parser.add_argument("--changes", default=None, help="parts of the orders, such as 1%%,10%%")
    parser.add_argument("--rounds", type=int, default=None, help="the median of so many")
    parser.add_argument("--memory", default=None, help="what the driver may hold, such as 1GB")
    parser.add_argument("--transactions", type=int, default=1000, help="for the measure of memory")
    parser.add_argument("--heap", default="8g", help="the heap of Java in the driver")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--data", type=Path, default=DATA, help="where generated tables are kept")
    parser.add_argument("--fresh", action="store_true", help="make the transactions again")
    options = parser.parse_args(arguments)
    options.measures = list(MEASURES) if options.measure == "all" else options.measure.split(",")
    options.views = list(queries()) if options.views == "all" else options.views.split(",")
    options.changes = options.changes.split(",") if options.changes else None
    for what, named, known in (
        ("measure", options.measures, MEASURES),
        ("view", options.views, queries()),
    ):
        unknown = [name for name in named if name not in known]
        if unknown:
            parser.error(f"there is no {what} {unknown[0]}")
    return options


if __name__ == "__main__":
    sys.exit(main())
