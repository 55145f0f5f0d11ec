"""Which rows of a table with a primary key keep its rules, as their neighbours by key tell.

Rows with one key that come and go by turns, each going as it came, leave one row or none: no key
is there twice, and nothing goes that was not there. What is not settled so is left to the checks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.expr.types import WEIGHT
from everview.runtime.parallel import MANY, side_by_side
from everview.runtime.vector.errors import Unknown
from everview.runtime.vector.int_encoding import Places, codes
from everview.store.sort_order import ascends, combine_keys


def unsettled(stored: pa.Table, change: pa.Table, key: Sequence[str]) -> tuple[Places, Places]:
    """The places of stored and of changed rows that have to be looked at again.

    Stored rows are in the order in which they came and went; of a change, what goes goes first.
    """
    if stored.column_names != change.column_names:
        stored = stored.select(change.column_names)
    if _only_goes(stored, change, key):
        return np.arange(0), np.arange(0)
    rows = pa.concat_tables([stored, change])
    try:
        numbers = codes([rows[name].combine_chunks()] for name in key)
    except Unknown:
        return np.arange(len(stored)), np.arange(len(change))
    weights = rows[WEIGHT].to_numpy()
    comes = np.zeros(len(rows), np.int8)
    comes[len(stored) :] = weights[len(stored) :] > 0
    order = np.argsort(combine_keys(numbers, comes), kind="stable")
    found = order[_in_doubt(rows, order, numbers[order], weights[order])]
    return found[found < len(stored)], found[found >= len(stored)] - len(stored)


def all_differ(rows: pa.Table, key: Sequence[str]) -> bool:
    """Whether no two of some rows, which are in the order of a key, are equal.

    Doubt, as about fractions and about three rows with one key, is answered with no.
    """
    if not key or any(_doubtful(rows[name]) for name in key):
        return False
    same = np.ones(max(len(rows) - 1, 0), bool)
    for name in key:
        column = rows[name].combine_chunks()
        same &= _same(column[:-1], column[1:])
    places = np.flatnonzero(same)
    if not len(places):
        return True
    if (places[1:] - places[:-1] == 1).any() or any(map(_doubtful, rows.columns)):
        return False
    return not _equal(rows, places, places + 1).any()


def _doubtful(column: pa.ChunkedArray | pa.Field) -> bool:
    """Whether values that are not written the same may still be the same."""
    return bool(types.is_nested(column.type) or types.is_floating(column.type))


def _only_goes(stored: pa.Table, change: pa.Table, key: Sequence[str]) -> bool:
    """Whether what goes is what is stored, row by row, and no key comes twice."""
    weights = change[WEIGHT].to_numpy()
    goes = weights < 0
    if len(stored) != np.count_nonzero(goes) or any(map(_doubtful, change.schema)):
        return False
    if (abs(weights) != 1).any() or (stored[WEIGHT].to_numpy() != 1).any():
        return False
    if not ascends(_where(~goes, change.select(key)), key):
        return False
    gone = _where(goes, change.drop_columns([WEIGHT]))
    return bool(gone.equals(stored.drop_columns([WEIGHT])))


def _where(wanted: Places, rows: pa.Table) -> pa.Table:
    """Some of the rows; nothing is copied if they lie together."""
    first, count = int(wanted.argmax()) if len(wanted) else 0, np.count_nonzero(wanted)
    together = bool(wanted[first : first + count].all())
    return rows.slice(first, count) if together else rows.filter(pa.array(wanted))


def _in_doubt(rows: pa.Table, order: Places, numbers: Places, weights: Places) -> Places:
    """Of rows in an order that keeps groups together, those of groups that are not settled."""
    places = np.arange(len(order))
    first = np.append(True, numbers[1:] != numbers[:-1])[: len(order)]
    turn = places - np.maximum.accumulate(np.where(first, places, 0))
    bad = weights != 1 - 2 * (turn % 2)
    goes = np.flatnonzero((turn % 2 == 1) & ~bad)
    bad[goes] = ~_equal(rows, order[goes - 1], order[goes])
    groups = np.cumsum(first) - 1
    doubted: Places = np.isin(groups, np.unique(groups[bad])) if bad.any() else bad
    return doubted


def _equal(rows: pa.Table, left: Places, right: Places) -> Places:
    """Whether the rows at some places are equal to those at others; doubt is answered with no."""
    at, to = pa.array(left), pa.array(right)

    def same(column: pa.ChunkedArray) -> Places:
        if types.is_nested(column.type):
            return np.zeros(len(left), bool)
        return _same(column.take(at), column.take(to))

    plain = rows.drop_columns([WEIGHT]).combine_chunks()
    columns = plain.columns
    if len(left) < MANY:
        if not any(map(_doubtful, columns)) and plain.take(at).equals(plain.take(to)):
            return np.ones(len(left), bool)
        found = [same(column) for column in columns]
    else:
        found = side_by_side(same, columns)
    whole: Places = np.logical_and.reduce(found)
    return whole


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Places:
    """Null is the same as null; fractions are the same if every bit is."""
    if types.is_floating(left.type):
        bits = pa.int32() if left.type == pa.float32() else pa.int64()
        left, right = (side.combine_chunks().view(bits) for side in (left, right))
    both = pc.equal(left, right)
    if both.null_count:
        both = pc.coalesce(both, pc.and_(pc.is_null(left), pc.is_null(right)))
    found: Places = both.to_numpy() if isinstance(both, pa.ChunkedArray) else both.to_numpy(False)
    return found
