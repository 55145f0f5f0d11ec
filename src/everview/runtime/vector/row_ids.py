"""Numbers rows by SQL identity: NULL equals NULL, NaN equals NaN, and 0.0 equals -0.0."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.runtime.vector.int_encoding import Ints, is_int_column


class RowIds:
    """Ids of rows: the same for equal rows, counted up in the order in which they first come."""

    def __init__(self) -> None:
        self._ids: defaultdict[Any, int] = defaultdict(count().__next__)

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, columns: Sequence[pa.Array], rows: int) -> Ints:
        """The id of each row."""
        ids = map(self._ids.__getitem__, identities(columns, rows))
        return np.fromiter(ids, np.int64, rows)


def identities(columns: Sequence[pa.Array], rows: int) -> Iterable[Any]:
    """A hashable value per row, equal where SQL takes two rows for one."""
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
        return [_hashable(value) for value in column.to_pylist()]
    return list(column.to_numpy().tolist() if is_int_column(column) else column.to_pylist())


def _bits(column: pa.Array) -> pa.Array:
    """Floats as integers: one bit pattern for every NaN, and one for both zeros."""
    values = column.to_numpy(zero_copy_only=False)
    nan = values.dtype.type(np.nan)
    bits = np.where(np.isnan(values), nan, values + values.dtype.type(0))
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(bits.view(f"i{values.itemsize}"), mask=missing)


def _hashable(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == value else "NaN"
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return value
    return tuple(map(_hashable, value))
