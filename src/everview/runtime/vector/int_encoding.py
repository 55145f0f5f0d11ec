"""Values of a column as whole numbers of 64 bits, where they are some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.vector.errors import Unknown
from everview.store.sort_order import combine_keys, is_integer_like, numbers

Places: TypeAlias = np.ndarray[Any, np.dtype[Any]]

NOWHERE: Places = np.empty(0, np.int64)
_WHOLE = {np.dtype(f"i{size}"): pa.from_numpy_dtype(f"i{size}") for size in (1, 2, 4, 8)}
_LONG = 19
"""Digits of which every number of 64 bits has at most so many."""


def bound(values: Places) -> int:
    """A number that no value is further from zero than."""
    return max(-int(values.min()), int(values.max())) if values.size else 0


def spread(first: Places, sizes: Places) -> Places:
    """From each first place on, so many places.

    >>> spread(np.array([5, 0, 7]), np.array([2, 0, 1])).tolist()
    [5, 6, 7]
    """
    if len(first) == 1:
        return np.arange(first[0], first[0] + sizes[0]) if sizes[0] else NOWHERE
    ends = sizes.cumsum()
    count = int(ends[-1]) if len(ends) else 0
    if not count:
        return NOWHERE
    places: Places = (first - ends + sizes).repeat(sizes) + np.arange(count)
    return places


def with_room(known: Places, wanted: int) -> Places:
    """An array with room for so many, at its end; at least doubled if it has to grow."""
    room = known.shape[-1]
    if wanted <= room:
        return known
    more = np.zeros((*known.shape[:-1], max(room, wanted - room)), known.dtype)
    return np.concatenate((known, more), axis=-1)


def is_whole(values: pa.Array) -> bool:
    """Whether a column has whole numbers and no null."""
    return not values.null_count and bool(types.is_signed_integer(values.type))


def of_numbers(values: Places) -> pa.Array:
    """Whole numbers as a column that shares their memory.

    For few numbers this costs a third of what `pa.array` does.

    >>> of_numbers(np.array([1, 2], np.int32)).type
    DataType(int32)
    """
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(_WHOLE[values.dtype], len(values), [None, buffer])


def values_at(values: pa.Array, places: Places) -> pa.Array:
    """The values at some places."""
    if is_whole(values):
        return of_numbers(values.to_numpy()[places])
    return values.take(of_numbers(places))


def units(columns: Sequence[pa.Array | Places]) -> Places | None:
    """Columns of integers, or of decimals as so many units of their last digit, one in each row.

    Null is zero. None if there are values of other types, or longer than 64 bits.
    """
    count = len(columns[0])
    halves: Places = np.empty((len(columns), count, 2), np.int64)
    for row, values in zip(halves, columns, strict=True):
        if isinstance(values, np.ndarray):
            _write(row, values)
        elif types.is_integer(values.type):
            _write(row, (values.fill_null(0) if values.null_count else values).to_numpy())
        elif types.is_decimal128(values.type):
            _copy(row, values)
        else:
            return None
    low, high = halves[:, :, 0], halves[:, :, 1]
    return low if bool((high == low >> 63).all()) else None


def _write(row: Places, values: Places) -> None:
    row[:, 0] = values
    row[:, 1] = row[:, 0] >> 63


def _copy(row: Places, values: pa.Array) -> None:
    if not len(values):
        return
    halves = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
    row[:] = halves.reshape(-1, 2)
    if values.null_count:
        row[values.is_null().to_numpy(zero_copy_only=False)] = 0


def as_types(rows: Places, targets: Sequence[pa.DataType]) -> list[pa.Array]:
    """Rows of whole numbers, each as a column: a decimal of so many units of its last digit.

    One that does not fit is Unknown, or an Arrow error.
    """
    halves: Places = np.empty((*rows.shape, 2), np.int64)
    halves[:, :, 0], halves[:, :, 1] = rows, rows >> 63
    made = []
    for row, pair, type_ in zip(rows, halves, targets, strict=True):
        if types.is_decimal128(type_):
            if type_.precision < _LONG and bound(row) >= 10**type_.precision:
                raise Unknown("too many digits")
            made.append(pa.Array.from_buffers(type_, len(row), [None, pa.py_buffer(pair)]))
        else:
            made.append(pa.array(row, type_))
    return made


def codes(keys: Iterable[Sequence[pa.Array]]) -> Places:
    """A number for each row, equal where all keys are; null is a value like any other.

    Each key comes in pieces of one type, in the order of the rows.
    """
    return reduce(combine_keys, map(coded, keys))


def coded(pieces: Sequence[pa.Array]) -> Places:
    """A number for each value of a column in pieces, equal where values are."""
    type_, whole = pieces[0].type, True
    for each in pieces:
        if each.type != type_:
            raise Unknown("keys of different types")
        whole = whole and not each.null_count
    if whole and is_integer_like(type_):
        found = [numbers(each) for each in pieces]
        return found[0] if len(found) == 1 else np.concatenate(found)
    if whole and types.is_decimal128(type_):
        digits = [units([each]) for each in pieces]
        if all(each is not None for each in digits):
            return np.concatenate([each[0] for each in digits if each is not None])
    for each in pieces:
        must_be_comparable(each)
    values = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    found_at: Places = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
    return found_at


def ranked(values: pa.Array) -> Places:
    """Numbers in the order of the values, equal where these are; Unknown of nulls and NaN."""
    if values.null_count:
        raise Unknown("nulls in an order")
    if is_integer_like(values.type):
        return numbers(values)
    must_be_comparable(values)
    digits = units([values])
    if digits is None:
        digits = pc.rank(values, "ascending", tiebreaker="dense").to_numpy()[None]
    found: Places = digits[0].astype(np.int64, copy=False)
    return found


def must_be_comparable(values: Any) -> None:
    """Unknown where equal values have different bytes: zeros with a sign, and NaN."""
    if types.is_nested(values.type):
        raise Unknown("nested keys")
    if not types.is_floating(values.type):
        return
    doubtful = pc.or_kleene(pc.equal(values, 0), pc.is_nan(values))
    if pc.any(doubtful).as_py():
        raise Unknown("a zero or NaN among keys")
