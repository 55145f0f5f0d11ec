"""Stored values as constants of SQL."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from everview.expr.types import FLOATS, INTEGERS, Type

_SMALL = range(-(2**31) + 1, 2**31)


def quoted_text(value: str) -> str:
    """A string constant.

    >>> quoted_text("it's")
    "'it\\\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def constant(value: Any, type_: Type) -> str:
    """A stored value as an expression of its column's type.

    >>> constant(7, "int"), constant(Decimal("1.50"), "decimal(5,2)"), constant(None, "date")
    ('7', "CAST('1.50' AS DECIMAL(5,2))", 'CAST(NULL AS DATE)')
    """
    match value:
        case None:
            return f"CAST(NULL AS {type_.upper()})"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if type_ in INTEGERS and value in _SMALL:
            return str(value) if type_ in ("int", "bigint") else f"CAST({value} AS {type_.upper()})"
        case str():
            return quoted_text(value)
        case tuple():
            element = type_.removeprefix("array<").removesuffix(">")
            listed = ", ".join(constant(each, element) for each in value)
            return f"CAST(ARRAY({listed}) AS {type_.upper()})"
        case bytes():
            return _bytes(value)
        case float() if type_ in FLOATS:
            shown = "NaN" if math.isnan(value) else repr(value)
            return f"CAST('{shown}' AS {type_.upper()})"
        case Decimal():
            return f"CAST('{value:f}' AS {type_.upper()})"
        case datetime():
            shown = value.replace(tzinfo=None).isoformat(" ")
            return f"CAST('{shown}' AS {type_.upper()})"
        case date():
            return f"DATE'{value.isoformat()}'"
        case _:
            return f"CAST('{value}' AS {type_.upper()})"


def _bytes(value: bytes) -> str:
    if value.isascii() and value.decode().isprintable():
        return f"CAST({quoted_text(value.decode())} AS BINARY)"
    return f"X'{value.hex().upper()}'"
