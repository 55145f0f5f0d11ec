"""The rows of `bench.driver`, and the files that hold them: one for each measure, with a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench.rows import geometric_mean, machine


@dataclass(frozen=True)
class Figure:
    """A transaction beside plain Spark, which writes the change and recomputes the views.

    Times are medians. `open_ms` and `next_ms`, where known, are opening the store and the second
    transaction after it.
    """

    measure: str
    scale: float
    change: str
    view: str
    memory: str
    ours_ms: float
    baseline_ms: float
    baseline_write_ms: float
    jobs: int
    way: str | None
    gear: str | None
    rounds: int
    open_ms: float | None = None
    next_ms: float | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What the row is about; a later measurement takes its place."""
        return self.scale, float(self.change.rstrip("%")), self.memory, self.view

    @property
    def ratio(self) -> float:
        """How many times as long plain Spark takes."""
        return self.baseline_ms / self.ours_ms

    @property
    def told(self) -> str:
        """One line for whoever waits."""
        return (
            f"[{self.measure}, scale {self.scale:g}] {self.view}, {self.change}: "
            f"{self.ours_ms:,.0f} ms, {self.jobs} jobs, {self.way}, {self.ratio:.2f}×"
        )


@dataclass(frozen=True)
class Phase:
    """A piece of work with a bounded driver: its peak of memory, and bytes that it wrote."""

    measure: str
    scale: float
    memory: str
    phase: str
    seconds: float
    driver_mb: float
    java_mb: float
    bytes_changed: int
    bytes_compacted: int
    heap: str

    @property
    def key(self) -> tuple[object, ...]:
        """What the row is about; a later measurement takes its place."""
        return self.scale, self.memory, self.phase

    @property
    def amplification(self) -> float | None:
        """Bytes that compaction wrote over bytes that changes wrote; None without changes."""
        return self.bytes_compacted / self.bytes_changed if self.bytes_changed else None

    @property
    def told(self) -> str:
        """One line for whoever waits."""
        return (
            f"[{self.measure}, scale {self.scale:g}] {self.phase}: {self.seconds:,.1f} s, "
            f"driver {self.driver_mb:,.0f} MB, Java {self.java_mb:,.0f} MB"
        )


@dataclass(frozen=True)
class Batches:
    """Batches of a stream under three views: Spark jobs and time of each; `ms` is a median."""

    measure: str
    scale: float
    memory: str
    batches: int
    rows: int
    jobs: float
    most_jobs: int
    ms: float
    most_ms: float

    @property
    def key(self) -> tuple[object, ...]:
        """What the row is about; a later measurement takes its place."""
        return self.scale, self.memory, self.batches, self.rows

    @property
    def told(self) -> str:
        """One line for whoever waits."""
        return (
            f"[{self.measure}, scale {self.scale:g}] {self.batches} batches of {self.rows:,} rows: "
            f"{self.jobs:.2f} jobs a batch, {self.ms:,.0f} ms"
        )


@dataclass(frozen=True)
class UnderPolicy:
    """A transaction under one view that is maintained by a policy; `state_bytes` with the view."""

    measure: str
    scale: float
    change: str
    view: str
    memory: str
    policy: str
    ms: float
    rows_read: int | None
    jobs: int
    gear: str | None
    state_bytes: int

    @property
    def key(self) -> tuple[object, ...]:
        """What the row is about; a later measurement takes its place."""
        return self.scale, float(self.change.rstrip("%")), self.memory, self.view, self.policy

    @property
    def rows(self) -> str:
        """How many rows were read, where that is counted."""
        return "–" if self.rows_read is None else f"{self.rows_read:,}"

    @property
    def told(self) -> str:
        """One line for whoever waits."""
        return (
            f"[{self.measure}, scale {self.scale:g}] {self.view}, {self.change}, {self.policy}: "
            f"{self.ms:,.0f} ms, {self.jobs} jobs, {self.rows} rows read"
        )


Measured: TypeAlias = Figure | Phase | Batches | UnderPolicy
_MADE: dict[str, type[Any]] = {"memory": Phase, "stream": Batches, "policies": UnderPolicy}


def read(folder: Path, measure: str) -> list[Measured]:
    """The rows of a measure; none where there is no file yet."""
    file = _file(folder, measure)
    made = _MADE.get(measure, Figure)
    return [made(**row) for row in json.loads(file.read_text())] if file.exists() else []


