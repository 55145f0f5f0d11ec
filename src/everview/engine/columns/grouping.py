"""Groups of equal rows on columns: sums by key, and which rows of two relations have equal keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.engine.columns.unknown import Unknown
from everview.plan.types import WEIGHT

Places: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SAFE = 2**62
PAIRS = 1_000_000
"""A join of more pairs is left to the database."""


def sums(rows: pa.RecordBatch, keys: Sequence[str], added: Sequence[str]) -> pa.Table:
    """The sums of some columns for each value of the keys, in the order of the columns given.

    Decimals have room for every sum. A sum over no values is null.
    """
    for key in keys:
        must_be_comparable(rows.column(key))
    for name in added:
        _must_not_wrap(rows.column(name))
    table = pa.Table.from_batches([rows])
    asked = [(name, "sum") for name in added]
    found = table.group_by(list(keys), use_threads=False).aggregate(asked)
    return found.select([*keys, *(f"{name}_sum" for name in added)])


def _must_not_wrap(values: pa.Array) -> None:
    """Unknown where a sum of integers may need more than 64 bits."""
    if len(values) and values.type == pa.int64():
        found, most = values.to_numpy(zero_copy_only=False), _SAFE // len(values)
        if not (found.min() >= -most and found.max() <= most):
            raise Unknown("a sum beyond 64 bits")


def must_be_comparable(values: Any) -> None:
    """Unknown where equal values have different bytes: zeros with a sign, and NaN."""
    if types.is_nested(values.type):
        raise Unknown("nested keys")
    if not types.is_floating(values.type):
        return
    doubtful = pc.or_kleene(pc.equal(values, 0), pc.is_nan(values))
    if pc.any(doubtful).as_py():
        raise Unknown("a zero or NaN among keys")


def pairs(
    left: Sequence[pa.Array], right: Sequence[pa.Array], *, nulls: bool
) -> tuple[Places, Places]:
    """The places of the rows with equal keys, side by side; without keys, all pairs."""
    ours, theirs, size = _codes(left, right, nulls=nulls)
    there = theirs[theirs >= 0]
    each = np.bincount(there, minlength=size)
    # A negative number, for a missing key, is looked up at the end, where nothing is.
    each, first = np.append(each, 0), np.append(np.cumsum(each) - each, 0)
    counts = each[ours]
    found = int(counts.sum())
    if found > PAIRS:
        raise Unknown("too many pairs")
    order = _by_code(theirs, first, len(there), once=each.max() <= 1)
    starts = np.repeat(first[ours] - (np.cumsum(counts) - counts), counts)
    return np.repeat(np.arange(len(ours)), counts), order[starts + np.arange(found)]


def _by_code(codes: Places, first: Places, count: int, *, once: bool) -> Places:
    """The places of the `count` codes that are not negative, equal ones together, in order."""
    if not once or count < len(codes):
        return np.argsort(codes, kind="stable")[len(codes) - count :]
    order: Places = np.empty(count, np.int64)
    order[first[codes]] = np.arange(count)
    return order


def taken(values: pa.Array, places: Places) -> pa.Array:
    """The values at some places."""
    if types.is_integer(values.type) and not values.null_count:
        return pa.array(values.to_numpy()[places])
    return values.take(pa.array(places))


def every_pair(left: int, right: int) -> tuple[Places, Places]:
    """All pairs of so many rows with so many others."""
    if left * right > PAIRS:
        raise Unknown("too many pairs")
    return np.repeat(np.arange(left), right), np.tile(np.arange(right), left)


def occurs(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> pa.Array:
    """Which rows on the left have keys that occur on the right, null being one like any other."""
    ours, theirs, size = _codes(left, right, nulls=True)
    there = np.zeros(size, bool)
    there[theirs] = True
    return pa.array(there[ours])


def numbers_in_order(
    rows: pa.RecordBatch, keys: Sequence[str], order: Sequence[tuple[str, str]]
) -> Places:
    """The place of each row among those with its keys, counted from one."""
    ordered = pa.Table.from_batches([rows]).select([name for name, _ in order])
    for column in ordered.columns:
        must_be_comparable(column)
        if column.null_count:
            raise Unknown("nulls in an order")
    group = np.zeros(rows.num_rows, np.int64)
    if keys:
        values = [rows.column(key) for key in keys]
        group, *_ = _codes(values, [value.slice(0, 0) for value in values], nulls=True)
    ordered = ordered.append_column(WEIGHT, pa.array(group))
    places = pc.sort_indices(ordered, sort_keys=[(WEIGHT, "ascending"), *order]).to_numpy()
    group = group[places]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(first, append=len(group))
    numbers = np.empty(len(group), np.int64)
    numbers[places] = np.arange(len(group)) - np.repeat(first, lengths) + 1
    return numbers


def _codes(
    left: Sequence[pa.Array], right: Sequence[pa.Array], *, nulls: bool
) -> tuple[Places, Places, int]:
    """A number for each row, equal where all keys are, and how many there may be.

    It is negative where a key is missing.
    """
    codes, size = _numbered(left[0], right[0], nulls=nulls)
    for one, other in zip(left[1:], right[1:], strict=True):
        more, many = _numbered(one, other, nulls=nulls)
        missing = (codes < 0) | (more < 0)
        both = codes.astype(np.int64) * many + more
        codes, size = _dense(pa.array(both, mask=missing if missing.any() else None))
    count = len(left[0])
    return codes[:count], codes[count:], size


def _numbered(left: pa.Array, right: pa.Array, *, nulls: bool) -> tuple[Places, int]:
    if left.type != right.type:
        raise Unknown("keys of different types")
    must_be_comparable(left)
    must_be_comparable(right)
    return _dense(pa.concat_arrays([left, right]), "encode" if nulls else "mask")


def _dense(values: pa.Array, nulls: str = "mask") -> tuple[Places, int]:
    """Numbers from zero on, equal where values are, and their count; of a masked null minus one."""
    encoded = values.dictionary_encode(null_encoding=nulls)
    codes = encoded.indices
    if codes.null_count:
        codes = pc.fill_null(codes, -1)
    found: Places = codes.to_numpy(zero_copy_only=False)
    return found, len(encoded.dictionary)
