"""DuckDB's name for each of Spark's types."""

from __future__ import annotations

from collections.abc import Iterator

from everview.plan.types import Type, decimal_parts

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
    outer, _, rest = type_.partition("<")
    inner = list(_split(rest.removesuffix(">")))
    match outer:
        case "array":
            return f"{spark_type_to_duckdb(inner[0])}[]"
        case "map":
            key, value = map(spark_type_to_duckdb, inner)
            return f"MAP({key}, {value})"
        case "struct":
            return f"STRUCT({', '.join(map(_field, inner))})"
        case _:
            raise ValueError(f"DuckDB has no type for Spark's {type_}")


def _field(text: str) -> str:
    name, _, type_ = text.partition(":")
    return f'"{name.replace(chr(34), chr(34) * 2)}" {spark_type_to_duckdb(type_)}'


def _split(text: str) -> Iterator[str]:
    """The parts between commas that are in no bracket."""
    depth, part = 0, ""
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            yield part
            part = ""
        else:
            part += char
    yield part
