"""Frames of windows: which rows around a row a window function reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

from sqlglot import exp

from everview.expr.coercion import is_numeric
from everview.expr.scalar import whole_number
from everview.expr.types import INTEGERS, Type
from everview.lang.sql.bind.refuse import refused

_SIDES = {"PRECEDING": "FOLLOWING", "FOLLOWING": "PRECEDING"}
_UNITS = {
    "date": ("DAY", "MONTH", "YEAR"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), ("DAY", "HOUR", "MINUTE", "SECOND")),
}
"""The units in which rows ordered by a type may be apart."""


def frame_of(spec: exp.Expr | None, types: Sequence[Type], text: str) -> str:
    """ROWS or RANGE BETWEEN … AND …, as both engines write it, for rows ordered by these types."""
    if spec is None:
        return ""
    kind = str(spec.args["kind"]).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise refused(f"a {kind} frame", spec, text, "use ROWS or RANGE")
    ends = (
        ("start", _of_one_unit(spec.args.get("start"))),
        ("end", _of_one_unit(spec.args.get("end") or "CURRENT ROW")),
    )
    units = {_unit(value) for _, value in ends if isinstance(value, exp.Interval)}
    by = types[0] if len(types) == 1 and kind == "RANGE" else ""
    allowed = _UNITS.get(by, ())
    if len(units) > 1 or not units <= set(allowed):
        raise refused("a frame of this INTERVAL", spec, text, "use one unit, and one ORDER BY")
    start, end = (_bound(value, spec.args.get(f"{name}_side"), text) for name, value in ends)
    numbers = [bound for bound in (start, end) if bound[:1].isdigit()]
    if kind == "RANGE" and numbers and by != "date" and not is_numeric(by):
        raise refused("a RANGE of numbers here", spec, text, "use one ORDER BY, of a number")
    if (kind == "ROWS" or by in (*INTEGERS, "date")) and any("." in bound for bound in numbers):
        raise refused("a frame of a fraction here", spec, text, "write a whole number")
    if not _at(start) <= _at(end) or inf in (_at(start), -_at(end)):
        raise refused("a frame that ends before it begins", spec, text, "turn its ends around")
    return f"{kind} BETWEEN {start} AND {end}"


def _at(bound: str) -> float:
    """Where a bound is: below zero before the row, above it after."""
    if bound == "CURRENT ROW":
        return 0
    digits = re.search(r"\d+(\.\d+)?", bound)
    distance = float(digits[0]) if digits else inf
    return -distance if bound.endswith("PRECEDING") else distance


def _bound(value: exp.Expr | str | None, side: object, text: str) -> str:
    if isinstance(value, str):
        return f"{value} {side}".strip().upper() if side else value
    if not side:
        node = value if isinstance(value, exp.Expr) else exp.Null()
        raise refused("a frame bound without a side", node, text, "write PRECEDING or FOLLOWING")
    shown = str(side).upper()
    if isinstance(value, exp.Interval):
        return f"INTERVAL '{value.this.name}' {_unit(value)} {shown}"
    if isinstance(value, exp.Literal) and not value.is_string:
        return f"{value.name} {shown}"
    count = whole_number(value)
    if count is None:
        node = value if isinstance(value, exp.Expr) else exp.Null()
        raise refused("a computed frame bound", node, text, "write a number")
    return f"{abs(count)} {shown if count >= 0 else _SIDES[shown]}"


def _of_one_unit(value: exp.Expr | str | None) -> exp.Expr | str | None:
    """An interval of several units as one of the largest unit that holds it whole.

    >>> from sqlglot import parse_one
    >>> _of_one_unit(parse_one("INTERVAL '23' DAYS + INTERVAL '4' HOURS")).sql()
    "INTERVAL '556' HOUR"
    """
    if not isinstance(value, exp.Add | exp.Interval):
        return value
    if isinstance(value, exp.Interval) and _unit(value):
        return value
    parts = map(_counts, value.flatten() if isinstance(value, exp.Add) else [value])
    total: dict[str, int] = {}
    for counts in parts:
        for base, count in (counts or {"": 0}).items():
            total[base] = total.get(base, 0) + count
    if len(total) != 1 or "" in total:
        return value
    ((base, count),) = total.items()
    units = _SECONDS if base == "SECOND" else {"MONTH": 1}
    unit, size = next((unit, size) for unit, size in units.items() if count % size == 0)
    number = exp.Literal.string(str(count // size))
    return exp.Interval(this=number, unit=exp.Var(this=unit)) if count >= 0 else value


_SECONDS = {"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}


def _counts(node: exp.Expr) -> dict[str, int] | None:
    """The seconds or the months of an interval; None for one with parts of a second."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    words = str(node.args.get("unit") or "").upper().replace(" TO ", " ").split()
    digits = re.split(r"[\s:-]", node.this.name)
    if not all(map(str.isdigit, digits)):
        return None
    if words == ["YEAR", "MONTH"] and len(digits) == 2:
        return {"MONTH": int(digits[0]) * 12 + int(digits[1])}
    words = [word.removesuffix("S") for word in words]
    if len(words) == len(digits) == 1 and words[0] in _MONTHS:
        return {"MONTH": int(digits[0]) * _MONTHS[words[0]]}
    if not words or len(words) > 2:
        return None
    order = list(_SECONDS)
    if not set(words) <= set(order):
        return None
    spanned = order[order.index(words[0]) : order.index(words[-1]) + 1]
    if len(spanned) != len(digits):
        return None
    pairs = zip(spanned, digits, strict=True)
    return {"SECOND": sum(int(count) * _SECONDS[unit] for unit, count in pairs)}


_MONTHS = {"YEAR": 12, "MONTH": 1}


def _unit(value: exp.Interval) -> str:
    """DAY and the like; nothing for an interval of several units or of no plain number."""
    plain = isinstance(value.this, exp.Literal) and value.this.name.isdigit()
    return str(value.unit).upper().removesuffix("S") if plain else ""
