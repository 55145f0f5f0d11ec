"""Equal keys on columns: groups of rows and their sums, and which rows of two relations meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.vector import decimals
from everview.runtime.vector.errors import Unknown
from everview.runtime.vector.int_encoding import (
    Places,
    as_types,
    bound,
    coded,
    codes,
    of_numbers,
    ranked,
    spread,
    units,
)
from everview.store.sort_order import INT64_SAFE, combine_keys, is_integer_like

PAIRS = 1_000_000
"""A join of more pairs is left to the database."""
MANY = 1_000
"""To look for so many numbers as they come costs more than to put them in order."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows in an order that keeps groups together, and where in it each group begins.

    Without an order each row is a group.
    """

    order: Places | None
    begins: Places

    def keys(self, rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some columns, of one row of each group."""
        found = rows.select(names)
        if self.order is not None and names:
            found = found.take(of_numbers(self.order[self.begins]))
        return dict(zip(names, found.columns, strict=True))

    def first(self, values: Places) -> Places:
        """Of a value for each row, that of one row of each group."""
        return values if self.order is None else values[self.order[self.begins]]

    def extreme(self, ranks: Places) -> Places:
        """For each group the place of a row with the highest rank."""
        if self.order is None:
            return self.begins
        ordered, count = ranks[self.order], len(ranks)
        highest = np.maximum.reduceat(ordered, self.begins)
        sizes = np.diff(self.begins, append=count)
        there = np.where(ordered == highest.repeat(sizes), np.arange(count), count)
        places: Places = self.order[np.minimum.reduceat(there, self.begins)]
        return places

    def totals(
        self,
        columns: Sequence[pa.Array | Places],
        targets: Sequence[pa.DataType],
        weights: Places | None = None,
    ) -> list[pa.Array]:
        """The sums of columns for each group, each value as often as its weight says.

        A sum over no values is zero, and one that does not fit raises. Unknown where a sum of
        integers may need more than 64 bits.
        """
        found = units(columns)
        if found is not None and self._fit(found, weights):
            weighted = found if weights is None else found * weights
            return as_types(self._added(weighted), targets)
        if len(columns) > 1:
            alone = zip(columns, targets, strict=True)
            return [self.totals([each], [type_], weights)[0] for each, type_ in alone]
        (values,), (type_,) = columns, targets
        if isinstance(values, np.ndarray) or (weights is None and types.is_integer(values.type)):
            raise Unknown("a sum beyond 64 bits")
        if weights is not None:
            values = decimals.times(values, pa.array(weights))
        return [self._widely(values, type_)]

    def _fit(self, found: Places, weights: Places | None) -> bool:
        """Whether no sum of whole numbers, each as often as its weight says, needs more bits.

        Where not even the greatest as many times as there are rows would, nothing is added up.
        """
        most = 1 if weights is None else max(1, bound(weights))
        if bound(found) * int(found.shape[1]) * most <= INT64_SAFE:
            return True
        sizes = np.abs(found.astype(np.float64) * (1 if weights is None else weights))
        return bool(self._added(sizes).max() <= INT64_SAFE)

    def _added(self, rows: Places) -> Places:
        """The sum of whole numbers for each group."""
        if self.order is None:
            return rows
        if not rows.shape[1]:
            return np.zeros((len(rows), len(self.begins)), np.int64)
        summed: Places = np.add.reduceat(rows[:, self.order], self.begins, axis=1)
        return summed

    def _widely(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """Decimals have room for every sum."""
        if types.is_decimal128(values.type):
            values = values.cast(pa.decimal256(values.type.precision, values.type.scale))
        count = len(values)
        order = np.arange(count) if self.order is None else self.order
        begins = np.arange(count) if self.order is None else self.begins
        group = np.repeat(np.arange(len(begins)), np.diff(begins, append=count))
        table = pa.table({"group": group, "value": values.take(pa.array(order))})
        found = table.group_by("group", use_threads=False).aggregate([("value", "sum")])
        summed = found.column("value_sum").combine_chunks()
        zero = pa.scalar(0, pa.int64()).cast(summed.type)
        return pc.fill_null(summed, zero).cast(type_)


def grouping(rows: pa.RecordBatch, keys: Sequence[str], apart: Places | None = None) -> Grouping:
    """The groups of rows with equal keys, without keys one.

    Rows that a number for each keeps `apart` are in different groups.
    """
    count = rows.num_rows
    if not keys:
        return Grouping(np.arange(count), np.zeros(1, np.int64))
    if count < 2:
        return Grouping(None, np.arange(count))
    found = apart
    for column in sorted(map(rows.column, keys), key=_costs):
        more = coded([column])
        found = more if found is None else combine_keys(found, more)
        order = found.argsort()
        ordered = found[order]
        begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        if len(begins) == count - 1:
            return Grouping(None, np.arange(count))
    return Grouping(order, np.concatenate(([0], begins)))


def _costs(column: pa.Array) -> bool:
    """Whether it costs much to tell which values are equal; often it is known before."""
    return column.null_count > 0 or not (
        is_integer_like(column.type) or types.is_decimal(column.type)
    )


def pairs(
    left: Sequence[pa.Array], right: Sequence[pa.Array], *, nulls: bool
) -> tuple[Places, Places]:
    """The places of the rows with equal keys, side by side."""
    if not nulls and any(key.null_count for key in (*left, *right)):
        return _pairs_without_nulls(left, right)
    ours, theirs = _sides(left, right)
    order = theirs.argsort()
    ordered = theirs[order]
    first = _searched(ordered, ours, "left")
    sizes = _searched(ordered, ours, "right") - first
    if int(sizes.sum()) > PAIRS:
        raise Unknown("too many pairs")
    return np.arange(len(ours)).repeat(sizes), order[spread(first, sizes)]


def _pairs_without_nulls(
    left: Sequence[pa.Array], right: Sequence[pa.Array]
) -> tuple[Places, Places]:
    """A null is equal to nothing."""
    there = [_present(side) for side in (left, right)]
    kept = [
        [key.take(pa.array(places)) for key in side]
        for side, places in zip((left, right), there, strict=True)
    ]
    at, to = pairs(kept[0], kept[1], nulls=False)
    return there[0][at], there[1][to]


def _present(keys: Sequence[pa.Array]) -> Places:
    """The places of rows without a null among the keys."""
    valid = [key.is_valid().to_numpy(zero_copy_only=False) for key in keys]
    return np.flatnonzero(np.logical_and.reduce(valid))


def every_pair(left: int, right: int) -> tuple[Places, Places]:
    """All pairs of so many rows with so many others."""
    if left * right > PAIRS:
        raise Unknown("too many pairs")
    return np.repeat(np.arange(left), right), np.tile(np.arange(right), left)


def occurs(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Places:
    """Which rows on the left have keys that occur on the right, null being one like any other.

    There are some on the right.
    """
    ours, theirs = _sides(left, right)
    ordered = np.sort(theirs)
    found: Places = ordered[_searched(ordered, ours, "left") % len(ordered)] == ours
    return found


def _searched(ordered: Places, wanted: Places, side: Literal["left", "right"]) -> Places:
    """Where in numbers in order others would be; many of these are put in order first."""
    if len(wanted) < MANY:
        return ordered.searchsorted(wanted, side)
    order = wanted.argsort()
    found = np.empty(len(wanted), np.int64)
    found[order] = ordered.searchsorted(wanted[order], side)
    return found


def _sides(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[Places, Places]:
    """A number for each row of two relations, equal where all keys are."""
    found, count = codes(list(zip(left, right, strict=True))), len(left[0])
    return found[:count], found[count:]


def numbers_in_order(
    rows: pa.RecordBatch, keys: Sequence[str], order: Sequence[tuple[str, bool]]
) -> Places:
    """The place of each row among those with its keys, counted from one.

    Columns that come after what puts all rows in order do not matter.
    """
    count = rows.num_rows
    group = codes([[rows.column(key)] for key in keys]) if keys else np.zeros(count, np.int64)
    parts = [group]
    for name, descending in order:
        values = ranked(rows.column(name))
        parts.append(~values if descending else values)
        places = np.lexsort(parts[::-1])
        if _all_differ([part[places] for part in parts]):
            break
    group = group[places]
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[:count])
    lengths = np.diff(first, append=count)
    numbers = np.empty(count, np.int64)
    numbers[places] = np.arange(count) - np.repeat(first, lengths) + 1
    return numbers


def _all_differ(parts: Sequence[Places]) -> bool:
    """Whether neighbours differ in one part at least."""
    return bool(np.logical_or.reduce([part[1:] != part[:-1] for part in parts]).all())
