"""Constants in the text of a query or script."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from everview.expr.types import FLOATS, INTEGERS, Type
from everview_fuzz.generate.values import DAYS, MOMENTS, WORDS

_SMALL = range(-(2**31) + 1, 2**31)


def literal(rng: Random, family: str) -> str:
    """A constant of a family, from the values that tables hold too."""
    match family:
        case "whole":
            return str(rng.randint(-2, 7))
        case "decimal":
            return rng.choice(("0.0", "1.00", "1.5", "-1.00", "2.25", "100.01"))
        case "fraction":
            return rng.choice(("CAST(0.5 AS DOUBLE)", "25e-1", "CAST(1 AS DOUBLE)"))
        case "text":
            return quoted_text(rng.choice(WORDS))
        case "truth":
            return rng.choice(("TRUE", "FALSE"))
        case "date":
            return f"DATE'{rng.choice(DAYS)}'"
        case "stamp":
            return f"TIMESTAMP'{rng.choice(MOMENTS)}'"
        case "local":
            return f"CAST('{rng.choice(MOMENTS)}' AS TIMESTAMP_NTZ)"
        case _:
            return f"CAST({quoted_text(rng.choice(('', 'a', 'ab')))} AS BINARY)"


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
