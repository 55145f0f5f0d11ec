"""How the memory of the machine is shared out."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

ASSUMED_BYTES = 8 << 30
"""The memory of a machine that does not say how much it has."""
CALCULATING, EMBEDDED, BESIDE_SPARK = 0.35, 0.36, 0.20
"""Shares of memory: for DuckDB, and for the relation cache of the embedded engine and beside Spark.

What the cache holds beyond its share lies in mapped files."""

_LIMIT = Path("/sys/fs/cgroup/memory.max")


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
