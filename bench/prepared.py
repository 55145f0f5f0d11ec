"""The transactions of a run and the tables after them, made from tables and a seed and kept."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.refresh import Refresh, Refreshes, load
from bench.tables import KEYS

WARM = (2, 1)
"""How many transactions of the first size, and of each later one, are not measured."""
ROUNDS, LARGE_ROUNDS = 15, 3
"""How many are measured, where nobody says: fewer of those that change a percent or more."""


@dataclass(frozen=True)
class Plan:
    """The transactions that every set of views goes through: for each size, which are measured."""

    folder: Path
    numbers: Mapping[str, tuple[int, ...]]

    @property
    def database(self) -> Path:
        """A DuckDB database with the tables as all transactions leave them."""
        return self.folder / "after.duckdb"

    @property
    def files(self) -> Path:
        """The same tables as Parquet files."""
        return self.folder / "after"

    def load(self, number: int) -> Refresh:
        """A transaction as Arrow tables."""
        return load(self.folder, number)

    def written(self) -> Path:
        """The folder of Parquet files, which are written when somebody first asks."""
        if not self.files.exists():
            half = _emptied(self.files)
            half.mkdir()
            with duckdb.connect(str(self.database), read_only=True) as connection:
                for name in KEYS:
                    connection.execute(f"COPY {name} TO '{half / name}.parquet' (FORMAT parquet)")
            half.rename(self.files)
        return self.files


def prepared(
    tables: Path,
    data: Path,
    changes: Sequence[str],
    rounds: int | None,
    *,
    deletes: str = "random",
    fresh: bool = False,
) -> Plan:
    """Make transactions, of each size some to warm up and those that are measured."""
    counts = {
        change: (WARM[min(i, 1)], rounds or _rounds(change)) for i, change in enumerate(changes)
    }
    told = "-".join(f"{sum(count)}x{change.rstrip('%')}" for change, count in counts.items())
    kept = data / f"refresh-{tables.name}-{deletes}-{told}"
    if fresh:
        shutil.rmtree(kept, ignore_errors=True)
    if not kept.exists():
        half = _emptied(kept)
        refreshes = Refreshes(tables, half, deletes=deletes)
        refreshes.make([_percent(c) for c, count in counts.items() for _ in range(sum(count))])
        refreshes.tables_after(half / "after.duckdb")
        refreshes.close()
        half.rename(kept)
    return Plan(kept, _measured(counts))


def _measured(counts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, ...]]:
    """For each size, the numbers of the transactions after those that warm up."""
    numbers, made = {}, 0
    for change, (warm, rounds) in counts.items():
        numbers[change] = tuple(range(made + warm, made + warm + rounds))
        made += warm + rounds
    return numbers


def _rounds(change: str) -> int:
    return ROUNDS if _percent(change) < 1 else LARGE_ROUNDS


def _percent(change: str) -> float:
    return float(change.rstrip("%"))


def _emptied(kept: Path) -> Path:
    """Where something is made that is whole only when it has its name."""
    half = kept.with_name(f"{kept.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    return half
