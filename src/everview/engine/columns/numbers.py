"""Values of a column as whole numbers of 64 bits, where they are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.engine.columns.unknown import Unknown

Places: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SAFE = 2**62
"""Sums, and pairs of numbers, up to this one are computed in 64 bits."""
_DIGITS = tuple(10**digits for digits in range(39))


def bound(values: Places) -> int:
    """A number that no value is further from zero than."""
    return max(-int(values.min()), int(values.max())) if len(values) else 0


def counts(type_: pa.DataType) -> bool:
    """Whether the values of a type are whole numbers, in their order."""
    return bool(types.is_integer(type_) or types.is_date32(type_) or types.is_timestamp(type_))


def numbers(array: pa.Array) -> Places:
    """The whole numbers of an array without nulls."""
    if types.is_date32(array.type):
        array = array.view(pa.int32())
    elif types.is_timestamp(array.type):
        array = array.view(pa.int64())
    found: Places = array.to_numpy()
    return found


def spread(first: Places, sizes: Places) -> Places:
    """From each first place on, so many places."""
    begins = sizes.cumsum() - sizes
    places: Places = (first - begins).repeat(sizes) + np.arange(sizes.sum())
    return places


def whole(values: pa.Array) -> Places | None:
    """Integers, or decimals as so many units of their last digit, zero for null.

    None if they are others, or longer than 64 bits.
    """
    missing = pc.is_null(values).to_numpy(zero_copy_only=False) if values.null_count else None
    if types.is_integer(values.type):
        filled = values if missing is None else pc.fill_null(values, 0)
        integers: Places = filled.to_numpy().astype(np.int64, copy=False)
        return integers
    if not types.is_decimal128(values.type):
        return None
    if not len(values):
        return np.empty(0, np.int64)
    halves = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)
    halves = halves[values.offset : values.offset + len(values)]
    if missing is not None:
        halves = np.where(missing[:, None], 0, halves)
    low, high = halves[:, 0], halves[:, 1]
    return low if bool((high == low >> 63).all()) else None


def as_type(found: Places, scale: int, type_: pa.DataType) -> pa.Array:
    """Whole numbers, each so many units of the last of `scale` digits, as values of a type.

    One that does not fit is Unknown.
    """
    if types.is_decimal128(type_) and type_.scale == scale:
        if bound(found) >= _DIGITS[type_.precision]:
            raise Unknown("too many digits")
        halves = np.empty((len(found), 2), np.int64)
        halves[:, 0], halves[:, 1] = found, found >> 63
        return pa.Array.from_buffers(type_, len(found), [None, pa.py_buffer(halves)])
    if scale:
        return as_type(found, scale, pa.decimal128(19, scale)).cast(type_)
    return pa.array(found) if type_ == pa.int64() else pa.array(found).cast(type_)


def codes(keys: Sequence[Sequence[pa.Array]]) -> Places:
    """A number for each row, equal where all keys are; null is a value like any other.

    Each key comes in pieces of one type, in the order of the rows.
    """
    found = _coded(keys[0])
    for pieces in keys[1:]:
        found = _both(found, _coded(pieces))
    return found


def _coded(pieces: Sequence[pa.Array]) -> Places:
    type_ = pieces[0].type
    if any(each.type != type_ for each in pieces):
        raise Unknown("keys of different types")
    if counts(type_) and not any(each.null_count for each in pieces):
        found = [numbers(each) for each in pieces]
        return found[0] if len(found) == 1 else np.concatenate(found)
    for each in pieces:
        must_be_comparable(each)
    values = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    indices: Places = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
    return indices


def _both(one: Places, other: Places) -> Places:
    """A number for each pair of numbers, equal for equal pairs."""
    if not len(one):
        return one
    (low, width), (least, many) = _spans(one, other)
    if width * many > SAFE:
        one, other = (np.unique(each, return_inverse=True)[1] for each in (one, other))
        (low, width), (least, many) = _spans(one, other)
    return (one.astype(np.int64) - low) * many + (other.astype(np.int64) - least)


def _spans(*sides: Places) -> list[tuple[int, int]]:
    ends = [(int(side.min()), int(side.max())) for side in sides]
    return [(low, high - low + 1) for low, high in ends]


def must_be_comparable(values: Any) -> None:
    """Unknown where equal values have different bytes: zeros with a sign, and NaN."""
    if types.is_nested(values.type):
        raise Unknown("nested keys")
    if not types.is_floating(values.type):
        return
    doubtful = pc.or_kleene(pc.equal(values, 0), pc.is_nan(values))
    if pc.any(doubtful).as_py():
        raise Unknown("a zero or NaN among keys")
