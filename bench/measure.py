"""The measurements of one engine at one scale: recomputation first, then every set of views."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
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
class Plan:
    """The transactions that every set of views goes through: for each size, which are measured."""

    refreshes: Refreshes
    numbers: Mapping[str, tuple[int, ...]]

    @property
    def rounds(self) -> int:
        """How many transactions of a size are measured."""
        return min(len(numbers) for numbers in self.numbers.values())


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

    def views(
        self, label: str, texts: Mapping[str, str], recomputed: Mapping[str, Recomputed]
    ) -> list[Measured]:
        """Declare views in a store of their own, run every transaction, compare the answers."""
        store = copied(self.template, self.scratch / "store")
        ours = Ours(store, self.engine, self.session)
        try:
            with self.progress.step(f"{label}: declare"):
                ours.create(texts)
            rows = list(self._rows(label, ours, [recomputed[name] for name in texts]))
            with self.progress.step(f"{label}: compare"):
                for name in texts:
                    _must_be_equal(name, recomputed[name].rows, ours.answer(name))
            return rows
        finally:
            ours.close()
            shutil.rmtree(store)

    def _rows(self, label: str, ours: Ours, plain: Sequence[Recomputed]) -> Iterator[Measured]:
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
                done, peak = numbers[-1] + 1, meter.peak_mb()
                row = self._row(label, change, costs, plain, ours.state_bytes(), peak)
                tell(f"{row.ours_ms:,.0f} ms, {row.speedup:.2f}×")
            yield row

    def _row(
        self,
        label: str,
        change: str,
        costs: Sequence[Cost],
        plain: Sequence[Recomputed],
        state_bytes: int,
        peak_mb: float,
    ) -> Measured:
        ours, theirs = median(cost.ms for cost in costs), sum(each.ms for each in plain)
        middle = min(costs, key=lambda cost: abs(cost.ms - ours))
        cores, memory_gb = machine()
        return Measured(
            engine=self.engine,
            scale=self.scale,
            change=change,
            view=label,
            views=len(plain),
            deletes=self.deletes,
            ours_ms=round(ours, 2),
            recompute_ms=round(theirs, 2),
            speedup=float(f"{theirs / ours:.4g}"),
            rows_changed=middle.rows_changed,
            rows_fetched=middle.rows_fetched,
            jobs=middle.jobs,
            bytes_read=middle.bytes_read,
            bytes_written=middle.bytes_written,
            recompute_bytes_read=sum(each.bytes_read for each in plain),
            state_bytes=state_bytes,
            peak_mb=round(peak_mb, 1),
            rounds=len(costs),
            cores=cores,
            memory_gb=memory_gb,
        )


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
