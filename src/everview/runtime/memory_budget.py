"""How the memory of the machine is shared out, and how much of it may stay taken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir

from everview.store.change_file import RECENT_MAX_BYTES

ASSUMED_BYTES = 8 << 30
"""The memory of a machine that does not say how much it has."""
CALCULATING, EMBEDDED, BESIDE_SPARK = 0.35, 0.36, 0.20
"""Shares of memory: for DuckDB, and for the relation cache of the embedded engine and beside Spark.

What the cache holds beyond its share lies in mapped files."""
MAPPED_MAX_BYTES = 32 << 30
"""What is held by default, in memory and in mapped files together, unless the disk has less."""
RECENT_SHARE = 8
"""Of a budget, one part in so many is for small changes that were just written."""
CALCULATING_MIN_BYTES, THREAD_MIN_BYTES = 512 << 20, 128 << 20
"""What DuckDB gets however small a budget is, in all and per core: less, and statements fail."""
READABLE_MIN_BYTES = 256 << 20
"""A relation of fewer bytes is read whole under any budget."""
FETCHED_MIN_BYTES, FETCHED_MAX_BYTES = 256 << 20, 512 << 20
"""What a round of slices may bring from files under any budget, and what it may at most."""

_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How much may be held between transactions, and how much DuckDB may use to compute.

    `held` counts memory and mapped files alike; up to `resident` of it stays in memory. A budget
    that is `given`, not a share of the machine, maps no file, and refuses to read whole relations
    that are beyond it. Where `calculating` is None, DuckDB has a share of the machine.
    """

    held: int
    resident: int
    calculating: int | None = None
    given: bool = False

    @property
    def recent(self) -> int:
        """The part for small changes that were just written and need not be read back."""
        return min(RECENT_MAX_BYTES, self.held // RECENT_SHARE)

    @property
    def cached(self) -> int:
        """The part for the relation cache."""
        return self.held - self.recent

    @property
    def readable(self) -> float:
        """A relation of more bytes is not read whole, but in batches."""
        return max(self.held, READABLE_MIN_BYTES) if self.given else float("inf")

    @property
    def fetched(self) -> int:
        """Slices of more bytes in one round are not brought here, where there are executors."""
        return min(max(self.resident, FETCHED_MIN_BYTES), FETCHED_MAX_BYTES)


def memory_budget(memory: int | None = None, share: float = EMBEDDED) -> MemoryBudget:
    """The budget of so many bytes; without them, a share of the machine and some of its disk."""
    if memory is None:
        resident = part(share)
        mapped = min(MAPPED_MAX_BYTES, disk_usage(gettempdir()).free // 2)
        return MemoryBudget(max(resident, mapped), resident)
    least = max(CALCULATING_MIN_BYTES, THREAD_MIN_BYTES * (os.cpu_count() or 1))
    return MemoryBudget(memory, memory, min(part(CALCULATING), max(memory, least)), given=True)


@cache
def machine_bytes() -> int:
    """The memory of the machine, or of the container that it is."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = ASSUMED_BYTES
    try:
        return min(whole, int(_LIMIT.read_text()))
    except (OSError, ValueError):
        return whole


def part(share: float) -> int:
    """A part of the memory in bytes."""
    return int(share * machine_bytes())
