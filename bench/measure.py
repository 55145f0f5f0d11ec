"""The measurements of one engine at one scale: every set of views, beside recomputing it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeAlias

from bench import resource_usage
from bench.compare_answers import Row, unequal
from bench.ours import Cost
from bench.plain import Plain, PlainDuckDB, Taken
from bench.prepared import Plan
from bench.progress import Progress
from bench.rows import ALL, Measured, machine
from bench.view_sets import Turn, Turns

RECOMPUTED = {"duckdb": (None, None), "spark": (5, 2)}
"""So many recomputations follow the transactions of a size: of one view, of many."""

After: TypeAlias = Callable[[int], Taken]
"""What is done after the transactions, as often as there were some, to be compared with them."""


class Unequal(Exception):  # noqa: N818  (the finding, not a fault of the benchmark)
    """A view is not what recomputation says."""


@dataclass(frozen=True)
class Run:
    """The measured transactions of one size, and what followed them."""

    change: str
    costs: tuple[Cost, ...]
    theirs: tuple[Taken, ...]
    bytes_read: int
    state_bytes: int
    peak_mb: float

    @property
    def ms(self) -> float:
        """Our median."""
        return median(cost.ms for cost in self.costs)

    @property
    def their_ms(self) -> float:
        """The median of what followed."""
        return median(taken.ms for taken in self.theirs)

    @property
    def told(self) -> str:
        """Our median, and how many times as long the other is."""
        times = f", {self.their_ms / self.ms:.2f}×" if self.theirs else ""
        return f"{self.ms:,.1f} ms{times}"


@dataclass(frozen=True)
class Tables:
    """A transaction of one size without views: in a store, and in plain DuckDB."""

    ms: float
    apply_ms: float | None


@dataclass(frozen=True)
class Bench:
    """One engine at one scale."""

    engine: str
    scale: float
    deletes: str
    turns: Turns
    plain: Plain
    plan: Plan
    progress: Progress
    _warm: set[str] = field(default_factory=set)

    def tables(self, scratch: Path) -> dict[str, Tables]:
        """The transactions in a store without views, and on DuckDB in a copy of its tables."""
        if self.engine != "duckdb":
            return {run.change: Tables(run.ms, None) for run in self._without_views(None)}
        copy = PlainDuckDB(Path(shutil.copy(self.plan.database, scratch / "applied.duckdb")))

        def applied(number: int) -> Taken:
            return Taken(copy.apply(self.plan, number), 0)

        found = {run.change: Tables(run.ms, run.their_ms) for run in self._without_views(applied)}
        copy.close()
        (scratch / "applied.duckdb").unlink()
        return found

    def views(
        self, label: str, texts: Mapping[str, str], tables: Mapping[str, Tables]
    ) -> list[Measured]:
        """Declare views, run every transaction, compare the answers, and put all back."""
        with self.turns.turn() as turn:
            with self.progress.step(f"{label}: declare"):
                turn.ours.create(texts)
            with self.progress.step(f"{label}: recompute"):
                self._warm_up(texts)
            most = RECOMPUTED[self.engine][len(texts) > 1]
            rows = [
                self._row(label, len(texts), run, tables[run.change])
                for run in self._runs(label, turn, lambda _: self._recomputed(texts), most)
            ]
            with self.progress.step(f"{label}: compare"):
                for name in texts:
                    must_be_equal(name, self.plain.answer(name), turn.ours.answer(name))
            return rows

    def _without_views(self, after: After | None) -> Iterator[Run]:
        with self.turns.turn() as turn:
            yield from self._runs("no view", turn, after)

    def _warm_up(self, texts: Mapping[str, str]) -> None:
        """Evaluate each query that was not evaluated yet."""
        for name in texts.keys() - self._warm:
            self.plain.recompute(name, texts[name])
            self._warm.add(name)

    def _recomputed(self, texts: Mapping[str, str]) -> Taken:
        """All queries, one after the other."""
        taken = [self.plain.recompute(name, text) for name, text in texts.items()]
        return Taken(sum(each.ms for each in taken), sum(each.bytes_read for each in taken))

    def _runs(
        self, label: str, turn: Turn, after: After | None, most: int | None = None
    ) -> Iterator[Run]:
        """All transactions, size by size; those measured, or `most`, are followed by `after`."""
        done = 0
        for change, numbers in self.plan.numbers.items():
            theirs: list[Taken] = []
            with self.progress.step(f"{label}: {change}") as tell:
                turn.apply(*range(done, numbers[0]))
                turn.ours.touch()
                resource_usage.forget_peak()
                read = resource_usage.bytes_read()
                costs = turn.apply(*numbers)
                read = resource_usage.bytes_read() - read
                peak = resource_usage.peak_mb(self.plain.apart)
                if after is not None:
                    theirs = [after(number) for number in numbers[:most]]
                done = numbers[-1] + 1
                state = turn.ours.state_bytes()
                each = read // len(numbers)
                run = Run(change, tuple(costs), tuple(theirs), each, state, peak)
                tell(run.told)
            yield run

    def _row(self, label: str, views: int, run: Run, tables: Tables) -> Measured:
        ours, theirs = run.ms, run.their_ms
        middle = min(run.costs, key=lambda cost: abs(cost.ms - ours))
        cores, memory_gb = machine()
        return Measured(
            engine=self.engine,
            scale=self.scale,
            change=run.change,
            view=label,
            views=views,
            deletes=self.deletes,
            ours_ms=round(ours, 2),
            recompute_ms=round(theirs, 2),
            speedup=float(f"{theirs / ours:.4g}"),
            tables_ms=round(tables.ms, 2),
            rows_changed=middle.rows_changed,
            rows_fetched=middle.rows_fetched,
            jobs=middle.jobs,
            bytes_read=run.bytes_read,
            bytes_written=middle.bytes_written,
            recompute_bytes_read=int(median(taken.bytes_read for taken in run.theirs)),
            state_bytes=run.state_bytes,
            peak_mb=round(run.peak_mb, 1),
            phases=middle.phases,
            rounds=len(run.costs),
            cores=cores,
            memory_gb=memory_gb,
            apply_ms=None if tables.apply_ms is None else round(tables.apply_ms, 2),
        )


def must_be_equal(name: str, expected: list[Row], found: list[Row]) -> None:
    """Raise `Unequal` unless both are the same bag of rows."""
    missing, surplus = unequal(expected, found)
    if missing or surplus:
        raise Unequal(
            f"{name} is not what recomputation says: it lacks {len(missing)} rows, such as "
            f"{missing[:1]}, and has {len(surplus)} too many, such as {surplus[:1]}"
        )


def together(texts: Mapping[str, str], every: int) -> dict[str, dict[str, str]]:
    """Sets of views in one store: five of them, and all there are."""
    names = list(texts)
    some = names[:: max(1, len(names) // 5)][:5]
    sets = (chosen for chosen in (some, names) if len(chosen) > 1)
    return {
        ALL if len(chosen) == every else f"{len(chosen)} views": {n: texts[n] for n in chosen}
        for chosen in sets
    }
