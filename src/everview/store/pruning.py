"""Pruning: which files may hold a key, by the bounds in the manifest, and which row groups of
them, by the statistics in their footers.

One is left out only when no wanted key can be in it: too much is slow, too little is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.store.bounds import decode, ordered, tag_of
from everview.store.footers import Array, GroupRanges
from everview.store.manifest import DataFile, Segment
from everview.store.ranges import LEAST, MOST, Ranges

_INTEGERS = ("int", "date", "timestamp", "timestamp_ntz")
"""The tags of values that are compared as integers."""


class Probe:
    """The wanted keys of a column, sorted once, so that a file costs one binary search."""

    def __init__(self, key: str, keys: pa.Array | pa.ChunkedArray) -> None:
        self.key = key
        self.has_null = keys.null_count > 0
        self.any_value = len(keys) > keys.null_count
        self.tag = tag_of(keys.type)
        self.values = _sorted(keys) if self.tag else None

    def files_of(self, segment: Segment) -> list[DataFile]:
        """The files of a segment that may hold a key."""
        return _files_of(segment, self.key, self.may_be_in)

    def groups_of(self, ranges: GroupRanges | None, count: int) -> Array:
        """The row groups of a file, of so many, that may hold a key."""
        if ranges is None:
            return np.arange(count)
        wanted = ranges.has_null if self.has_null else np.zeros(count, np.bool_)
        if self.any_value:
            wanted = wanted | self._may_have_values(ranges)
        return np.flatnonzero(wanted)

    def _may_have_values(self, ranges: GroupRanges) -> Array:
        if self.values is None or ranges.tag != self.tag:
            return ranges.has_values
        if self.tag in _INTEGERS:
            values, low, high = (
                np.array(each, np.int64) for each in (self.values, ranges.low, ranges.high)
            )
            first, last = values.searchsorted(low), len(values) - 1
            within = (first <= last) & (values[np.minimum(first, last)] <= high)
        else:
            known = zip(ranges.bounded, ranges.low, ranges.high, strict=True)
            found = [bool(bounded) and self._is_between(*ends) for bounded, *ends in known]
            within = np.array(found, np.bool_)
        return np.where(ranges.bounded, within, ranges.has_values)

    def may_be_in(self, file: DataFile) -> bool:
        """Whether a file sorted by the column may hold a key."""
        if file.rows == 0:
            return False
        return (self.has_null and file.has_null) or (self.any_value and self._in_range(file))

    def _in_range(self, file: DataFile) -> bool:
        tags = {bound[0] for bound in (file.low, file.high) if bound}
        if self.values is None or not tags <= {self.tag}:
            return True
        return self._is_between(*(bound and decode(bound) for bound in (file.low, file.high)))

    def _is_between(self, low: Any, high: Any) -> bool:
        """Whether some value lies between two, None for no limit; the first not below `low`."""
        assert self.values is not None
        first = 0 if low is None else bisect_left(self.values, low)
        if first == len(self.values):
            return False
        return high is None or bool(self.values[first] <= high)


class RangeProbe:
    """The wanted ranges of a column whose values compare as integers; NULL is in no range."""

    def __init__(self, key: str, type_: pa.DataType, ranges: Ranges) -> None:
        self.key, self.tag, self.ranges = key, tag_of(type_), ranges

    def files_of(self, segment: Segment) -> list[DataFile]:
        """The files of a segment that may hold a wanted row."""
        return _files_of(segment, self.key, self._may_be_in)

    def groups_of(self, ranges: GroupRanges | None, count: int) -> Array:
        """The row groups of a file, of so many, that may hold a wanted row."""
        if ranges is None:
            return np.arange(count)
        if self.tag not in _INTEGERS or ranges.tag != self.tag:
            return np.flatnonzero(ranges.has_values)
        met = self.ranges.meets(ranges.low, ranges.high)
        return np.flatnonzero(np.where(ranges.bounded, met, ranges.has_values))

    def _may_be_in(self, file: DataFile) -> bool:
        """Whether a file sorted by the column may hold a wanted row."""
        tags = {bound[0] for bound in (file.low, file.high) if bound}
        if not tags <= {self.tag} or self.tag not in _INTEGERS:
            return file.rows > 0
        low, high = (bound and decode(bound) for bound in (file.low, file.high))
        ends = LEAST if low is None else low, MOST if high is None else high
        return file.rows > 0 and bool(self.ranges.meets(*ends))


def _files_of(segment: Segment, key: str, may_be_in: Callable[[DataFile], bool]) -> list[DataFile]:
    """The files that bounds do not rule out; only what a segment is sorted by has bounds."""
    if segment.sort_by[:1] != (key,):
        return [*segment.files]
    return [file for file in segment.files if may_be_in(file)]


def _sorted(keys: pa.Array | pa.ChunkedArray) -> list[Any] | None:
    """The keys in order, None when one is no UTF-8 and so cannot be compared here."""
    values = pc.unique(keys.drop_null())
    try:
        return ordered(values.take(pc.sort_indices(values)))
    except ValueError:
        return None
