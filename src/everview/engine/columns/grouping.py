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
    ours, theirs = _codes(left, right, nulls=nulls)
    order = np.argsort(theirs, kind="stable")
    placed = theirs[order]
    first = np.searchsorted(placed, ours, "left")
    counts = np.searchsorted(placed, ours, "right") - first
    if not nulls:
        counts[ours < 0] = 0
    found = int(counts.sum())
    if found > PAIRS:
        raise Unknown("too many pairs")
    starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return np.repeat(np.arange(len(ours)), counts), order[starts + np.arange(found)]


def every_pair(left: int, right: int) -> tuple[Places, Places]:
    """All pairs of so many rows with so many others."""
    if left * right > PAIRS:
        raise Unknown("too many pairs")
    return np.repeat(np.arange(left), right), np.tile(np.arange(right), left)


def occurs(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> pa.Array:
    """Which rows on the left have keys that occur on the right, null being one like any other."""
    ours, theirs = _codes(left, right, nulls=True)
    return pa.array(np.isin(ours, theirs))


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
        group, _ = _codes(values, [value.slice(0, 0) for value in values], nulls=True)
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
) -> tuple[Places, Places]:
    """A number for each row, equal where all keys are; negative where a key is missing."""
    ours, theirs = _numbered(left[0], right[0], nulls=nulls)
    for one, other in zip(left[1:], right[1:], strict=True):
        more, others = _numbered(one, other, nulls=nulls)
        _, dense = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
        missing = np.concatenate(((ours < 0) | (more < 0), (theirs < 0) | (others < 0)))
        both = dense * (1 + max(more.max(initial=0), others.max(initial=0)))
        both = both + np.concatenate((more, others))
        if not nulls:
            both[missing] = -1
        ours, theirs = both[: len(ours)], both[len(ours) :]
    return ours, theirs


def _numbered(left: pa.Array, right: pa.Array, *, nulls: bool) -> tuple[Places, Places]:
    if left.type != right.type:
        raise Unknown("keys of different types")
    must_be_comparable(left)
    must_be_comparable(right)
    encoding = "encode" if nulls else "mask"
    every = pa.concat_arrays([left, right])
    codes = every.dictionary_encode(null_encoding=encoding).indices
    numbers = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers[: len(left)], numbers[len(left) :]
