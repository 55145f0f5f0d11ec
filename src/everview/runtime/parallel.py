"""Maps a function over columns on a thread pool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

PARALLEL_MIN_ROWS = 20_000
"""With fewer rows a column costs less to compute than to hand to a thread."""


def map_parallel(compute: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """`compute` of each item, in order; it may not call this function itself."""
    return list(_pool().map(compute, items))


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to start one takes as long as some columns do."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-columns")
