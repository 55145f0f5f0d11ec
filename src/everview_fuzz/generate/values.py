"""Which values a column may hold: few, so that joins match and groups collide, or extreme ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from everview.expr.types import FLOATS, INTEGERS, Type, decimal_parts
from everview_fuzz.literals import quoted_text

NAN = math.nan
"""The one not-a-number used: rows that hold it are equal to themselves."""

WORDS = ("", "a", "b", "ab", "B", "a b", " a", "it's", "ü", "10", "%", "NULL", "zebra", "日本")
DAYS = tuple(date(2024, 2, 27) + timedelta(days=n) for n in range(6))
MOMENTS = tuple(datetime(2024, 2, 28, 22) + timedelta(minutes=37 * n) for n in range(8))

_WIDTHS = dict(zip(INTEGERS, (8, 16, 32, 64), strict=True))


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one column; `wild` when some are so extreme that arithmetic fails on them."""

    usual: tuple[Any, ...]
    extreme: tuple[Any, ...] = ()
    nulls: float = 0.0

    @property
    def wild(self) -> bool:
        """Whether extreme values occur."""
        return bool(self.extreme)

    def draw(self, rng: Random) -> Any:
        """One value, NULL and extremes now and then."""
        if rng.random() < self.nulls:
            return None
        if self.extreme and rng.random() < 0.15:
            return rng.choice(self.extreme)
        return rng.choice(self.usual)


def domain(rng: Random, type_: Type, *, nullable: bool, wild: bool, many: bool = False) -> Domain:
    """A domain for a column: `many` values for keys, else a handful that other columns share."""
    few, more, extreme = _values(type_)
    usual = (*few, *more) if many else tuple(rng.sample(few, min(len(few), rng.randint(2, 7))))
    nulls = rng.choice((0.05, 0.15, 0.4, 0.6)) if nullable else 0.0
    return Domain(usual, extreme if wild else (), nulls)


Values = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""A few values, more of them, and extreme ones."""


def _values(type_: Type) -> Values:
    if type_ in INTEGERS:
        bound = 2 ** (_WIDTHS[type_] - 1)
        return tuple(range(-2, 6)), tuple(range(6, 90)), (bound - 1, -bound)
    parts = decimal_parts(type_)
    if parts:
        return _decimals(*parts)
    if type_ in FLOATS:
        # Multiples of a quarter: their sums are exact, whatever the order of addition.
        few = tuple(n / 4 for n in range(-3, 6))
        return few, tuple(n / 4 for n in range(6, 90)), (NAN, math.inf, -math.inf, -0.0)
    return _OTHERS[type_]


def _decimals(precision: int, scale: int) -> Values:
    step = Decimal(1).scaleb(-scale)
    whole = 10 ** min(scale, precision - 1)
    few = (-whole, 0, 1, whole // 2, whole, whole + 1, 2 * whole, 3 * whole)
    # Built from digits: arithmetic would round to 28 of them.
    largest = Decimal((0, (9,) * precision, -scale))
    more = tuple(n * step for n in range(5 * whole, 95 * whole, whole))
    fitting = tuple(value for value in more if value <= largest)
    return tuple(dict.fromkeys(n * step for n in few)), fitting, (largest, largest.copy_negate())


_FAR = (
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
)


def _in_utc(moments: tuple[datetime, ...]) -> tuple[datetime, ...]:
    return tuple(moment.replace(tzinfo=UTC) for moment in moments)


_OTHERS: dict[Type, Values] = {
    "boolean": ((True, False), (), ()),
    "string": (
        WORDS,
        tuple(f"w{n}" for n in range(60)),
        ("a" * 300, "tab\there", "back\\slash", "🙂"),
    ),
    "binary": ((b"", b"a", b"b", b"ab", b"0", b"a b"), (b"zz",), (b"\x00\xff", b"\x80" * 40)),
    "date": (
        DAYS,
        tuple(date(2023, 11, 1) + timedelta(days=n) for n in range(60)),
        (date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)),
    ),
    "array<int>": (((), (1,), (1, 2), (2, None), (None,), (3, 3, 1)), (), ()),
    "array<string>": (((), ("a",), ("b", "a"), ("", None), ("a", "a")), (), ()),
    "timestamp": (_in_utc(MOMENTS), (), _in_utc(_FAR)),
    "timestamp_ntz": (MOMENTS, (), _FAR),
}


def literal(rng: Random, family: str) -> str:
    """A random constant of a family, from the values that tables hold too."""
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
