"""Values to look for in memory."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from everview.runtime.vector.int_encoding import Places
from everview.store.sort_order import numbers, single_chunk

MANY = 32
"""Of so many keys those are left out that are beyond all rows."""


class Keys:
    """Values to look for, null being one like any other; put in order once for all runs.

    A row that agrees in more columns with none of `rows` is not wanted; it may be brought.
    """

    def __init__(self, values: pa.ChunkedArray, rows: pa.Table | None = None) -> None:
        self.rows = rows
        self.values = values.drop_null() if values.null_count else values
        self.null = values.null_count > 0

    @cached_property
    def numbers(self) -> Places:
        """Whole numbers, ascending, each once."""
        found = numbers(single_chunk(self.values))
        if len(found) < 2:
            return found
        rises = found[1:] > found[:-1]
        if not rises.all():
            if (found[1:] < found[:-1]).any():
                found = np.sort(found)
                rises = found[1:] > found[:-1]
            found = found[np.append(True, rises)]
        return found

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The least and the greatest of the numbers."""
        return ends(self.numbers)

    def between(self, low: int, high: int) -> Places:
        """The numbers from one to another; of few numbers perhaps others too."""
        if len(self.numbers) < MANY:
            return self.numbers
        first, last = self.numbers.searchsorted(low), self.numbers.searchsorted(high, "right")
        return self.numbers[first:last]

    @cached_property
    def distinct(self) -> pa.Array:
        """The values, each once, in any order."""
        return self.values.unique()


def ends(ordered: Places) -> tuple[int, int] | None:
    """The first and the last of some numbers."""
    return (int(ordered[0]), int(ordered[-1])) if len(ordered) else None
