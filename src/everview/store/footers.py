"""Parsed footers of Parquet files, the last used ones kept: what each row group holds, and where.

A file is immutable, so a footer that was verified when it was parsed stays right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from everview.store.bounds import decode, range_of_statistics, tag_of

MAX_BYTES = 64 << 20
"""How much memory footers take at most."""
CHUNK_BYTES = 800
"""About how much memory the description of one column of a row group takes."""

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class GroupRanges:
    """What is known about one column in each row group of a file.

    Where a group is `bounded`, low ≤ every value that is not null ≤ high; `tag` says how values are
    compared, as that of a bound does. A group that `has_values` may hold any others.
    """

    tag: str | None
    low: list[Any]
    high: list[Any]
    bounded: Array
    has_values: Array
    has_null: Array


@dataclass(frozen=True)
class Footer:
    """The footer of one file."""

    metadata: pq.FileMetaData
    _ranges: dict[str, GroupRanges] = field(default_factory=dict)
    _sizes: dict[str, Array] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return CHUNK_BYTES * int(self.metadata.num_row_groups * self.metadata.num_columns)

    @cached_property
    def rows(self) -> Array:
        """How many rows each row group has."""
        counts = [group.num_rows for group in self._groups()]
        return np.array(counts, np.int64)

    def sizes(self, columns: Sequence[str]) -> Array:
        """How many bytes of the file each row group takes with some columns."""
        return sum((self._column_sizes(name) for name in columns), np.zeros_like(self.rows))

    def ranges(self, column: str) -> GroupRanges | None:
        """The ranges of a column by row group; None where statistics tell nothing."""
        if column not in self._ranges:
            leaves = self._leaves(column)
            if len(leaves) != 1 or self._paths[leaves[0]] != column:
                return None
            type_ = self.metadata.schema.to_arrow_schema().field(column).type
            told = [group.column(leaves[0]).statistics for group in self._groups()]
            self._ranges[column] = _ranges(told, type_, self.rows)
        return self._ranges[column]

    def _column_sizes(self, column: str) -> Array:
        if column not in self._sizes:
            leaves = self._leaves(column)
            sizes = [
                sum(group.column(at).total_compressed_size for at in leaves)
                for group in self._groups()
            ]
            self._sizes[column] = np.array(sizes, np.int64)
        return self._sizes[column]

    def _groups(self) -> list[pq.RowGroupMetaData]:
        return [self.metadata.row_group(at) for at in range(self.metadata.num_row_groups)]

    @cached_property
    def _paths(self) -> list[str]:
        schema = self.metadata.schema
        return [schema.column(at).path for at in range(self.metadata.num_columns)]

    def _leaves(self, column: str) -> list[int]:
        """Where a column is stored; a nested one is in several places."""
        return [
            at
            for at, path in enumerate(self._paths)
            if path == column or path.startswith(f"{column}.")
        ]


@dataclass(slots=True)
class Footers:
    """Footers by path, the least recently used out first.

    Each change is one operation of a dict, so threads need no lock, which a fork could leave shut.
    """

    max_bytes: int = MAX_BYTES
    _kept: dict[str, Footer] = field(default_factory=dict)

    def get(self, path: str, parse: Callable[[], Footer]) -> Footer:
        """The footer of a file, parsed if it is not kept."""
        footer = self._kept.pop(path, None) or parse()
        self._kept[path] = footer
        self._evict()
        return footer

    def _evict(self) -> None:
        kept = list(self._kept.items())
        size = sum(footer.bytes for _, footer in kept)
        for path, footer in kept[:-1]:
            if size <= self.max_bytes:
                break
            self._kept.pop(path, None)
            size -= footer.bytes


def _ranges(told: Sequence[pq.Statistics | None], type_: pa.DataType, rows: Array) -> GroupRanges:
    """The ranges of a column from its statistics in each row group, without a guess."""
    tag, count = tag_of(type_), len(told)
    low: list[Any] = [0] * count
    high: list[Any] = [0] * count
    bounded = np.zeros(count, np.bool_)
    has_values, has_null = np.ones(count, np.bool_), np.ones(count, np.bool_)
    for at, each in enumerate(told):
        if each is None or not each.has_null_count:
            continue
        has_null[at] = each.null_count > 0
        if each.null_count == rows[at]:
            has_values[at] = False
        elif tag is not None and each.has_min_max:
            ends = _ends(each, type_)
            if ends is not None:
                low[at], high[at] = ends
                bounded[at] = True
    return GroupRanges(tag, low, high, bounded, has_values, has_null)


def _ends(told: pq.Statistics, type_: pa.DataType) -> tuple[Any, Any] | None:
    if types.is_signed_integer(type_):
        return told.min, told.max
    known = range_of_statistics([told], type_)
    if known.low is None or known.high is None:
        return None
    return decode(known.low), decode(known.high)
