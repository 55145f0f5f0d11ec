"""Column types: Spark's, written the way Spark's `simpleString` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.interning import Interned

Type: TypeAlias = str

WEIGHT = "_w"
"""The column that carries the weight of a row wherever a Z-set is written as a table."""
EPOCH = "_epoch"
"""The column that carries the epoch of a row in a change feed."""
BEGUN = "begun/"
"""The relation of a while-program that says that it has begun."""
ITERATION = "iteration/"
"""The column that carries the iteration of a fixpoint at which a row comes; no user's column."""


PLAIN_NAME = "choose a plain name, other than _w and _epoch"
"""What to do about a name that cannot be used."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Column(Interned):
    """A named column of a relation."""

    name: str
    type: Type


Schema: TypeAlias = tuple[Column, ...]

INTEGERS = ("tinyint", "smallint", "int", "bigint")
INT64_DIGITS = 18
"""Decimals of up to so many digits are integers of 64 bits, in units of their last digit."""
FLOATS = ("float", "double")

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


def decimal_parts(type_: Type) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, else None.

    >>> decimal_parts("decimal(12,2)")
    (12, 2)
    """
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def precision_and_scale(type_: Type) -> tuple[int, int]:
    """As `decimal_parts`, of a type that must be decimal."""
    parts = decimal_parts(type_)
    assert parts is not None, type_
    return parts


def parts_of(type_: Type) -> tuple[str, tuple[Type, ...]]:
    """What a nested type is and the types in it; a struct's have their names and a colon.

    >>> parts_of("map<string,array<int>>"), parts_of("int")
    (('map', ('string', 'array<int>')), ('int', ()))
    """
    outer, bracket, rest = type_.partition("<")
    return outer, tuple(_split(rest.removesuffix(">"))) if bracket and rest != ">" else ()


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


def fields_of(type_: Type) -> tuple[tuple[str, Type], ...]:
    """The fields of a struct: names and types."""
    pairs = (field.partition(":") for field in parts_of(type_)[1])
    return tuple((name, inner) for name, _, inner in pairs)


def element_of(type_: Type) -> Type | None:
    """The type of an array's elements, None when it is no array."""
    outer, inner = parts_of(type_)
    return inner[0] if outer == "array" else None


def entry_of(type_: Type) -> tuple[Type, Type] | None:
    """The types of a map's keys and values, None when it is no map."""
    outer, inner = parts_of(type_)
    return (inner[0], inner[1]) if outer == "map" else None


def is_nested(type_: Type) -> bool:
    """Whether values of the type hold other values."""
    return type_.startswith(("array<", "map<", "struct<"))


def struct_of(fields: Iterable[tuple[str, Type]]) -> Type:
    """The struct with these fields."""
    return f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields)}>"


def entries_of(key: Type, value: Type) -> Type:
    """The type of a map's entries, in order."""
    return f"array<{struct_of((('key', key), ('value', value)))}>"


def is_exact(type_: Type) -> bool:
    """Whether sums of this type do not depend on the order of addition."""
    return type_ in INTEGERS or decimal_parts(type_) is not None


def names(schema: Schema) -> tuple[str, ...]:
    """The column names of a schema, in order."""
    return tuple(column.name for column in schema)


def type_in(schema: Schema, name: str) -> Type:
    """The type of the column called `name`."""
    return next(column.type for column in schema if column.name == name)


def searchable(schema: Schema, by: Sequence[str]) -> tuple[str, ...]:
    """Those of some columns that rows are looked up by; never a float.

    Floats that are equal can differ in their bits (0.0 and -0.0), and files are searched by bits;
    nested values cannot be searched for at all.
    """
    types = {name: type_in(schema, name) for name in by}
    return tuple(n for n in by if types[n] not in FLOATS and not is_nested(types[n]))


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
    >>> storable_type("ARRAY<STRUCT<Id: INT, tags: MAP<STRING, DOUBLE>>>")
    'array<struct<Id:int,tags:map<string,double>>>'
    """
    text = re.sub(r"\s+", "", declared.lower())
    if text in _STORABLE:
        return _STORABLE[text]
    if re.fullmatch(r"(varchar|char)\(\d+\)", text):
        return "string"
    precision = re.fullmatch(r"(?:decimal|numeric|dec)\((\d+)(?:,(\d+))?\)", text)
    if precision and 1 <= int(precision[1]) <= 38 and int(precision[2] or 0) <= int(precision[1]):
        return f"decimal({int(precision[1])},{int(precision[2] or 0)})"
    return _storable_nested(declared)


_FIELD = re.compile(r"\s*`?([A-Za-z0-9_]+)`?\s*(?::|\s)\s*(.+)", re.DOTALL)


def _storable_nested(declared: str) -> Type | None:
    outer, inner = parts_of(declared.strip())
    match outer.strip().lower(), inner:
        case "array", (element,):
            found = storable_type(element)
            return f"array<{found}>" if found else None
        case "map", (key, value):
            keys, values = storable_type(key), storable_type(value)
            return f"map<{keys},{values}>" if keys and values and not is_nested(keys) else None
        case "struct", (_, *_):
            return _storable_struct(inner)
        case _:
            return None


def _storable_struct(fields: tuple[str, ...]) -> Type | None:
    """A struct whose fields have plain names, no two of them equal but for case."""
    found: dict[str, tuple[str, Type]] = {}
    for field in fields:
        match = _FIELD.fullmatch(field)
        type_ = storable_type(match[2]) if match else None
        if match is None or type_ is None or match[1].lower() in found:
            return None
        found[match[1].lower()] = (match[1], type_)
    return struct_of(found.values())
