"""Range conditions of joins: between which limits one side is wanted for each row of the other.

A comparison of two columns, or of columns plus constants, bounds each of them by the other. A range
may be wider than the condition: whatever reads the slice evaluates the condition again. Only types
that are stored as integers of their order have ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.expr import scalar
from everview.expr.types import INT64_DIGITS, INTEGERS, Schema, precision_and_scale
from everview.program.steps import KeyRange, Limit

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400}
_DAY = 86_400 * 1_000_000

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}


@dataclass(frozen=True, slots=True)
class _Value:
    """A column plus a constant, which is right to within `slack`."""

    column: str
    plus: int = 0
    slack: int = 0


def key_ranges(condition: str | None, wanted: Schema, asking: Schema) -> tuple[KeyRange, ...]:
    """The ranges of columns of `wanted`, by columns of `asking`; those with two limits first."""
    if condition is None:
        return ()
    ours, theirs = ({each.name: each.type for each in side} for side in (wanted, asking))
    lows: dict[str, Limit] = {}
    highs: dict[str, Limit] = {}
    for left, operator, right in _comparisons(condition):
        for a, comparison, b in ((left, operator, right), (right, _FLIPPED[operator], left)):
            one, other = _value(a, ours), _value(b, theirs)
            if one is None or other is None:
                continue
            if not _compare_as_integers(ours[one.column], theirs[other.column]):
                continue
            plus, slack = other.plus - one.plus, one.slack + other.slack
            if comparison in (exp.GT, exp.GTE):
                strict = comparison is exp.GT and not slack
                lows.setdefault(one.column, Limit(other.column, plus - slack + strict))
            else:
                strict = comparison is exp.LT and not slack
                highs.setdefault(one.column, Limit(other.column, plus + slack - strict))
    found = [
        KeyRange(name, lows.get(name), highs.get(name))
        for name in ours
        if name in lows or name in highs
    ]
    return tuple(sorted(found, key=lambda each: each.low is None or each.high is None))


def _comparisons(condition: str) -> Iterator[tuple[exp.Expr, type[exp.Expr], exp.Expr]]:
    """The comparisons that all have to hold."""
    for part in scalar.conjuncts(condition):
        tree = scalar.parse(part)
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            yield tree.this, exp.GTE, tree.args["low"]
            yield tree.this, exp.LTE, tree.args["high"]
        elif type(tree) in _FLIPPED:
            yield tree.this, type(tree), tree.expression


def _value(tree: exp.Expr, types: dict[str, str]) -> _Value | None:
    """A column of one side, plus or minus a constant; None for any other expression."""
    match tree:
        case exp.Paren():
            return _value(tree.this, types)
        case exp.Column() if not tree.table and tree.name in types:
            return _Value(tree.name)
        case exp.Add() | exp.Sub():
            below = _value(tree.this, types)
            constant = _constant(tree.expression, types[below.column]) if below else None
            if below is None or constant is None:
                return None
            plus, slack = constant
            sign = 1 if isinstance(tree, exp.Add) else -1
            return _Value(below.column, below.plus + sign * plus, below.slack + slack)
        case _:
            return None


def _constant(tree: exp.Expr, type_: str) -> tuple[int, int] | None:
    """A constant in units of a type, and how far it may be off."""
    if type_ in INTEGERS:
        number = scalar.whole_number(tree)
        return None if number is None else (number, 0)
    if not isinstance(tree, exp.Interval) or not isinstance(tree.this, exp.Literal):
        return None
    unit = tree.text("unit").upper().removesuffix("S")
    if unit not in _SECONDS or not tree.this.name.removeprefix("-").isdigit():
        return None
    count = int(tree.this.name)
    if type_ == "date":
        return (count, 0) if unit == "DAY" else None
    length = count * _SECONDS[unit] * 1_000_000
    # A day of a time zone may be longer or shorter than 24 hours.
    return length, (_DAY if abs(length) >= _DAY else 0)


def _compare_as_integers(one: str, other: str) -> bool:
    if one in INTEGERS and other in INTEGERS:
        return True
    if one.startswith("decimal") and other.startswith("decimal"):
        (digits, scale), (more, same) = precision_and_scale(one), precision_and_scale(other)
        return scale == same and max(digits, more) <= INT64_DIGITS
    return one == other and one in ("date", "timestamp", "timestamp_ntz")
