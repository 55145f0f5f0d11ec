"""One measured row, and the files that hold many: JSON, with a table and a plot beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import TypeAlias

RESULTS = Path(__file__).parent / "results"
ALL = "all"


@dataclass(frozen=True)
class Measured:
    """A transaction of one size under one view, or under several, beside recomputation.

    Times are medians; the other figures belong to the transaction of the median, and `peak_mb`
    is the most that any transaction of this size needed. `tables_ms` is the same transaction in a
    store without views, `apply_ms` in plain DuckDB.
    """

    engine: str
    scale: float
    change: str
    view: str
    views: int
    deletes: str
    ours_ms: float
    recompute_ms: float
    speedup: float
    tables_ms: float
    rows_changed: int
    rows_fetched: int
    jobs: int
    bytes_read: int
    bytes_written: int
    recompute_bytes_read: int
    state_bytes: int
    peak_mb: float
    phases: Mapping[str, float]
    rounds: int
    cores: int
    memory_gb: int
    apply_ms: float | None = None

    @property
    def key(self) -> Key:
        """What the row is about; a later measurement takes its place."""
        return self.engine, self.scale, self.deletes, self.view, float(self.change.rstrip("%"))


Key: TypeAlias = tuple[str, float, str, str, float]


def machine() -> tuple[int, int]:
    """How many cores there are, and how many gigabytes of memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return os.cpu_count() or 1, round(memory / 2**30)


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios: a loss by half and a win by two make one."""
    found = [log(value) for value in values]
    return exp(sum(found) / len(found))


def read(file: Path) -> list[Measured]:
    """The rows of a file; none where there is no file yet."""
    if not file.exists():
        return []
    return [Measured(**row) for row in json.loads(file.read_text())]


def write(file: Path, fresh: Sequence[Measured]) -> list[Measured]:
    """Add rows to a file, each in the place of an older one of the same; all that it holds."""
    kept = {row.key: row for row in (*read(file), *fresh)}
    rows = [kept[key] for key in sorted(kept)]
    file.parent.mkdir(parents=True, exist_ok=True)
    told = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    file.write_text(f"[\n{told}\n]\n")
    return rows


def tell(stem: Path, rows: Iterable[Mapping[str, object]], text: str) -> None:
    """Print what was measured, and write it for programs and for people."""
    print(text)
    stem.parent.mkdir(parents=True, exist_ok=True)
    told = json.dumps(list(rows), indent=1)
    stem.with_suffix(".json").write_text(told + "\n", encoding="utf-8")
    stem.with_suffix(".md").write_text(text + "\n", encoding="utf-8")


def file_of(scale: float, deletes: str, folder: Path = RESULTS) -> Path:
    """Where the rows of a scale are kept."""
    return folder / f"tpch-scale-{scale:g}{'' if deletes == 'random' else f'-{deletes}'}.json"