def write(folder: Path, row: Measured) -> None:
    """Add a row to its file, in the place of an older one of the same, and write its table."""
    kept = {each.key: each for each in read(folder, row.measure)} | {row.key: row}
    rows = list(kept.values())
    if isinstance(row, Figure | UnderPolicy):
        rows = [kept[key] for key in sorted(kept, key=str)]
    folder.mkdir(parents=True, exist_ok=True)
    told = ",\n".join(f"  {json.dumps(asdict(each))}" for each in rows)
    file = _file(folder, row.measure)
    file.write_text(f"[\n{told}\n]\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table(folder, row.measure) + "\n", encoding="utf-8")


def table(folder: Path, measure: str) -> str:
    """All rows of a measure as Markdown, means and losses first."""
    rows = read(folder, measure)
    cores, memory_gb = machine()
    head = f"# {TITLES[measure]}\n\n{cores} cores, {memory_gb} GB of memory."
    figures = [row for row in rows if isinstance(row, Figure)]
    phases = [row for row in rows if isinstance(row, Phase)]
    streams = [row for row in rows if isinstance(row, Batches)]
    policies = [row for row in rows if isinstance(row, UnderPolicy)]
    parts = [head]
    if figures:
        parts += [BASELINE, "\n".join(_summary(figures)), "\n".join(_lines(figures))]
    if phases:
        parts += ["\n".join(_phases(phases))]
    if streams:
        parts += ["\n".join(_streams(streams))]
    if policies:
        parts += ["\n".join(_policies(policies))]
    return "\n\n".join(parts)


TITLES = {
    "frame": "Ten orders as a DataFrame under three views",
    "large": "A part of the orders as a DataFrame, each view alone",
    "unheld": "Small changes with nothing held in the driver, each view alone",
    "policies": "Changes with nothing held under two policies, each view alone",
    "first": "The first transaction after opening",
    "memory": "Memory of the driver, and what is written",
    "stream": "Batches of a stream by foreachBatch under three views",
}
BASELINE = (
    "Baseline: plain Spark writes the changed rows as Parquet, recomputes the views over the "
    "result and writes them; warm, eight shuffle partitions, in the same run."
)


def _file(folder: Path, measure: str) -> Path:
    return folder / f"driver-{measure}.json"


def _summary(rows: Sequence[Figure]) -> list[str]:
    lines = [
        "| scale | change | memory | mean ratio | slowest | slower than the baseline | most jobs |",
        "|---:|---:|---|---:|---:|---|---:|",
    ]
    for key in dict.fromkeys((row.scale, row.change, row.memory) for row in rows):
        chosen = [row for row in rows if (row.scale, row.change, row.memory) == key]
        worst = min(chosen, key=lambda row: row.ratio)
        losses = ", ".join(f"{r.view} {r.ratio:.2f}×" for r in chosen if r.ratio < 1) or "none"
        scale, change, memory = key
        mean = geometric_mean(row.ratio for row in chosen)
        lines.append(
            f"| {scale:g} | {change} | {memory} | **{mean:.2f}×** of {len(chosen)} | "
            f"{worst.view} {worst.ratio:.2f}× | {losses} | {max(row.jobs for row in chosen)} |"
        )
    return lines


def _lines(rows: Sequence[Figure]) -> list[str]:
    opened = any(row.open_ms is not None for row in rows)
    more = (" open ms | next ms |", "---:|---:|") if opened else ("", "")
    lines = [
        "| scale | change | memory | view | Everview ms | baseline ms | of that writing | ratio"
        f" | jobs | way | gear | rounds |{more[0]}",
        f"|---:|---:|---|---|---:|---:|---:|---:|---:|---|---|---:|{more[1]}",
    ]
    for row in rows:
        last = f" {row.open_ms:,.0f} | {row.next_ms:,.0f} |" if row.open_ms is not None else ""
        lines.append(
            f"| {row.scale:g} | {row.change} | {row.memory} | {row.view} | {row.ours_ms:,.0f}"
            f" | {row.baseline_ms:,.0f} | {row.baseline_write_ms:,.0f} | {row.ratio:.2f}×"
            f" | {row.jobs} | {row.way} | {row.gear} | {row.rounds} |{last}"
        )
    return lines


def _streams(rows: Sequence[Batches]) -> list[str]:
    lines = [
        "New lines of old orders arrive as Parquet files, one for each batch.",
        "",
        "| scale | memory | batches | rows of each | jobs of a batch | most jobs | ms | most ms |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row.scale:g} | {row.memory} | {row.batches} | {row.rows:,} | {row.jobs:.2f}"
        f" | {row.most_jobs} | {row.ms:,.0f} | {row.most_ms:,.0f} |"
        for row in rows
    ]
    return lines


def _policies(rows: Sequence[UnderPolicy]) -> list[str]:
    lines = [
        "| scale | change | memory | view | policy | ms | rows read | jobs | gear | state MB |",
        "|---:|---:|---|---|---|---:|---:|---:|---|---:|",
    ]
    lines += [
        f"| {row.scale:g} | {row.change} | {row.memory} | {row.view} | {row.policy} | {row.ms:,.0f}"
        f" | {row.rows} | {row.jobs} | {row.gear} | {row.state_bytes / 1e6:,.1f} |"
        for row in rows
    ]
    return lines


def _phases(rows: Sequence[Phase]) -> list[str]:
    lines = [
        "Peaks of resident memory: of the driver's Python, and of Java with what it started."
        " Written by compaction over written as changes is the write amplification.",
        "",
        "| scale | memory | heap | work | s | Python MB | Java MB | MB changed | MB compacted"
        " | amplification |",
        "|---:|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        ratio = "" if row.amplification is None else f"{row.amplification:.2f}"
        sizes = f"{row.bytes_changed / 1e6:,.1f} | {row.bytes_compacted / 1e6:,.1f}"
        lines.append(
            f"| {row.scale:g} | {row.memory} | {row.heap} | {row.phase} | {row.seconds:,.1f}"
            f" | {row.driver_mb:,.0f} | {row.java_mb:,.0f} | {sizes} | {ratio} |"
        )
    return lines
