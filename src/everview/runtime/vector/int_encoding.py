"""Encodes columns as int64 arrays, where that is exact, so that numpy can compare and add them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.vector.errors import Unsupported
from everview.store.sort_order import combine_keys, is_integer_like, numbers

Ints: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""A numpy array: values, codes or row positions as integers, or a mask of rows."""

NO_INTS: Ints = np.empty(0, np.int64)
_ARROW_INTS = {np.dtype(f"i{size}"): pa.from_numpy_dtype(f"i{size}") for size in (1, 2, 4, 8)}
_INT64_DIGITS = 19
"""Every int64 has at most so many digits."""


def max_abs(values: Ints) -> int:
    """The greatest distance of a value from zero."""
    return max(-int(values.min()), int(values.max())) if values.size else 0


def expand_ranges(first: Ints, sizes: Ints) -> Ints:
    """The positions of ranges, each given by its first position and its size.

    >>> expand_ranges(np.array([5, 0, 7]), np.array([2, 0, 1])).tolist()
    [5, 6, 7]
    """
    if len(first) == 1:
        return np.arange(first[0], first[0] + sizes[0]) if sizes[0] else NO_INTS
    ends = sizes.cumsum()
    count = int(ends[-1]) if len(ends) else 0
    if not count:
        return NO_INTS
    positions: Ints = (first - ends + sizes).repeat(sizes) + np.arange(count)
    return positions


def grow(array: Ints, length: int) -> Ints:
    """An array with room for `length` values along its last axis; at least doubled if it grows."""
    room = array.shape[-1]
    if length <= room:
        return array
    more = np.zeros((*array.shape[:-1], max(room, length - room)), array.dtype)
    return np.concatenate((array, more), axis=-1)


def is_int_column(values: pa.Array) -> bool:
    """Whether a column has signed integers and no null."""
    return not values.null_count and bool(types.is_signed_integer(values.type))


def int_column(values: Ints) -> pa.Array:
    """Integers as an Arrow column that shares their memory.

    For few values this costs a third of what `pa.array` does.

    >>> int_column(np.array([1, 2], np.int32)).type
    DataType(int32)
    """
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(_ARROW_INTS[values.dtype], len(values), [None, buffer])


def take_values(values: pa.Array, positions: Ints) -> pa.Array:
    """The values at some positions."""
    if is_int_column(values):
        return int_column(values.to_numpy()[positions])
    return values.take(int_column(positions))


def unscaled(columns: Sequence[pa.Array | Ints]) -> Ints | None:
    """Integer or decimal columns as rows of a matrix; a decimal as units of its last digit.

    Null is zero. None if there are values of other types, or longer than 64 bits.
    """
    count = len(columns[0])
    halves: Ints = np.empty((len(columns), count, 2), np.int64)
    for row, values in zip(halves, columns, strict=True):
        if isinstance(values, np.ndarray):
            _write_ints(row, values)
        elif types.is_integer(values.type):
            _write_ints(row, (values.fill_null(0) if values.null_count else values).to_numpy())
        elif types.is_decimal128(values.type):
            _write_decimals(row, values)
        else:
            return None
    low, high = halves[:, :, 0], halves[:, :, 1]
    return low if bool((high == low >> 63).all()) else None


def _write_ints(row: Ints, values: Ints) -> None:
    row[:, 0] = values
    row[:, 1] = row[:, 0] >> 63


def _write_decimals(row: Ints, values: pa.Array) -> None:
    if not len(values):
        return
    halves = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
    row[:] = halves.reshape(-1, 2)
    if values.null_count:
        row[values.is_null().to_numpy(zero_copy_only=False)] = 0


def from_unscaled(rows: Ints, targets: Sequence[pa.DataType]) -> list[pa.Array]:
    """The inverse of `unscaled`: each row of a matrix as a column of its type.

    Unsupported, or an Arrow error, where a value does not fit.
    """
    halves: Ints = np.empty((*rows.shape, 2), np.int64)
    halves[:, :, 0], halves[:, :, 1] = rows, rows >> 63
    columns = []
    for row, pair, type_ in zip(rows, halves, targets, strict=True):
        if types.is_decimal128(type_):
            if type_.precision < _INT64_DIGITS and max_abs(row) >= 10**type_.precision:
                raise Unsupported("too many digits")
            columns.append(pa.Array.from_buffers(type_, len(row), [None, pa.py_buffer(pair)]))
        else:
            columns.append(pa.array(row, type_))
    return columns


def key_codes(keys: Iterable[Sequence[pa.Array]]) -> Ints:
    """A code per row, equal where all keys are equal; null is a value like any other.

    Each key comes in chunks of one type, in the order of the rows.
    """
    return reduce(combine_keys, map(column_codes, keys))


def column_codes(chunks: Sequence[pa.Array]) -> Ints:
    """A code per value of a chunked column, equal where values are equal."""
    type_, no_nulls = chunks[0].type, True
    for chunk in chunks:
        if chunk.type != type_:
            raise Unsupported("keys of different types")
        no_nulls = no_nulls and not chunk.null_count
    if no_nulls and is_integer_like(type_):
        values = [numbers(chunk) for chunk in chunks]
        return values[0] if len(values) == 1 else np.concatenate(values)
    if no_nulls and types.is_decimal128(type_):
        units = [unscaled([chunk]) for chunk in chunks]
        if all(each is not None for each in units):
            return np.concatenate([each[0] for each in units if each is not None])
    for chunk in chunks:
        require_canonical(chunk)
    column = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    codes: Ints = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
    return codes


def rank_codes(values: pa.Array) -> Ints:
    """A code per value, in the order of the values; Unsupported for nulls and NaN."""
    if values.null_count:
        raise Unsupported("nulls in an order")
    if is_integer_like(values.type):
        return numbers(values)
    require_canonical(values)
    codes = unscaled([values])
    if codes is None:
        codes = pc.rank(values, "ascending", tiebreaker="dense").to_numpy()[None]
    first: Ints = codes[0].astype(np.int64, copy=False)
    return first


def require_canonical(values: Any) -> None:
    """Unsupported where equal values may have different bytes: 0.0 and -0.0, NaN, nested values."""
    if types.is_nested(values.type):
        raise Unsupported("nested keys")
    if not types.is_floating(values.type):
        return
    doubtful = pc.or_kleene(pc.equal(values, 0), pc.is_nan(values))
    if pc.any(doubtful).as_py():
        raise Unsupported("a zero or NaN among keys")
