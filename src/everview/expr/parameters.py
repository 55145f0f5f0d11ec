"""Parameters of Spark's functions: what each casts an argument to, or None where it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from everview.expr.coercion import is_numeric
from everview.expr.types import INTEGERS, Type, is_nested

MOMENTS = ("date", "timestamp", "timestamp_ntz")

Parameter: TypeAlias = Callable[[Type], Type | None]


def exactly(*types: Type) -> Parameter:
    """A parameter that takes these types as they are; NULL becomes the first."""
    return lambda type_: type_ if type_ in types else types[0] if type_ == "void" else None


def number(type_: Type) -> Type | None:
    """A parameter for any number, as it is; a string becomes a double."""
    return "double" if type_ in ("string", "void") else type_ if is_numeric(type_) else None


def a_double(type_: Type) -> Type | None:
    """A parameter for which everything numeric becomes a double."""
    return "double" if type_ in ("string", "void") or is_numeric(type_) else None


def a_float(type_: Type) -> Type | None:
    """A parameter for floats alone, as they are."""
    return type_ if type_ == "float" else None


def summand(type_: Type) -> Type | None:
    """A parameter for any number, as it is; a string becomes a double, and so does a timestamp."""
    return "double" if type_ == "timestamp" else number(type_)


def a_string(type_: Type) -> Type | None:
    """A parameter for which every atomic value but binary becomes a string."""
    known = type_ in ("string", "void", "boolean", *MOMENTS) or is_numeric(type_)
    return "string" if known else None


def an_int(type_: Type) -> Type | None:
    """A parameter for which integers become int."""
    return "int" if type_ in (*INTEGERS, "void") else None


def a_bigint(type_: Type) -> Type | None:
    """A parameter for which integers become bigint."""
    return "bigint" if type_ in (*INTEGERS, "void") else None


def a_binary(type_: Type) -> Type | None:
    """A parameter for which strings become binary."""
    return "binary" if type_ in ("string", "binary") else None


def digits(type_: Type) -> Type | None:
    """The parameter of hex: an integer becomes bigint, strings and bytes stay."""
    return type_ if type_ in ("string", "binary") else a_bigint(type_)


def seconds(type_: Type) -> Type | None:
    """The seconds of make_timestamp, with a fraction."""
    known = type_ in INTEGERS or type_.startswith("decimal")
    return "decimal(16,6)" if known else None


def a_small_int(type_: Type) -> Type | None:
    """A parameter for which the integers up to int become int."""
    return "int" if type_ in ("tinyint", "smallint", "int") else None


def a_date(type_: Type) -> Type | None:
    """A parameter for which moments and strings become dates."""
    return "date" if type_ in (*MOMENTS, "string", "void") else None


def a_timestamp(type_: Type) -> Type | None:
    """A parameter for which dates and strings become timestamps, but those without zone stay."""
    if type_ == "timestamp_ntz":
        return type_
    return "timestamp" if type_ in (*MOMENTS, "string", "void") else None


def a_zoned_timestamp(type_: Type) -> Type | None:
    """A parameter for which moments and strings become timestamps."""
    return "timestamp" if type_ in (*MOMENTS, "string", "void") else None


def an_integer(type_: Type) -> Type | None:
    """A parameter for any integer, as it is."""
    return type_ if type_ in INTEGERS else None


def anything(type_: Type) -> Type | None:
    """A parameter that takes everything as it is."""
    return type_


def nested(type_: Type) -> Type | None:
    """A parameter for arrays, maps and structs, as they are."""
    return type_ if is_nested(type_) else None


def shifted(type_: Type) -> Type | None:
    """The value of a shift: int or bigint."""
    return {"tinyint": "int", "smallint": "int", "int": "int", "bigint": "bigint"}.get(type_)
