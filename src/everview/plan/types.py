"""Column types: Spark's, written the way Spark's `simpleString` writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Type: TypeAlias = str

WEIGHT = "_w"
"""The column that carries the weight of a row wherever a Z-set is written as a table."""
EPOCH = "_epoch"
"""The column that carries the epoch of a row in a change feed."""


def unusable_name(name: str) -> str | None:
    """Why a name cannot be given to a column, a table or a view; None when it can.

    >>> unusable_name("total"), unusable_name("_W")
    (None, '_W is a name that Everview uses itself')
    """
    if name.lower() in (WEIGHT, EPOCH):
        return f"{name} is a name that Everview uses itself"
    if not name.strip() or any(mark in name for mark in '`"\n\r\0/'):
        return f"{name!r} is empty or has a quote, a slash or a line break in it"
    return None


@dataclass(frozen=True, slots=True)
class Column:
    """A named column of a relation."""

    name: str
    type: Type


Schema: TypeAlias = tuple[Column, ...]

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


def decimal_parts(type_: Type) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, else None.

    >>> decimal_parts("decimal(12,2)")
    (12, 2)
    """
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_exact(type_: Type) -> bool:
    """Whether sums of this type do not depend on the order of addition."""
    return type_ in INTEGERS or decimal_parts(type_) is not None


def names(schema: Schema) -> tuple[str, ...]:
    """The column names of a schema, in order."""
    return tuple(column.name for column in schema)


def type_in(schema: Schema, name: str) -> Type:
    """The type of the column called `name`."""
    return next(column.type for column in schema if column.name == name)


_STORABLE = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "text": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "decimal": "decimal(10,0)",
    "numeric": "decimal(10,0)",
}


def storable_type(declared: str) -> Type | None:
    """The canonical name of a declared type, None when columns of it cannot be stored.

    >>> storable_type("DECIMAL(12, 2)"), storable_type("VARCHAR(20)"), storable_type("INTERVAL DAY")
    ('decimal(12,2)', 'string', None)
    """
    text = re.sub(r"\s+", "", declared.lower())
    if text in _STORABLE:
        return _STORABLE[text]
    if re.fullmatch(r"(varchar|char)\(\d+\)", text):
        return "string"
    precision = re.fullmatch(r"(?:decimal|numeric|dec)\((\d+)(?:,(\d+))?\)", text)
    if precision and 1 <= int(precision[1]) <= 38 and int(precision[2] or 0) <= int(precision[1]):
        return f"decimal({int(precision[1])},{int(precision[2] or 0)})"
    return None
