"""Sorted runs: weighted rows in memory, sorted by one column, and lookups of keys in them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import groupby
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.expr.types import WEIGHT
from everview.runtime.cache.mapped_file import in_mapped_file
from everview.runtime.cache.probe_keys import ProbeKeys, int_range
from everview.runtime.cache.row_layout import PackedRows, RowLayout, take_rows
from everview.runtime.cache.sorted_search import SortedInts
from everview.runtime.parallel import PARALLEL_MIN_ROWS, map_parallel
from everview.runtime.vector.int_encoding import (
    NO_INTS,
    Ints,
    expand_ranges,
    int_column,
    is_int_column,
)
from everview.store.ranges import Ranges, as_integers, has_integers
from everview.store.sort_order import combine_keys, in_order, is_integer_like, numbers, single_chunk

BUDGET_MIN_ROWS = 20_000
"""A run of more rows counts against the memory budget, and lies in a file where that is used up."""
FILTER_MIN_ROWS, FILTER_MIN_RATIO = 100, 2
"""Filter by the remaining key columns only above so many rows, and so many times the keys."""
MAX_BATCH_RUNS = 8
"""A change in more record batches is copied into one run."""
SEARCH_COST_ROWS = 2_000
"""A binary search for one text or decimal costs as much as scanning so many rows."""


class SortedRun:
    """Rows sorted by the column `by`, nulls first; unsorted if it is None or has no order.

    A large run beyond the `room` that the memory budget leaves lies in a mapped file, so that the
    system can evict it; otherwise it stays in memory, and `resident` is its size. The `size` of a
    small run may be given: to measure it costs more than to look something up in it.
    """

    def __init__(
        self,
        rows: pa.Table,
        by: str | None,
        *,
        ordered: bool = False,
        room: float = inf,
        size: int | None = None,
    ) -> None:
        self.by = by if _has_order(rows.schema, by) else None
        # Arrow takes rows fastest from few chunks.
        self.rows = (rows if ordered else _sorted(rows, by)).combine_chunks()
        self._selections: dict[tuple[str, ...], pa.Table] = {}
        self.resident = 0
        self._keep_within(room)
        self._size = size

    def _keep_within(self, room: float) -> None:
        if len(self) <= BUDGET_MIN_ROWS:
            return
        size = self.rows.nbytes
        if size > room and (mapped := in_mapped_file(self.rows)) is not None:
            self.rows = mapped
        else:
            self.resident = size

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def size(self) -> int:
        """How many bytes it takes, in memory or mapped."""
        return int(self.resident or self._size or self.rows.nbytes)

    def take(self, positions: Ints, columns: Sequence[str]) -> pa.Table:
        """The rows at some positions."""
        return _take(self._select(tuple(columns)), int_column(positions))

    def _select(self, names: tuple[str, ...]) -> pa.Table:
        if names not in self._selections:
            self._selections[names] = self.rows.select(names)
        return self._selections[names]

    def all_rows(self, columns: Sequence[str]) -> pa.Table:
        """All rows."""
        return self.rows.select(list(columns))

    @property
    def has_mixed_signs(self) -> bool:
        """Whether rows with one key have weights of both signs, so that some may cancel."""
        negative = self.rows[WEIGHT].to_numpy() < 0
        if not negative.any() or negative.all():
            return False
        if self.by is None:
            return True
        column = single_chunk(self.rows[self.by])
        turns = np.flatnonzero(negative[1:] != negative[:-1])
        before, after = (column.take(int_column(at)) for at in (turns, turns + 1))
        return bool(pc.any(pc.fill_null(pc.equal(before, after), True)).as_py())

    def find(self, by: str, keys: ProbeKeys) -> Ints | None:
        """The positions of the rows with these keys; None if scanning all rows is cheaper."""
        positions = self._find_values(keys) if by == self.by else None
        if positions is not None and keys.has_null and self._nulls:
            positions = np.concatenate((np.arange(self._nulls), positions))
        return positions

    def in_ranges(self, by: str, ranges: Ranges, columns: Sequence[str]) -> pa.Table:
        """The rows with a value in one of the ranges; all rows if they are not sorted by it."""
        if by != self.by or self._ordered_values is None:
            return self.all_rows(columns)
        first, sizes = ranges.find(self._ordered_values)
        return self.take(expand_ranges(first, sizes) + self._nulls, columns)

    def can_filter(self, rows: pa.Table) -> bool:
        """Whether `filter` is exact: all columns of `rows` are integer-valued without nulls."""
        columns = ((self._integer_type(name), rows[name]) for name in rows.column_names)
        return all(ours is not None and _comparable(ours, theirs) for ours, theirs in columns)

    def filter(self, positions: Ints, rows: pa.Table) -> Ints:
        """The positions whose row agrees with one of `rows` in all columns of those."""
        codes = reduce(
            combine_keys,
            (
                np.concatenate((self._integers(name, positions), numbers(single_chunk(rows[name]))))
                for name in rows.column_names
            ),
        )
        ours, theirs = codes[: len(positions)], np.sort(codes[len(positions) :])
        kept: Ints = positions[theirs.take(theirs.searchsorted(ours), mode="clip") == ours]
        return kept

    def _integer_type(self, name: str) -> pa.DataType | None:
        """The type of an integer-valued column without nulls, in one chunk; None of any other."""
        column = self.rows[name]
        plain = column.num_chunks == 1 and not column.null_count and is_integer_like(column.type)
        return column.type if plain else None

    def _integers(self, name: str, positions: Ints) -> Ints:
        values: Ints = numbers(self.rows[name].chunk(0))[positions]
        return values

    def _find_values(self, keys: ProbeKeys) -> Ints | None:
        """The positions of the rows with keys that are not null."""
        if self._sorted_ints is not None:
            ours, theirs = self._int_range, keys.int_range
            if ours is None or theirs is None or ours[0] > theirs[1] or ours[1] < theirs[0]:
                return NO_INTS
            positions = expand_ranges(*self._sorted_ints.find(keys.sorted_ints_within(*ours)))
            return positions + self._nulls if self._nulls else positions
        if len(keys.distinct) * SEARCH_COST_ROWS > len(self):
            return None
        column = self.rows[self.by]
        try:
            ranges = [_bisect(column, key, self._nulls) for key in keys.distinct.to_pylist()]
        except UnicodeDecodeError:  # a Spark string may hold bytes that are not UTF-8
            return None
        first, last = np.array(ranges, np.int64).reshape(-1, 2).T
        return expand_ranges(first, last - first)

    @cached_property
    def int_columns(self) -> dict[str, Ints] | None:
        """Its columns, if all of them are signed integers without nulls."""
        columns = {name: self.rows[name] for name in self.rows.column_names}
        if not all(is_int_column(each) and each.num_chunks == 1 for each in columns.values()):
            return None
        return {name: each.chunk(0).to_numpy() for name, each in columns.items()}

    @cached_property
    def _int_range(self) -> tuple[int, int] | None:
        return None if self._sorted_ints is None else int_range(self._sorted_ints.values)

    @cached_property
    def _nulls(self) -> int:
        return int(self.rows[self.by].null_count)

    @cached_property
    def _ordered_values(self) -> Ints | None:
        """The values of `by` as integers of their order, after its nulls."""
        if self._sorted_ints is not None:
            return self._sorted_ints.values
        column = self.rows[self.by]
        if not has_integers(column.type):
            return None
        return as_integers(single_chunk(column[self._nulls :]))

    @cached_property
    def _sorted_ints(self) -> SortedInts | None:
        """The values of an integer-valued `by`, after its nulls."""
        column = self.rows[self.by]
        if not is_integer_like(column.type):
            return None
        return SortedInts(numbers(single_chunk(column[self._nulls :])))


def runs_of_change(rows: pa.Table, by: str | None, room: float) -> list[SortedRun]:
    """A large change as runs, each beginning where the one before it ends.

    Rows that come in few record batches are not copied.
    """
    ordered = _sorted(rows, by)
    batches = [pa.Table.from_batches([each]) for each in ordered.to_batches() if each.num_rows]
    if len(batches) > MAX_BATCH_RUNS:
        return [SortedRun(ordered, by, ordered=True, room=room)]
    runs = []
    for each in batches:
        runs.append(SortedRun(each, by, ordered=True, room=room))
        room -= runs[-1].resident
    return runs


class PackedRun(SortedRun):
    """A sorted run in a row-major encoding: less memory, but reading all of it costs an unpacking.

    `rows` holds the sort column and the columns that cannot be packed.
    """

    def __init__(self, packed: PackedRows, by: str) -> None:
        self.packed = packed
        super().__init__(packed.rest, by, ordered=True)

    @classmethod
    def pack(cls, rows: pa.Table, by: str, like: RowLayout | None = None) -> PackedRun:
        """Rows in any order, packed in the layout `like` if it fits them."""
        return cls(PackedRows(_sorted(rows, by), by, like), by)

    def _keep_within(self, room: float) -> None:
        self.resident = self.packed.nbytes

    def extends(self, before: SortedRun) -> bool:
        """Whether the concatenation of `before` and this run is a sorted run of one layout."""
        if not isinstance(before, PackedRun) or self.packed.layout is not before.packed.layout:
            return False
        alone = self.rows.column_names == [self.by] == [before.by]
        if not alone or self._nulls or before._nulls:
            return False
        ours, theirs = self._int_range, before._int_range
        return ours is not None and theirs is not None and theirs[1] <= ours[0]

    def take(self, positions: Ints, columns: Sequence[str]) -> pa.Table:
        """The rows at some positions."""
        return take_rows([(self.packed, positions)], columns)

    def all_rows(self, columns: Sequence[str]) -> pa.Table:
        """All rows."""
        return pa.table({name: self.packed.column(name) for name in columns})

    def find(self, by: str, keys: ProbeKeys) -> Ints:
        """The positions of the rows with these keys."""
        positions = super().find(by, keys)
        if positions is not None:
            return positions
        return np.flatnonzero(_matches(self.packed.column(by), keys).to_numpy())

    @property
    def int_columns(self) -> None:
        """Never at hand."""

    def _integer_type(self, name: str) -> pa.DataType | None:
        return self.packed.integer_type(name)

    def _integers(self, name: str, positions: Ints) -> Ints:
        return self.packed.integers(name, positions)


def concatenate_adjacent(runs: list[SortedRun]) -> list[SortedRun]:
    """The same rows, with packed runs that extend each other as one; `runs` is emptied on the way.

    Each run is let go of as soon as it is copied, since memory may be short.
    """
    result: list[SortedRun] = []
    while runs:
        chain: list[SortedRun] = [runs.pop()]
        while runs and isinstance(chain[-1], PackedRun) and chain[-1].extends(runs[-1]):
            chain.append(runs.pop())
        parts = [run.packed for run in reversed(chain) if isinstance(run, PackedRun)]
        by = chain[0].by
        if len(parts) > 1 and by is not None:
            chain.clear()
            result.append(PackedRun(PackedRows.concatenate(parts), by))
        else:
            result += chain
    return result[::-1]


def lookup(
    runs: Sequence[SortedRun], by: str, keys: ProbeKeys, schema: pa.Schema
) -> pa.Table | pa.RecordBatch:
    """The rows of some runs whose column `by` is one of the keys."""
    positions = _find_in_each(runs, by, keys)
    located = zip(runs, positions, strict=True)
    hits = [(run, at) for run, at in located if at is None or len(at)]
    if keys.rows is not None:
        hits = _filter_hits(hits, keys.rows)
    if hits and (columns := _take_int_columns(hits, schema.names)) is not None:
        return pa.record_batch(list(map(int_column, columns)), schema=schema)
    parts: list[pa.Table] = []
    for way, group in groupby(hits, _way):
        if way == _SCAN:
            parts.append(_scan([run for run, _ in group], by, keys, schema.names))
            continue
        searched = [(run, at) for run, at in group if at is not None]
        packed = [(run.packed, at) for run, at in searched if isinstance(run, PackedRun)]
        if packed:
            parts.append(take_rows(packed, schema.names))
        else:
            parts += (run.take(at, schema.names) for run, at in searched)
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _find_in_each(runs: Sequence[SortedRun], by: str, keys: ProbeKeys) -> list[Ints | None]:
    """The positions of the rows with these keys in each run; of many keys on all cores."""
    if len(keys.values) < PARALLEL_MIN_ROWS:
        return [run.find(by, keys) for run in runs]
    if is_integer_like(keys.values.type):
        _ = keys.sorted_ints  # sorted once, not by each thread
    return map_parallel(lambda run: run.find(by, keys), runs)


_SCAN = "scan"


def _way(hit: tuple[SortedRun, Ints | None]) -> object:
    """How a hit is read; neighbours that are read alike are read together."""
    run, at = hit
    if at is None:
        return _SCAN
    return run.packed.layout if isinstance(run, PackedRun) else None


def _scan(runs: Sequence[SortedRun], by: str, keys: ProbeKeys, columns: Sequence[str]) -> pa.Table:
    """The rows whose column `by` is one of the keys, by a scan of some runs at once."""
    rows = pa.concat_tables([run.rows for run in runs])
    matches, selected = _matches(rows[by], keys), rows.select(list(columns))
    if len(rows) < SEARCH_COST_ROWS:  # copying them costs less than filtering each chunk
        matches, selected = single_chunk(matches), selected.combine_chunks()
    return selected.filter(matches)


def _matches(column: pa.ChunkedArray, keys: ProbeKeys) -> pa.ChunkedArray:
    """Whether each value of a column is one of the keys."""
    matches = pc.is_in(column, value_set=single_chunk(keys.values))
    return pc.or_(matches, pc.is_null(column)) if keys.has_null else matches


def _filter_hits(
    hits: list[tuple[SortedRun, Ints | None]], rows: pa.Table
) -> list[tuple[SortedRun, Ints | None]]:
    """Only the positions that agree with one of `rows`, if every run can filter exactly.

    A row inserted in one run may be deleted in another, so all runs are filtered, or none.
    """
    located = [(run, at) for run, at in hits if at is not None and run.can_filter(rows)]
    least = max(FILTER_MIN_ROWS, FILTER_MIN_RATIO * rows.num_rows)
    if len(located) < len(hits) or sum(len(at) for _, at in located) < least:
        return hits
    filtered = ((run, run.filter(at, rows)) for run, at in located)
    return [(run, at) for run, at in filtered if len(at)]


def _take_int_columns(
    hits: Sequence[tuple[SortedRun, Ints | None]], names: Sequence[str]
) -> list[Ints] | None:
    """The columns of few rows of integers, None if they are many, or not all integers."""
    parts = [(run.int_columns, at) for run, at in hits]
    most = PARALLEL_MIN_ROWS
    if sum(most if at is None else len(at) for _, at in parts) >= most:
        return None
    known = [(columns, at) for columns, at in parts if columns is not None]
    if len(known) < len(parts):
        return None
    return [np.concatenate([columns[name][at] for columns, at in known]) for name in names]


def _take(rows: pa.Table, positions: pa.Array) -> pa.Table:
    """The rows at some positions; of many rows, the columns in parallel."""
    if len(positions) < PARALLEL_MIN_ROWS:
        return rows.take(positions)
    columns = map_parallel(lambda column: column.take(positions), rows.columns)
    return pa.table(columns, rows.schema)


def _comparable(type_: pa.DataType, other: pa.ChunkedArray) -> bool:
    """Whether integers of a type equal those of a column exactly where the values are equal."""
    integers = types.is_integer(type_) and types.is_integer(other.type)
    return not other.null_count and bool(integers or type_ == other.type)


def _bisect(column: pa.ChunkedArray, key: Any, nulls: int) -> tuple[int, int]:
    """The first position of a key, and the one after its last, in a column after its nulls."""

    def value(at: int) -> Any:
        return column[at].as_py()

    positions = range(nulls, len(column))
    first = bisect_left(positions, key, key=value)
    return nulls + first, nulls + bisect_right(positions, key, lo=first, key=value)


def _sorted(rows: pa.Table, by: str | None) -> pa.Table:
    return in_order(rows, [by]) if by is not None and _has_order(rows.schema, by) else rows


def _has_order(schema: pa.Schema, by: str | None) -> bool:
    if by is None:
        return False
    type_ = schema.field(by).type
    return is_integer_like(type_) or bool(types.is_string(type_) or types.is_decimal(type_))
