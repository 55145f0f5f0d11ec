"""Groups rows by equal keys, by sorting int64 codes of the keys, and computes per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.vector import decimals
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.int_encoding import (
    Ints,
    column_codes,
    from_unscaled,
    int_column,
    max_abs,
    unscaled,
)
from everview.store.sort_order import INT64_SAFE, combine_keys, is_integer_like


@dataclass(frozen=True, slots=True)
class Grouping:
    """An order of the rows that keeps each group together, and where in it each group begins.

    Without an order each row is a group of its own.
    """

    order: Ints | None
    begins: Ints

    def key_columns(self, rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some columns, of one row per group."""
        columns = rows.select(names)
        if self.order is not None and names:
            columns = columns.take(int_column(self.order[self.begins]))
        return dict(zip(names, columns.columns, strict=True))

    def argmax(self, ranks: Ints) -> Ints:
        """Per group the position of a row with the highest rank."""
        if self.order is None:
            return self.begins
        ordered, count = ranks[self.order], len(ranks)
        highest = np.maximum.reduceat(ordered, self.begins)
        sizes = np.diff(self.begins, append=count)
        candidates = np.where(ordered == highest.repeat(sizes), np.arange(count), count)
        positions: Ints = self.order[np.minimum.reduceat(candidates, self.begins)]
        return positions

    def sums(
        self,
        columns: Sequence[pa.Array | Ints],
        targets: Sequence[pa.DataType],
        weights: Ints | None = None,
    ) -> list[pa.Array]:
        """The sums of columns per group, each value times the weight of its row.

        A sum over no values is zero, and one that does not fit its type raises. Unsupported where
        a sum of integers may need more than 64 bits.
        """
        units = unscaled(columns)
        if units is not None and self._fits_int64(units, weights):
            return from_unscaled(self._add(units if weights is None else units * weights), targets)
        if len(columns) > 1:
            alone = zip(columns, targets, strict=True)
            return [self.sums([each], [type_], weights)[0] for each, type_ in alone]
        (values,), (type_,) = columns, targets
        if isinstance(values, np.ndarray) or (weights is None and types.is_integer(values.type)):
            raise Unsupported("a sum beyond 64 bits")
        if weights is not None:
            values = decimals.times_weights(values, pa.array(weights))
        return [self._add_decimals(values, type_)]

    def _fits_int64(self, units: Ints, weights: Ints | None) -> bool:
        """Whether no partial sum of values times weights overflows 64 bits.

        The bound |value| · |weight| · rows mostly shows it; else the sums of the sizes as floats.
        """
        most = 1 if weights is None else max(1, max_abs(weights))
        if max_abs(units) * int(units.shape[1]) * most <= INT64_SAFE:
            return True
        sizes = np.abs(units.astype(np.float64) * (1 if weights is None else weights))
        return bool(self._add(sizes).max() <= INT64_SAFE)

    def _add(self, rows: Ints) -> Ints:
        """The sums per group of each row of a matrix."""
        if self.order is None:
            return rows
        if not rows.shape[1]:
            return np.zeros((len(rows), len(self.begins)), np.int64)
        added: Ints = np.add.reduceat(rows[:, self.order], self.begins, axis=1)
        return added

    def _add_decimals(self, values: pa.Array, type_: pa.DataType) -> pa.Array:
        """The sums per group in 256 bits, which hold every one of them."""
        if types.is_decimal128(values.type):
            values = values.cast(pa.decimal256(values.type.precision, values.type.scale))
        count = len(values)
        order = np.arange(count) if self.order is None else self.order
        begins = np.arange(count) if self.order is None else self.begins
        group = np.repeat(np.arange(len(begins)), np.diff(begins, append=count))
        table = pa.table({"group": group, "value": values.take(pa.array(order))})
        added = table.group_by("group", use_threads=False).aggregate([("value", "sum")])
        sums = added.column("value_sum").combine_chunks()
        zero = pa.scalar(0, pa.int64()).cast(sums.type)
        return pc.fill_null(sums, zero).cast(type_)


def group_rows(rows: pa.RecordBatch, keys: Sequence[str]) -> Grouping:
    """The groups of rows with equal keys, without keys one; null equals null."""
    count = rows.num_rows
    if not keys:
        return Grouping(np.arange(count), np.zeros(1, np.int64))
    if count < 2:
        return Grouping(None, np.arange(count))
    codes: Ints | None = None
    # Cheap columns first: if they already tell all rows apart, the others are not encoded.
    for column in sorted(map(rows.column, keys), key=_is_costly):
        more = column_codes([column])
        codes = more if codes is None else combine_keys(codes, more)
        order = codes.argsort()
        ordered = codes[order]
        begins = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        if len(begins) == count - 1:
            return Grouping(None, np.arange(count))
    return Grouping(order, np.concatenate(([0], begins)))


def _is_costly(column: pa.Array) -> bool:
    """Whether a column has to be dictionary-encoded to compare its values."""
    is_number = is_integer_like(column.type) or types.is_decimal(column.type)
    return column.null_count > 0 or not is_number
