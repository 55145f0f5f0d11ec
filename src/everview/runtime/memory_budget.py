"""How much memory there is, and who may have which part of it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

ASSUMED = 8 << 30
"""Where nobody tells, a machine is taken to have this."""
CALCULATING, EMBEDDED, BESIDE_SPARK = 0.35, 0.36, 0.20
"""The parts for what DuckDB computes with, and for relations that are held: by the embedded engine,
and where a Spark driver needs memory too. What is held beyond that lies in mapped files."""

_LIMIT = Path("/sys/fs/cgroup/memory.max")


@cache
def machine_bytes() -> int:
    """The memory of the machine, or of the container that it is."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = ASSUMED
    try:
        return min(whole, int(_LIMIT.read_text()))
    except (OSError, ValueError):
        return whole


def part(share: float) -> int:
    """A part of the memory in bytes."""
    return int(share * machine_bytes())
