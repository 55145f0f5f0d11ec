"""Rows as values that can be compared: equal where SQL takes two rows for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.runtime.vector.int_encoding import Ints, is_int_column


class Numbers:
    """Numbers for rows: the same for equal rows, counted in the order in which they first come."""

    def __init__(self) -> None:
        self._known: defaultdict[Any, int] = defaultdict(count().__next__)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        """The number of each row."""
        numbers = map(self._known.__getitem__, identities(columns, rows))
        return np.fromiter(numbers, np.int64, rows)


def identities(columns: Sequence[pa.Array], rows: int) -> Iterable[Any]:
    """What tells each row from others: null equals null, NaN equals NaN, and 0.0 equals -0.0."""
    if not columns:
        return [()] * rows
    if len(columns) == 1:
        return _values(columns[0])
    return zip(*map(_values, columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    if is_int_column(column):
        return list(column.to_numpy().tolist())
    type_ = column.type
    if types.is_string(type_) or types.is_large_string(type_):
        # A text may hold bytes that are not UTF-8.
        column = column.cast(pa.binary())
    elif types.is_date32(type_):
        column = column.cast(pa.int32())
    elif types.is_timestamp(type_):
        column = column.cast(pa.int64())
    elif types.is_floating(type_):
        column = _bits(column)
    elif types.is_nested(type_):
        return [_comparable(value) for value in column.to_pylist()]
    return list(column.to_numpy().tolist() if is_int_column(column) else column.to_pylist())


def _bits(column: pa.Array) -> pa.Array:
    """Fractions as whole numbers: every NaN the same one, and no zero with a sign."""
    values = column.to_numpy(zero_copy_only=False)
    nan = values.dtype.type(np.nan)
    bits = np.where(np.isnan(values), nan, values + values.dtype.type(0))
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(bits.view(f"i{values.itemsize}"), mask=missing)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == value else "NaN"
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return value
    return tuple(map(_comparable, value))
