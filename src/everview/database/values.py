"""Converts Python values to the type of a column, without loss."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from math import isfinite, isinf
from operator import index as whole_number
from typing import Any, NoReturn

from everview.expr.types import (
    FLOATS,
    INTEGERS,
    Type,
    decimal_parts,
    element_of,
    entry_of,
    fields_of,
    is_nested,
)

_DECIMAL_CONTEXT = Context(prec=80)
"""Digits enough for any decimal, shifted by any scale."""
_INTEGER_MAX_DIGITS = 20
"""No integer of more digits fits a column."""


def convert(value: Any, type_: Type) -> Any:
    """A Python value as one that Arrow takes for a type, without loss.

    Raises TypeError, ValueError, OverflowError or InvalidOperation where it is not of the type.
    """
    if value is None:
        return None
    parts = decimal_parts(type_)
    if parts:
        return _decimal(value, *parts)
    if type_ in INTEGERS:
        return _integer(value)
    if type_ in FLOATS:
        return _fraction(value, type_)
    if type_ == "date":
        return _date(value)
    if type_ in ("timestamp", "timestamp_ntz"):
        return _timestamp(value, type_)
    if is_nested(type_):
        return _nested(value, type_)
    expected = {"boolean": bool, "string": str, "binary": bytes}[type_]
    if not isinstance(value, expected):
        raise TypeError
    return value


def _nested(value: Any, type_: Type) -> Any:
    """A list or tuple as an array, a dict or pairs as a map, a dict or tuple as a struct."""
    if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
        raise TypeError
    if entry := entry_of(type_):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(convert(key, entry[0]), convert(each, entry[1])) for key, each in pairs]
    if fields := fields_of(type_) if type_.startswith("struct<") else ():
        given = _by_name(value, fields) if isinstance(value, Mapping) else list(value)
        if len(given) != len(fields):
            raise TypeError
        return {n: convert(each, t) for (n, t), each in zip(fields, given, strict=True)}
    if isinstance(value, Mapping):
        raise TypeError
    return [convert(each, element_of(type_) or "") for each in value]


def _by_name(value: Mapping[Any, Any], fields: tuple[tuple[str, Type], ...]) -> list[Any]:
    """The values of a struct's fields; those that are not named are null."""
    given = {str(name).lower(): each for name, each in value.items()}
    if set(given) - {name.lower() for name, _ in fields}:
        raise TypeError
    return [given.get(name.lower()) for name, _ in fields]


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool | float):
        raise TypeError
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError
    fitted = (
        exact.quantize(Decimal(1).scaleb(-scale), context=_DECIMAL_CONTEXT) if exact else Decimal(0)
    )
    if fitted != exact or len(fitted.as_tuple().digits) > precision:
        raise ValueError
    return fitted


def _integer(value: Any) -> int:
    """A whole number, whatever its type, as an int; a float is none, even where it is whole."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value.strip()) else _not_whole()
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() > _INTEGER_MAX_DIGITS:
        raise OverflowError  # writing out a large exponent would take all memory
    if isinstance(value, Decimal | Fraction):
        return int(value) if value == int(value) else _not_whole()
    if isinstance(value, bool):
        raise TypeError
    return int(whole_number(value))


def _fraction(value: Any, type_: Type) -> float:
    """The nearest float; a whole number that is not one, and what is too large, are refused."""
    if type(value) is float and type_ == "double":
        return value
    if isinstance(value, bool):
        raise TypeError
    nearest = float(value)
    if isinstance(value, int) and nearest != value:
        raise ValueError
    if type_ == "float" and isfinite(nearest) and abs(nearest) > _FLOAT_MAX:
        raise ValueError
    if isinf(nearest) and isinstance(value, Decimal) and value.is_finite():
        raise ValueError
    return nearest


def _not_whole() -> NoReturn:
    raise ValueError


_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLOAT_MAX = 3.4028235677973366e38
"""The least number that rounds to infinity as a float of 32 bits."""


def _date(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError
    return value


def _timestamp(value: Any, type_: str) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise TypeError
    if getattr(moment, "nanosecond", 0) or (
        isinstance(value, str) and _SUB_MICROSECOND.search(value)
    ):
        raise ValueError
    if type_ == "timestamp":
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.tzinfo is not None:
        raise TypeError
    return moment


_SUB_MICROSECOND = re.compile(r"[.,][0-9]{6}0*[1-9]")
"""A fraction of a second that microseconds cannot hold."""
