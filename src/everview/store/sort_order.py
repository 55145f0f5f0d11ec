"""The sort order of a segment: by its keys, ascending, nulls first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]

INT64_SAFE = 2**62
"""The largest number up to which sums and combined keys cannot overflow int64."""

CHECK_MIN_ROWS = 1_000
"""Fewer rows are sorted without looking first whether they are sorted: that costs less."""


def in_order(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows ascending, nulls first; columns that Arrow cannot order do not take part."""
    by = orderable(table.schema, keys)
    if not by or table.num_rows < 2:
        return table
    integers = _integer_keys(table, by)
    if integers is not None:
        if _rises(integers, ties=True):
            return table
        return table.take(pa.array(np.argsort(reduce(combine_keys, integers), kind="stable")))
    if table.num_rows > CHECK_MIN_ROWS and ascends(table, by, ties=True):
        return table
    places = _ordered(table, by)
    if table.num_rows <= CHECK_MIN_ROWS and bool(
        (places.to_numpy() == np.arange(len(places))).all()
    ):
        return table
    return table.take(places)


def _ordered(table: pa.Table, by: Sequence[str]) -> pa.UInt64Array:
    """The places of the rows in their order; of equal ones the first comes first."""
    parts = [part for key in by for part in _parts(table[key])]
    ordered = pa.table(parts, names=[str(at) for at in range(len(parts))])
    return pc.sort_indices(
        ordered, sort_keys=[(name, "ascending") for name in ordered.column_names]
    )


def orderable(schema: pa.Schema, keys: Sequence[str]) -> list[str]:
    """Those keys that Arrow can order."""
    return [key for key in keys if _sortable(schema.field(key).type)]


def ascends(table: pa.Table, keys: Sequence[str], *, ties: bool = False) -> bool:
    """Whether the keys of each row are above those of the row before it, and none is null.

    Then no two rows have the same keys; with `ties` they may be the same. Doubt, as about a NaN,
    is answered with no.
    """
    columns = _integer_keys(table, keys)
    if columns is not None:
        return _rises(columns, ties=ties)
    above: pa.ChunkedArray | None = None
    for key in reversed(keys):
        before, after = table[key][:-1], table[key][1:]
        less = pc.less_equal(before, after) if ties and above is None else pc.less(before, after)
        tied = None if above is None else pc.and_(pc.equal(before, after), above)
        above = less if tied is None else pc.or_(less, tied)
    whole = all(table[key].null_count == 0 for key in keys)
    return whole and above is not None and pc.all(above).as_py() is not False


def _integer_keys(table: pa.Table, keys: Sequence[str]) -> list[Numbers] | None:
    """The key columns as integers; None unless there are some, all integer-like and not null."""
    columns = [table[key] for key in keys]
    if not columns or any(each.null_count or not is_integer_like(each.type) for each in columns):
        return None
    return [numbers(single_chunk(each)) for each in columns]


def _rises(columns: Sequence[Numbers], *, ties: bool) -> bool:
    """Whether each row of numbers is above the one before it, or with `ties` the same."""
    *others, last = columns
    above = last[:-1] <= last[1:] if ties else last[:-1] < last[1:]
    for column in reversed(others):
        before, after = column[:-1], column[1:]
        above = (before < after) | ((before == after) & above)
    return bool(above.all())


def combine_keys(one: Numbers, other: Numbers) -> Numbers:
    """One int64 key per pair of integers, in the order of the pairs (lexicographic packing)."""
    if not len(one):
        return one
    (low, width), (least, many) = _spans(one, other)
    if width * many > INT64_SAFE:
        one, other = (np.unique(each, return_inverse=True)[1] for each in (one, other))
        (low, width), (least, many) = _spans(one, other)
    return (one.astype(np.int64) - low) * many + (other.astype(np.int64) - least)


def _spans(*sides: Numbers) -> list[tuple[int, int]]:
    ends = [(int(side.min()), int(side.max())) for side in sides]
    return [(low, high - low + 1) for low, high in ends]


def is_integer_like(type_: pa.DataType) -> bool:
    """Whether a type is stored as integers that have its order."""
    return bool(types.is_integer(type_) or types.is_date32(type_) or types.is_timestamp(type_))


def single_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; it is copied if it has several chunks."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def numbers(array: pa.Array) -> Numbers:
    """An integer-like array without nulls as integers."""
    if types.is_date32(array.type):
        array = array.view(pa.int32())
    elif types.is_timestamp(array.type):
        array = array.view(pa.int64())
    found: Numbers = array.to_numpy()
    return found


def _parts(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """What a column is sorted by: false comes before true, so its validity puts nulls first."""
    return [pc.is_valid(column), column] if column.null_count else [column]


def _sortable(type_: pa.DataType) -> bool:
    flat = types.is_primitive(type_) and not types.is_interval(type_)
    texts = types.is_string(type_) or types.is_large_string(type_) or types.is_binary(type_)
    return bool(flat or texts or types.is_decimal(type_))
