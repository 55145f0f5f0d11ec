"""Values of AGCA as typed scalar texts. Numbers are exact: whole numbers are BIGINT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.coercion import (
    as_decimal,
    common_of,
    decimal,
    decimal_result,
    drops_digits,
)
from everview.expr.types import INTEGERS, Type, decimal_parts, is_exact
from everview.lang.agca.printer import print_query
from everview.lang.agca.scope import span_of
from everview.lang.agca.syntax import Constant, Expr

_MAX_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Typed:
    """A scalar text with its type; `digits` is how many a whole number in the text has."""

    text: str
    type: Type
    digits: int | None = None


def column(name: str, type_: Type) -> Typed:
    """The value in a column."""
    return Typed(scalar.column(name), type_)


def literal(constant: Constant) -> Typed:
    """A constant of the text."""
    match constant.value:
        case int() as number if -(2**63) < number < 2**63:
            return Typed(_cast_text(str(number), "bigint"), "bigint", len(str(abs(number))))
        case Decimal() as number if (type_ := _type_of_decimal(number)) is not None:
            return Typed(_cast_text(f"{number:f}", type_), type_)
        case int() | Decimal():
            raise types_differ(constant, "the number has more than 38 digits", "use a smaller one")
        case date() as day:
            made = scalar.text(exp.Literal.string(day.isoformat()))
            return Typed(_cast_text(made, "date"), "date")
        case str() as text:
            return Typed(scalar.text(exp.Literal.string(text)), "string")


def number(value: Typed, place: Expr) -> Typed:
    """A value as a factor or a summand, which must be an exact number."""
    if not is_exact(value.type):
        inexact = value.type in ("float", "double")
        raise types_differ(
            place,
            f"{print_query(place)} is {value.type}, which is no exact number",
            "CAST it to DECIMAL in a view between" if inexact else "compare it instead",
        )
    if value.type in INTEGERS and value.type != "bigint":
        return Typed(cast(value, "bigint"), "bigint")
    return value


def arithmetic(operator: str, left: Typed, right: Typed, place: Expr) -> Typed:
    """The sum, difference or product of two exact numbers, with all of its digits."""
    if left.type == right.type == "bigint":
        return Typed(_applied(operator, left, right), "bigint")
    sides = [_as_decimal(each) for each in (left, right)]
    parts = [decimal_parts(each.type) for each in sides]
    assert parts[0] is not None
    assert parts[1] is not None
    type_ = decimal_result(operator, parts[0], parts[1])
    assert type_ is not None
    if drops_digits(operator, (sides[0].type, sides[1].type), type_):
        problem = f"{print_query(place)} may have more than 38 digits"
        raise types_differ(place, problem, "CAST its parts to DECIMALs of fewer digits")
    return Typed(_applied(operator, *sides), type_)


def _applied(operator: str, left: Typed, right: Typed) -> str:
    return scalar.substitute(f"l {operator} r", {"l": left.text, "r": right.text})


def common_type(types: Iterable[Type], what: str, place: Expr | None = None) -> Type:
    """The type that holds all values of several types exactly."""
    kinds = tuple(dict.fromkeys(types))
    found = common_of(kinds, strings=False)
    if found is None or not all(_holds(found, each) for each in kinds):
        listed = " and ".join(kinds)
        raise types_differ(place, f"{what} have the types {listed}", "CAST in a view between")
    return found


def _holds(wide: Type, narrow: Type) -> bool:
    """Whether a type has all values of another, and compares them alike."""
    if wide == narrow:
        return True
    ours, theirs = as_decimal(wide), as_decimal(narrow)
    if ours is None or theirs is None:
        return False
    return ours[1] >= theirs[1] and ours[0] - ours[1] >= theirs[0] - theirs[1]


def cast(value: Typed, type_: Type) -> str:
    """The text of a value as one of another type."""
    return value.text if value.type == type_ else _cast_text(value.text, type_)


def types_differ(place: Expr | None, problem: str, remedy: str) -> UserError:
    """The error for values whose types do not fit."""
    span = None if place is None else span_of(place)
    return UserError("G005", problem, span=span, remedy=remedy)


def _as_decimal(value: Typed) -> Typed:
    if decimal_parts(value.type):
        return value
    parts = (value.digits, 0) if value.digits else as_decimal(value.type)
    assert parts is not None, value
    type_ = decimal(*parts)
    return Typed(_cast_text(value.text, type_), type_)


def _type_of_decimal(number: Decimal) -> Type | None:
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return decimal(precision, scale) if precision <= _MAX_DIGITS else None


def _cast_text(text: str, type_: Type) -> str:
    return scalar.canonical(f"CAST({text} AS {type_})")
