"""Column types as Arrow types."""

from __future__ import annotations

import pyarrow as pa

from everview.plan.types import WEIGHT, Schema, Type, decimal_parts

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
    """
    parts = decimal_parts(type_)
    return pa.decimal128(*parts) if parts else _PLAIN.get(type_)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a relation, its weight last."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in schema]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64())])


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with exactly the columns and types of `schema` and the weight."""
    wanted = arrow_schema(schema)
    picked = table.select(wanted.names)
    return picked if picked.schema == wanted else picked.cast(wanted)
