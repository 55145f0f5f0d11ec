"""Rules of signatures: what Spark casts operands to, and the type that it then gives the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.coercion import (
    MAX_PRECISION,
    as_decimal,
    common,
    common_of,
    decimal,
    decimal_result,
    is_numeric,
)
from everview.expr.parameters import MOMENTS, Parameter
from everview.expr.types import (
    FLOATS,
    INTEGERS,
    Type,
    decimal_parts,
    fields_of,
    is_nested,
    parts_of,
)


@dataclass(frozen=True, slots=True)
class Operand:
    """The type of an argument, and its text where it is a literal."""

    type: Type
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The types the arguments are cast to and the type of the result."""

    operands: tuple[Type, ...]
    result: Type


Rule: TypeAlias = Callable[[tuple[Operand, ...], str | None], Signature | None]


def castable(source: Type, target: Type | None) -> bool:
    """Whether Spark allows CAST(source AS target), for the pairs we know."""
    if target is None:
        return False
    if source in ("void", "string", target) or target == "string":
        return True
    if is_numeric(source):
        return is_numeric(target) or target in ("boolean", "timestamp")
    if source == "boolean":
        return is_numeric(target)
    if is_nested(source):
        return _castable_parts(source, target)
    return source in MOMENTS and (
        target in MOMENTS or (is_numeric(target) and source == "timestamp")
    )


def _castable_parts(source: Type, target: Type) -> bool:
    """Nested values are cast part by part."""
    (outer, ours), (other, theirs) = parts_of(source), parts_of(target)
    if outer != other or len(ours) != len(theirs):
        return False
    if outer == "struct":
        ours = tuple(type_ for _, type_ in fields_of(source))
        theirs = tuple(type_ for _, type_ in fields_of(target))
    return all(map(castable, ours, theirs))


def arithmetic(operator: str) -> Rule:
    """+ - * / % pmod div on numbers, and on a number and a string that holds one."""

    def rule(args: tuple[Operand, ...], _: str | None) -> Signature | None:
        if len(args) != 2:
            return None
        left, right = args
        if "string" in (left.type, right.type):
            return _with_string(operator, left.type, right.type)
        if not (is_numeric(left.type) and is_numeric(right.type)):
            return None
        return _of_numbers(operator, left, right)

    return rule


def _with_string(operator: str, left: Type, right: Type) -> Signature | None:
    meeting = common(left, right)
    if left == right or meeting not in ("bigint", "double"):
        return None
    return _of_numbers(operator, Operand(meeting), Operand(meeting))


def _of_numbers(operator: str, left: Operand, right: Operand) -> Signature | None:
    types = (left.type, right.type)
    if any(type_ in FLOATS for type_ in types):
        meeting = "float" if types == ("float", "float") and operator != "/" else "double"
        return None if operator == "div" else Signature((meeting, meeting), meeting)
    if any(decimal_parts(type_) for type_ in types):
        return _of_decimals(operator, left, right)
    whole = {"/": "double", "div": "bigint"}.get(operator) or common(*types)
    return Signature((whole, whole), whole) if whole else None


def _of_decimals(operator: str, left: Operand, right: Operand) -> Signature | None:
    first, second = _digits(left), _digits(right)
    result = decimal_result(operator, first, second) if first and second else None
    if first is None or second is None or result is None:
        return None
    return Signature((decimal(*first), decimal(*second)), result)


def _digits(operand: Operand) -> tuple[int, int] | None:
    """An integer literal beside a decimal is as wide as it is written."""
    if operand.literal is not None and operand.type in INTEGERS:
        return len(operand.literal.lstrip("-").lstrip("0")) or 1, 0
    return as_decimal(operand.type)


def either(*rules: Rule) -> Rule:
    """The first rule that knows."""

    def rule(args: tuple[Operand, ...], value: str | None) -> Signature | None:
        return next((signature for each in rules if (signature := each(args, value))), None)

    return rule


def function(result: Type, *parameters: Parameter, optional: int = 0) -> Rule:
    """A function of fixed parameters, the last `optional` of which may be left out."""

    def rule(args: tuple[Operand, ...], _: str | None) -> Signature | None:
        if not len(parameters) - optional <= len(args) <= len(parameters):
            return None
        return _matched(result, parameters[: len(args)], args)

    return rule


def _matched(
    result: Type, parameters: tuple[Parameter, ...], args: tuple[Operand, ...]
) -> Signature | None:
    operands = [parameter(arg.type) for parameter, arg in zip(parameters, args, strict=True)]
    known = tuple(operand for operand in operands if operand is not None)
    return Signature(known, result) if len(known) == len(args) else None


def same(*parameters: Parameter) -> Rule:
    """A function whose result has the type of its first operand."""

    def rule(args: tuple[Operand, ...], _: str | None) -> Signature | None:
        if len(args) != len(parameters):
            return None
        signature = _matched("", parameters, args)
        return Signature(signature.operands, signature.operands[0]) if signature else None

    return rule


def variadic(result: Type, parameter: Parameter, least: int = 0) -> Rule:
    """A function of any number of like arguments."""

    def rule(args: tuple[Operand, ...], _: str | None) -> Signature | None:
        return _matched(result, (parameter,) * len(args), args) if len(args) >= least else None

    return rule


