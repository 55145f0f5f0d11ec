"""The measurements of one engine at one scale: recomputation first, then every set of views."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from bench import meter
from bench.answers import Row, unequal
from bench.ours import Cost, Ours, copied
from bench.plain import Plain
from bench.progress import Progress
from bench.refresh import Refreshes
from bench.rows import ALL, Measured, machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM = (2, 1)
"""How many transactions of the first size, and of each later one, are not measured."""


class Unequal(Exception):  # noqa: N818  (the finding, not a fault of the benchmark)
    """A view is not what recomputation says."""


@dataclass(frozen=True)
class Recomputed:
    """A query without Everview: how long it takes, what it reads, and what it says."""

    ms: float
    bytes_read: int
    rows: list[Row]


@dataclass(frozen=True)
class Run:
    """The measured transactions of one size in one store."""

    change: str
    costs: tuple[Cost, ...]
    state_bytes: int
    peak_mb: float


@dataclass(frozen=True)
class Plan:
    """The transactions that every set of views goes through: for each size, which are measured."""

    refreshes: Refreshes
    numbers: Mapping[str, tuple[int, ...]]


def planned(refreshes: Refreshes, changes: Sequence[str], rounds: int) -> Plan:
    """Make the transactions: of each size some to warm up, and those that are measured."""
    numbers: dict[str, tuple[int, ...]] = {}
    for place, change in enumerate(changes):
        percent, warm = float(change.rstrip("%")), WARM[min(place, 1)]
        made = [refreshes.add(percent) for _ in range(warm + rounds)]
        numbers[change] = tuple(made[warm:])
    return Plan(refreshes, numbers)


def recompute(
    plain: Plain, texts: Mapping[str, str], rounds: int, progress: Progress
) -> dict[str, Recomputed]:
    """Every query from the tables alone, warm."""
    found = {}
    for name, text in texts.items():
        with progress.step(f"recompute {name}"):
            plain.recompute(name, text)
            read, taken = meter.bytes_read(), []
            for _ in range(rounds):
                began = perf_counter()
                plain.recompute(name, text)
                taken.append(1000 * (perf_counter() - began))
            read = (meter.bytes_read() - read) // rounds
            found[name] = Recomputed(median(taken), read, plain.answer(name))
    return found


@dataclass(frozen=True)
class Bench:
    """One engine at one scale."""

    engine: str
    scale: float
    deletes: str
    template: Path
    scratch: Path
    session: SparkSession | None
    plan: Plan
    progress: Progress

    def tables(self) -> dict[str, float]:
        """The transactions in a store without views: the milliseconds of each size."""
        with self._store() as ours:
            runs = self._runs("no view", ours, lambda ms: f"{ms:,.0f} ms")
            return {run.change: _ms(run.costs) for run in runs}

    def views(
        self,
        label: str,
        texts: Mapping[str, str],
        recomputed: Mapping[str, Recomputed],
        tables_ms: Mapping[str, float],
    ) -> list[Measured]:
        """Declare views in a store of their own, run every transaction, compare the answers."""
        plain = [recomputed[name] for name in texts]
        theirs = sum(each.ms for each in plain)

        def told(ms: float) -> str:
            return f"{ms:,.0f} ms, {theirs / ms:.2f}×"

        with self._store() as ours:
            with self.progress.step(f"{label}: declare"):
                ours.create(texts)
            runs = self._runs(label, ours, told)
            rows = [self._row(label, run, plain, tables_ms[run.change]) for run in runs]
            with self.progress.step(f"{label}: compare"):
                for name in texts:
                    _must_be_equal(name, recomputed[name].rows, ours.answer(name))
            return rows

    @contextmanager
    def _store(self) -> Iterator[Ours]:
        """All tables in a store that is gone afterwards."""
        folder = copied(self.template, self.scratch / "store")
        ours = Ours(folder, self.engine, self.session)
        try:
            yield ours
        finally:
            ours.close()
            shutil.rmtree(folder)

    def _runs(self, label: str, ours: Ours, told: Callable[[float], str]) -> Iterator[Run]:
        """All transactions, size by size."""
        done = 0
        for change, numbers in self.plan.numbers.items():
            costs: list[Cost] = []
            with self.progress.step(f"{label}: {change}") as tell:
                for number in range(done, numbers[-1] + 1):
                    if number == numbers[0]:
                        meter.forget_peak()
                    cost = ours.apply(self.plan.refreshes.load(number))
                    if number in numbers:
                        costs.append(cost)
                done = numbers[-1] + 1
                tell(told(_ms(costs)))
            yield Run(change, tuple(costs), ours.state_bytes(), meter.peak_mb())

    def _row(self, label: str, run: Run, plain: Sequence[Recomputed], tables_ms: float) -> Measured:
        ours, theirs = _ms(run.costs), sum(each.ms for each in plain)
        middle = min(run.costs, key=lambda cost: abs(cost.ms - ours))
        cores, memory_gb = machine()
        return Measured(
            engine=self.engine,
            scale=self.scale,
            change=run.change,
            view=label,
            views=len(plain),
            deletes=self.deletes,
            ours_ms=round(ours, 2),
            recompute_ms=round(theirs, 2),
            speedup=float(f"{theirs / ours:.4g}"),
            tables_ms=round(tables_ms, 2),
            rows_changed=middle.rows_changed,
            rows_fetched=middle.rows_fetched,
            jobs=middle.jobs,
            bytes_read=middle.bytes_read,
            bytes_written=middle.bytes_written,
            recompute_bytes_read=sum(each.bytes_read for each in plain),
            state_bytes=run.state_bytes,
            peak_mb=round(run.peak_mb, 1),
            phases=middle.phases,
            rounds=len(run.costs),
            cores=cores,
            memory_gb=memory_gb,
        )


def _ms(costs: Sequence[Cost]) -> float:
    return median(cost.ms for cost in costs)


def _must_be_equal(name: str, expected: list[Row], found: list[Row]) -> None:
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
