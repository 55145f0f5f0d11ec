"""Proves primary-key and delete checks by sorting on the key.

If the weights of the rows of one key alternate +1, −1, and each −1 repeats the row before it, the
key has one row or none at the end, and no row is deleted that was not there. What is not proved so
is left to the checks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.expr.types import WEIGHT
from everview.runtime.parallel import PARALLEL_MIN_ROWS, map_parallel
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.int_encoding import Ints, key_codes
from everview.store.sort_order import ascends, combine_keys


def unproved(stored: pa.Table, change: pa.Table, key: Sequence[str]) -> tuple[Ints, Ints]:
    """The places of stored and of changed rows whose keys are not proved valid.

    Stored rows are in the order in which they came and went; of a change, deletes come first.
    """
    if stored.column_names != change.column_names:
        stored = stored.select(change.column_names)
    if _deletes_stored(stored, change, key):
        return np.arange(0), np.arange(0)
    rows = pa.concat_tables([stored, change])
    try:
        numbers = key_codes([rows[name].combine_chunks()] for name in key)
    except Unsupported:
        return np.arange(len(stored)), np.arange(len(change))
    weights = rows[WEIGHT].to_numpy()
    inserted = np.zeros(len(rows), np.int8)
    inserted[len(stored) :] = weights[len(stored) :] > 0
    order = np.argsort(combine_keys(numbers, inserted), kind="stable")
    left = order[_unproved_groups(rows, order, numbers[order], weights[order])]
    return left[left < len(stored)], left[left >= len(stored)] - len(stored)


def all_differ(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether no two rows are equal; they are sorted by the key.

    Where that is not proved, as of floating point or of three rows with one key, the answer is no.
    """
    if not key or any(_has_many_forms(rows[name]) for name in key):
        return False
    same = np.ones(max(len(rows) - 1, 0), bool)
    for name in key:
        column = rows[name].combine_chunks()
        same &= _same(column[:-1], column[1:])
    places = np.flatnonzero(same)
    if not len(places):
        return True
    if (places[1:] - places[:-1] == 1).any() or any(map(_has_many_forms, rows.columns)):
        return False
    return not _equal(rows, places, places + 1).any()


def _has_many_forms(column: pa.ChunkedArray | pa.Field) -> bool:
    """Whether one value has several forms in memory: floating point and nested types."""
    return bool(types.is_nested(column.type) or types.is_floating(column.type))


def _deletes_stored(stored: pa.Table, change: pa.Table, key: Sequence[str]) -> bool:
    """Whether the deletes are the stored rows, one by one, and no key is inserted twice."""
    weights = change[WEIGHT].to_numpy()
    deleted = weights < 0
    if len(stored) != np.count_nonzero(deleted) or any(map(_has_many_forms, change.schema)):
        return False
    if (abs(weights) != 1).any() or (stored[WEIGHT].to_numpy() != 1).any():
        return False
    if not ascends(_where(~deleted, change.select(key)), key):
        return False
    removed = _where(deleted, change.drop_columns([WEIGHT]))
    return bool(removed.equals(stored.drop_columns([WEIGHT])))


def _where(wanted: Ints, rows: pa.Table) -> pa.Table:
    """Some of the rows; nothing is copied if they lie together."""
    first, count = int(wanted.argmax()) if len(wanted) else 0, np.count_nonzero(wanted)
    together = bool(wanted[first : first + count].all())
    return rows.slice(first, count) if together else rows.filter(pa.array(wanted))


def _unproved_groups(rows: pa.Table, order: Ints, numbers: Ints, weights: Ints) -> Ints:
    """Of rows in an order that keeps groups together, those of groups that are not proved."""
    places = np.arange(len(order))
    first = np.append(True, numbers[1:] != numbers[:-1])[: len(order)]
    turn = places - np.maximum.accumulate(np.where(first, places, 0))
    bad = weights != 1 - 2 * (turn % 2)
    deletes = np.flatnonzero((turn % 2 == 1) & ~bad)
    bad[deletes] = ~_equal(rows, order[deletes - 1], order[deletes])
    groups = np.cumsum(first) - 1
    left: Ints = np.isin(groups, np.unique(groups[bad])) if bad.any() else bad
    return left


def _equal(rows: pa.Table, left: Ints, right: Ints) -> Ints:
    """Whether the rows at some places are equal to those at others; no where it is not known."""
    at, to = pa.array(left), pa.array(right)

    def same(column: pa.ChunkedArray) -> Ints:
        if types.is_nested(column.type):
            return np.zeros(len(left), bool)
        return _same(column.take(at), column.take(to))

    plain = rows.drop_columns([WEIGHT]).combine_chunks()
    columns = plain.columns
    if len(left) < PARALLEL_MIN_ROWS:
        if not any(map(_has_many_forms, columns)) and plain.take(at).equals(plain.take(to)):
            return np.ones(len(left), bool)
        found = [same(column) for column in columns]
    else:
        found = map_parallel(same, columns)
    whole: Ints = np.logical_and.reduce(found)
    return whole


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Ints:
    """Null is the same as null; floating-point values are the same if every bit is."""
    if types.is_floating(left.type):
        bits = pa.int32() if left.type == pa.float32() else pa.int64()
        left, right = (side.combine_chunks().view(bits) for side in (left, right))
    equal = pc.equal(left, right)
    if equal.null_count:
        equal = pc.coalesce(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    found: Ints = equal.to_numpy() if isinstance(equal, pa.ChunkedArray) else equal.to_numpy(False)
    return found