def comparison(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """Both sides are cast to the type they meet in."""
    if len(args) != 2:
        return None
    meeting = _comparable(common(args[0].type, args[1].type))
    return Signature((meeting, meeting), "boolean") if meeting else None


def _comparable(meeting: Type | None) -> Type | None:
    """Spark compares no maps."""
    return None if meeting is None or "map<" in meeting else meeting


def membership(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """x IN (…): all are cast to the type they meet in."""
    meeting = _comparable(common_of(arg.type for arg in args))
    return Signature((meeting,) * len(args), "boolean") if meeting else None


def choice(strings: bool) -> Rule:
    """COALESCE, GREATEST, LEAST: the type all arguments meet in."""

    def rule(args: tuple[Operand, ...], _: str | None) -> Signature | None:
        meeting = common_of((arg.type for arg in args), strings=strings)
        meeting = meeting if strings else _comparable(meeting)
        return Signature((meeting,) * len(args), meeting) if meeting and args else None

    return rule


def case(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """Conditions and values in turn, then the default."""
    *pairs, default = args
    conditions, values = pairs[0::2], [*pairs[1::2], default]
    meeting = common_of(value.type for value in values)
    if meeting is None or any(test.type != "boolean" for test in conditions):
        return None
    return Signature(("boolean", meeting) * len(conditions) + (meeting,), meeting)


def date_plus(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """date ± days."""
    match tuple(arg.type for arg in args):
        case ("date", "tinyint" | "smallint" | "int"):
            return Signature(("date", "int"), "date")
        case _:
            return None


def swapped(rule: Rule) -> Rule:
    """The rule for the same operands in the other order: days + date, interval + timestamp."""

    def turned(args: tuple[Operand, ...], value: str | None) -> Signature | None:
        signature = rule(args[::-1], value)
        return Signature(signature.operands[::-1], signature.result) if signature else None

    return turned


def plus_interval(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """A date or timestamp ± a literal interval of one unit."""
    match tuple(arg.type for arg in args):
        case ("date", "interval_date"):
            return Signature(("date", "interval_date"), "date")
        case ("date", "interval_time"):
            return Signature(("date", "interval_time"), "timestamp")
        case ("timestamp" | "timestamp_ntz" as moment, "interval_date" | "interval_time" as unit):
            return Signature((moment, unit), moment)
        case _:
            return None


def interval(_: tuple[Operand, ...], value: str | None) -> Signature | None:
    """A literal interval of one unit: whole days and months, or parts of a day."""
    match (value or "").split():
        case [count, "DAY" | "WEEK" | "MONTH" | "YEAR"] if count.lstrip("-").isdecimal():
            return Signature((), "interval_date")
        case [count, "HOUR" | "MINUTE" | "SECOND"] if count.lstrip("-").isdecimal():
            return Signature((), "interval_time")
        case _:
            return None


def rounding(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """round and bround: integers and doubles keep their type, decimals lose scale."""
    if not args or len(args) > 2 or not is_numeric(args[0].type):
        return None
    digits = "0" if len(args) == 1 else args[1].literal
    if digits is None or (len(args) == 2 and args[1].type != "int"):
        return None
    operands = (args[0].type, "int")[: len(args)]
    parts = decimal_parts(args[0].type)
    return Signature(operands, _rounded(*parts, int(digits)) if parts else args[0].type)


def _rounded(precision: int, scale: int, digits: int) -> Type:
    whole = precision - scale + 1
    if digits < 0:
        return decimal(min(MAX_PRECISION, max(whole, 1 - digits)), 0)
    kept = min(scale, digits)
    return decimal(min(MAX_PRECISION, whole + kept), kept)


def to_whole(args: tuple[Operand, ...], value: str | None) -> Signature | None:
    """ceil and floor: bigint, or a decimal without scale, or a decimal of the scale asked for."""
    if len(args) == 2 and decimal_parts(args[0].type):
        return rounding(args, value)
    if len(args) != 1 or not is_numeric(args[0].type):
        return None
    parts = decimal_parts(args[0].type)
    if parts is None:
        operand = "bigint" if args[0].type in INTEGERS else "double"
        return Signature((operand,), "bigint")
    precision, scale = parts
    whole = precision - scale + 1 if scale else precision
    return Signature((args[0].type,), decimal(min(MAX_PRECISION, whole), 0))


def average_double(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """ev_avg_double(total, n): the mean of an exact total, as a double."""
    if len(args) != 2 or not all(as_decimal(arg.type) for arg in args):
        return None
    return Signature(("decimal(38,0)", "bigint"), "double")


def average_decimal(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """ev_avg_decimal(total, n, p, s): what avg over decimal(p,s) gives."""
    if len(args) != 4 or args[2].literal is None or args[3].literal is None:
        return None
    precision, scale = int(args[2].literal), int(args[3].literal)
    if as_decimal(args[0].type) is None or args[1].type not in INTEGERS:
        return None
    result = decimal(min(MAX_PRECISION, precision + 4), min(MAX_PRECISION, scale + 4))
    return Signature((decimal(MAX_PRECISION, scale), "bigint", "int", "int"), result)


def single(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """ev_single(n, value): the value, or an error where there is more than one."""
    if len(args) != 2 or args[0].type not in INTEGERS:
        return None
    return Signature(("bigint", args[1].type), args[1].type)


def from_base(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """ev_from_base(digits, base): the number that at most 64 bits of binary or hex digits make."""
    if len(args) != 2 or args[0].type != "string" or args[1].literal not in ("2", "16"):
        return None
    return Signature(("string", "int"), decimal(20, 0))


def by_format(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """to_number(text, format): a decimal as wide as the nines that a literal format consists of."""
    if len(args) != 2 or any(arg.type != "string" for arg in args):
        return None
    width = len(args[1].literal or "")
    if args[1].literal != "9" * width or not 1 <= width <= MAX_PRECISION:
        return None
    return Signature(("string", "string"), decimal(width, 0))


def bitwise(args: tuple[Operand, ...], _: str | None) -> Signature | None:
    """& | ^ on the wider of two integers."""
    meeting = common(args[0].type, args[1].type, strings=False) if len(args) == 2 else None
    return Signature((meeting, meeting), meeting) if meeting in INTEGERS and meeting else None
