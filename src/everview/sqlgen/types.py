"""DuckDB's name for each of Spark's types."""

from __future__ import annotations

from everview.expr.quoting import duckdb_name
from everview.expr.types import Type, decimal_parts, fields_of, parts_of

_NAMES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "binary": "BLOB",
    "void": '"NULL"',
}


def spark_type_to_duckdb(type_: Type) -> str:
    """The DuckDB type that holds the same values; ValueError where there is none.

    >>> spark_type_to_duckdb("array<struct<a:int,b:decimal(5,2)>>")
    'STRUCT("a" INTEGER, "b" DECIMAL(5,2))[]'
    """
    if type_ in _NAMES:
        return _NAMES[type_]
    if decimal_parts(type_):
        return type_.upper()
    outer, inner = parts_of(type_)
    match outer:
        case "array":
            return f"{spark_type_to_duckdb(inner[0])}[]"
        case "map":
            key, value = map(spark_type_to_duckdb, inner)
            return f"MAP({key}, {value})"
        case "struct":
            return f"STRUCT({', '.join(_field(*each) for each in fields_of(type_))})"
        case _:
            raise ValueError(f"DuckDB has no type for Spark's {type_}")


def _field(name: str, type_: Type) -> str:
    return f"{duckdb_name(name)} {spark_type_to_duckdb(type_)}"
