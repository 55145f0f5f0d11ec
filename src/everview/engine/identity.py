"""Rows as values that can be compared: equal where SQL takes two rows for one."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types

Key: TypeAlias = tuple[Any, ...]


def identities(columns: list[pa.ChunkedArray], rows: int) -> list[Key]:
    """What tells each row from others: null equals null, NaN equals NaN, and 0.0 equals -0.0."""
    if not columns:
        return [()] * rows
    return list(zip(*map(_values, columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    type_ = column.type
    if types.is_string(type_) or types.is_large_string(type_):
        # A text may hold bytes that are not UTF-8.
        column = column.cast(pa.binary())
    elif types.is_date32(type_):
        column = column.cast(pa.int32())
    elif types.is_timestamp(type_):
        column = column.cast(pa.int64())
    elif types.is_floating(type_) or types.is_nested(type_):
        return [_comparable(value) for value in column.to_pylist()]
    if types.is_integer(column.type) and not column.null_count:
        return list(column.to_numpy().tolist())
    return list(column.to_pylist())


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == value else "NaN"
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return value
    return tuple(map(_comparable, value))
