"""Column types as Arrow types."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import Any

import pyarrow as pa

from everview.errors import UserError
from everview.plan.types import (
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


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a relation, its weight last."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in schema]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64())])


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with exactly the columns and types of `schema` and the weight."""
    wanted = arrow_schema(schema)
    picked = table.select(wanted.names)
    return picked if picked.schema == wanted else picked.cast(wanted)


def with_sorted_maps(rows: pa.Table, schema: Schema, table: str) -> pa.Table:
    """The rows with every map in the order of its keys, so that equal maps are equal values."""
    for column in schema:
        if "map<" in column.type:
            cells = rows.column(column.name).to_pylist()
            try:
                found = [_sorted(cell, column.type) for cell in cells]
            except ValueError as problem:
                raise UserError(
                    "T001",
                    f"{table}: a map in {column.name} has {problem}",
                    remedy="give every key of a map once, and none that is null",
                ) from None
            array = pa.array(found, arrow_type(column.type))
            rows = rows.set_column(rows.column_names.index(column.name), column.name, array)
    return rows


def _sorted(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if entry := entry_of(type_):
        pairs = [(key, _sorted(each, entry[1])) for key, each in value]
        if any(key is None for key, _ in pairs):
            raise ValueError("a null key")
        ordered = sorted(pairs, key=lambda pair: _place(pair[0]))
        for (key, _), (after, _) in pairwise(ordered):
            if _place(key) == _place(after):
                raise ValueError(f"the key {key!r} twice")
        return ordered
    if element := element_of(type_):
        return [_sorted(each, element) for each in value]
    if fields := fields_of(type_):
        return {name: _sorted(value[name], inner) for name, inner in fields}
    return value


def _place(key: Any) -> Any:
    """What a key is ordered by: NaN last, and text by its bytes, as Spark does."""
    if isinstance(key, float):
        return isnan(key), 0.0 if isnan(key) else key
    return key.encode() if isinstance(key, str) else key
