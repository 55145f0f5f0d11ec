"""Column types as Arrow types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import UserError
from everview.expr.types import (
    WEIGHT,
    Schema,
    Type,
    decimal_parts,
    element_of,
    entry_of,
    fields_of,
    parts_of,
)

_PLAIN: dict[Type, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(type_: Type) -> pa.DataType | None:
    """The Arrow type of a column type, None where we store none of it.

    >>> arrow_type("decimal(12,2)")
    Decimal128Type(decimal128(12, 2))
    >>> arrow_type("array<struct<a:int>>")
    ListType(list<item: struct<a: int32>>)
    """
    parts = decimal_parts(type_)
    if parts:
        return pa.decimal128(*parts)
    outer, inner = parts_of(type_)
    match outer:
        case "array":
            return pa.list_(arrow_type(inner[0]))
        case "map":
            return pa.map_(*map(arrow_type, inner))
        case "struct":
            return pa.struct([pa.field(name, arrow_type(each)) for name, each in fields_of(type_)])
        case _:
            return _PLAIN.get(type_)


def with_one_zero(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column in which 0.0 stands for -0.0: one value, which Arrow takes for two."""
    is_float = pa.types.is_floating(column.type)
    return pc.add(column, pa.scalar(0, column.type)) if is_float else column


def keys_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Some columns of rows, equal for Arrow where SQL takes them for equal."""
    return pa.table({name: with_one_zero(rows.column(name)) for name in key})


@lru_cache(maxsize=4096)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a relation, its weight last."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in schema]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64())])


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with exactly the columns and types of `schema` and the weight."""
    wanted = arrow_schema(schema)
    if table.schema.equals(wanted):
        return table
    picked = table.select(wanted.names)
    return picked if picked.schema.equals(wanted) else picked.cast(wanted)


def must_have_sound_maps(rows: pa.Table, schema: Schema, table: str) -> None:
    """Refuse a map with a key twice or none; the order of its entries is kept as it is."""
    for column in schema:
        if "map<" not in column.type:
            continue
        problem = next(
            (
                found
                for cell in rows.column(column.name).to_pylist()
                if (found := _fault(cell, column.type))
            ),
            None,
        )
        if problem:
            raise UserError(
                "T001",
                f"{table}: a map in {column.name} has {problem}",
                remedy="give every key of a map once, and none that is null",
            )


def _fault(value: Any, type_: Type) -> str | None:
    """What is wrong with the maps in a value, None when nothing is."""
    if value is None or "map<" not in type_:
        return None
    if entry := entry_of(type_):
        keys = [_place(key) for key, _ in value]
        if None in keys:
            return "a null key"
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            return f"the key {twice!r} twice"
        parts = [(each, entry[1]) for _, each in value]
    elif element := element_of(type_):
        parts = [(each, element) for each in value]
    else:
        parts = [(value[name], inner) for name, inner in fields_of(type_)]
    return next((found for part in parts if (found := _fault(*part))), None)


def _place(key: Any) -> Any:
    """A key as one that equals itself, and all that Spark takes for the same."""
    return "NaN" if isinstance(key, float) and isnan(key) else key
