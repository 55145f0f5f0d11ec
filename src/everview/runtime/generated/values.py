"""Arrow columns as lists of Python values on which generated code is exact, and back.

A decimal is an integer, in units of its last digit; a date is its days and a timestamp its
microseconds since 1970. So equal values are equal in Python, and no sum or product is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from everview.expr.types import INTEGERS, WEIGHT, Column, Schema, Type, decimal_parts
from everview.runtime.arrow_types import arrow_schema, arrow_type

WEIGHT_COLUMN = Column(WEIGHT, "bigint")
"""The weight of each row, as a column."""
_BYTES = 16
"""The size of a decimal in Arrow."""
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_OTHERS = ("boolean", "string", "binary")


def is_exact(type_: Type) -> bool:
    """Whether equal values of a type are equal in Python, and no others are."""
    return type_ in INTEGERS or type_ in _MOMENTS or type_ in _OTHERS or bool(decimal_parts(type_))


def to_python(column: pa.Array) -> list[Any]:
    """The values of a column of an exact type."""
    type_ = column.type
    if types.is_decimal128(type_):
        return _units(column)
    if types.is_date32(type_):
        column = column.view(pa.int32())
    elif types.is_timestamp(type_):
        column = column.view(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def to_arrow(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """The inverse of `to_python`; the values fit the type."""
    if types.is_decimal128(type_):
        return _decimals(values, type_)
    if types.is_date32(type_):
        return pa.array(values, pa.int32()).view(type_)
    if types.is_timestamp(type_):
        return pa.array(values, pa.int64()).view(type_)
    return pa.array(values, type_)


def column_values(rows: pa.RecordBatch, column: Column) -> list[Any]:
    """The values of a column of a relation, in the type in which it is read."""
    found, wanted = rows.column(column.name), arrow_type(column.type)
    return to_python(found if found.type == wanted else found.cast(wanted))


def to_batch(values: Mapping[Column, Sequence[Any]], schema: Schema) -> pa.RecordBatch:
    """A relation of Python values as Arrow, the weight last."""
    columns = (*schema, WEIGHT_COLUMN)
    wanted = arrow_schema(schema)
    arrays = [to_arrow(values[each], wanted.field(at).type) for at, each in enumerate(columns)]
    return pa.record_batch(arrays, schema=wanted)


def range_of(type_: Type) -> tuple[int, int] | None:
    """The least and the greatest value of a numeric type as Python has it."""
    parts = decimal_parts(type_)
    if parts:
        return 1 - 10 ** parts[0], 10 ** parts[0] - 1
    if type_ not in INTEGERS:
        return None
    arrow = arrow_type(type_)
    assert arrow is not None, type_
    half = 1 << (arrow.bit_width - 1)
    return -half, half - 1


def _units(column: pa.Array) -> list[Any]:
    memory = memoryview(column.buffers()[1])
    first = _BYTES * column.offset
    places = range(first, first + _BYTES * len(column), _BYTES)
    found: list[Any] = [
        int.from_bytes(memory[at : at + _BYTES], "little", signed=True) for at in places
    ]
    if column.null_count:
        valid = column.is_valid().to_pylist()
        found = [value if there else None for value, there in zip(found, valid, strict=True)]
    return found


def _decimals(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if None in values:
        units = _decimals([value or 0 for value in values], type_)
        mask = pa.array([value is not None for value in values]).buffers()[1]
        return pa.Array.from_buffers(type_, len(values), [mask, units.buffers()[1]])
    memory = b"".join([value.to_bytes(_BYTES, "little", signed=True) for value in values])
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(memory)])
