"""Ranges of integers: those that rows ask for, made disjoint, and searched for in sorted values."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from everview.expr.types import INT64_DIGITS
from everview.store.sort_order import is_integer_like, numbers

Ints: TypeAlias = npt.NDArray[np.int64]

LEAST, MOST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


class Ranges:
    """Disjoint ranges in ascending order, their ends included.

    >>> ranges = Ranges(np.array([5, 1, 9, 8]), np.array([6, 3, 2, 10]))
    >>> ranges.low.tolist(), ranges.high.tolist()
    ([1, 5, 8], [3, 6, 10])
    """

    def __init__(self, low: Ints, high: Ints) -> None:
        there = low <= high
        low, high = low[there], high[there]
        order = np.argsort(low, kind="stable")
        low, high = low[order], np.maximum.accumulate(high[order])
        apart = low[1:] > high[:-1]
        self.low: Ints = low[np.append(True, apart)] if len(low) else low
        self.high: Ints = high[np.append(apart, True)] if len(low) else high

    def find(self, values: Ints) -> tuple[Ints, Ints]:
        """In ascending values: where those of each range begin, and how many they are."""
        first = values.searchsorted(self.low)
        return first, values.searchsorted(self.high, "right") - first

    def meets(self, low: Any, high: Any) -> npt.NDArray[np.bool_]:
        """For each pair of ends, whether a value between them may be in a range."""
        low, high = np.asarray(low, np.int64), np.asarray(high, np.int64)
        if not len(self.low):
            return np.zeros(low.shape, np.bool_)
        first = self.high.searchsorted(low)
        starts = self.low[np.minimum(first, len(self.low) - 1)]
        met: npt.NDArray[np.bool_] = (first < len(self.low)) & (starts <= high)
        return met


def has_integers(type_: pa.DataType) -> bool:
    """Whether values are integers of the same order; decimals are, in units of the last digit."""
    short = types.is_decimal128(type_) and type_.precision <= INT64_DIGITS
    return is_integer_like(type_) or short


def as_integers(values: pa.Array) -> Ints:
    """Values without NULL, of a type that has integers."""
    if not types.is_decimal128(values.type):
        return numbers(values).astype(np.int64)
    if not len(values):
        return np.empty(0, np.int64)
    halves = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
    return halves[::2]


def moved(values: Ints, by: int) -> Ints:
    """Values plus a constant; what is beyond 64 bits becomes the least or the greatest of them.

    >>> moved(np.array([1, MOST]), 2).tolist() == [3, MOST]
    True
    """
    if not LEAST <= by <= MOST:
        return np.full_like(values, MOST if by > 0 else LEAST)
    return np.minimum(values, MOST - by) + by if by >= 0 else np.maximum(values, LEAST - by) + by
