"""The probe side of a lookup: key values, sorted and deduplicated once for all runs searched."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from everview.runtime.vector.int_encoding import Ints
from everview.store.sort_order import numbers, single_chunk

CLIP_MIN_KEYS = 32
"""Fewer keys are searched even if they lie outside of a run's range."""


class ProbeKeys:
    """Values of a key column to look up; null is a value like any other.

    `rows` are the same keys with further columns: of the rows that have one of the values, those
    that agree with none of `rows` need not be returned, but may be.
    """

    def __init__(self, values: pa.ChunkedArray, rows: pa.Table | None = None) -> None:
        self.rows = rows
        self.values = values.drop_null() if values.null_count else values
        self.has_null = values.null_count > 0

    @cached_property
    def sorted_ints(self) -> Ints:
        """The values of an integer-valued column, ascending, each once."""
        values = numbers(single_chunk(self.values))
        if len(values) < 2:
            return values
        rises = values[1:] > values[:-1]
        if not rises.all():
            if (values[1:] < values[:-1]).any():
                values = np.sort(values)
                rises = values[1:] > values[:-1]
            values = values[np.append(True, rises)]
        return values

    @cached_property
    def int_range(self) -> tuple[int, int] | None:
        """The least and the greatest of `sorted_ints`."""
        return int_range(self.sorted_ints)

    def sorted_ints_within(self, low: int, high: int) -> Ints:
        """The part of `sorted_ints` from `low` to `high`; all of them if they are few."""
        if len(self.sorted_ints) < CLIP_MIN_KEYS:
            return self.sorted_ints
        first = self.sorted_ints.searchsorted(low)
        return self.sorted_ints[first : self.sorted_ints.searchsorted(high, "right")]

    @cached_property
    def distinct(self) -> pa.Array:
        """The values, each once, in any order."""
        return self.values.unique()


def int_range(ascending: Ints) -> tuple[int, int] | None:
    """The first and the last of ascending integers, None if there are none."""
    return (int(ascending[0]), int(ascending[-1])) if len(ascending) else None
