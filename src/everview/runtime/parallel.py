"""Work on many rows that is done by all cores, column by column."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

MANY = 20_000
"""To compute a column of so many rows costs more than to hand it to a thread."""


def side_by_side(compute: Callable[[T], U], of: Iterable[T]) -> list[U]:
    """What is computed of each, in their order; none of it may ask for this itself."""
    return list(_pool().map(compute, of))


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to begin one takes as long as some columns do."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-columns")
