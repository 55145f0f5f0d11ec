"""The type two operands meet in, by Spark's ANSI rules, and its arithmetic of decimal types."""

from __future__ import annotations

from collections.abc import Iterable

from everview.expr.types import (
    FLOATS,
    INTEGERS,
    Type,
    decimal_parts,
    fields_of,
    parts_of,
    precision_and_scale,
    struct_of,
)

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6

_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_MOMENTS = ("date", "timestamp_ntz", "timestamp")


def is_numeric(type_: Type) -> bool:
    """Whether Spark calls the type numeric."""
    return type_ in INTEGERS or type_ in FLOATS or decimal_parts(type_) is not None


def decimal(precision: int, scale: int) -> Type:
    """The name of a decimal type."""
    return f"decimal({precision},{scale})"


def as_decimal(type_: Type) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of the decimal that holds an integer type."""
    digits = _INTEGER_DIGITS.get(type_)
    return (digits, 0) if digits else decimal_parts(type_)


def adjusted(precision: int, scale: int) -> Type:
    """Spark's `adjustPrecisionScale`: digits before the point go first, scale stays at least 6."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, MIN_ADJUSTED_SCALE)))


def wider_decimal(left: tuple[int, int], right: tuple[int, int]) -> Type:
    """The decimal that holds both; beyond 38 digits, the scale gives way."""
    scale = max(left[1], right[1])
    precision = max(left[0] - left[1], right[0] - right[1]) + scale
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    return decimal(MAX_PRECISION, max(0, scale - (precision - MAX_PRECISION)))


def exact_decimal(operator: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Precision and scale that hold every digit of `left operator right`: of a + , - or *."""
    (p1, s1), (p2, s2) = left, right
    if operator == "*":
        return p1 + p2 + 1, s1 + s2
    scale = max(s1, s2)
    return max(p1 - s1, p2 - s2) + scale + 1, scale


def drops_digits(operator: str, operands: tuple[Type, ...], result: Type) -> bool:
    """Whether a sum, difference or product of decimals has digits that its type has no place for.

    >>> drops_digits("*", ("decimal(38,10)", "decimal(38,10)"), "decimal(38,6)")
    True
    """
    left, right, (_, scale) = map(precision_and_scale, (*operands, result))
    return exact_decimal(operator, left, right)[1] > scale


def decimal_result(operator: str, left: tuple[int, int], right: tuple[int, int]) -> Type | None:
    """The type of `left operator right` for decimals."""
    (p1, s1), (p2, s2) = left, right
    match operator:
        case "+" | "-" | "*":
            return adjusted(*exact_decimal(operator, left, right))
        case "/":
            quotient_scale = max(MIN_ADJUSTED_SCALE, s1 + p2 + 1)
            return adjusted(p1 - s1 + s2 + quotient_scale, quotient_scale)
        case "%" | "pmod":
            scale = max(s1, s2)
            return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
        case "div":
            return "bigint"
        case _:
            return None


def common(left: Type, right: Type, *, strings: bool = True) -> Type | None:
    """The type both are cast to, None where Spark finds none or we do not know.

    >>> common("int", "decimal(10,2)"), common("string", "int"), common("float", "int")
    ('decimal(12,2)', 'bigint', 'double')
    """
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if "string" in (left, right):
        other = right if left == "string" else left
        return _with_string(other) if strings else None
    if left in _MOMENTS and right in _MOMENTS:
        return max(left, right, key=_MOMENTS.index)
    if is_numeric(left) and is_numeric(right):
        return _numeric(left, right)
    return _nested(left, right, strings=strings)


def _nested(left: Type, right: Type, *, strings: bool) -> Type | None:
    """Arrays, maps and structs meet part by part; fields have to have the same names."""
    (outer, ours), (other, theirs) = parts_of(left), parts_of(right)
    if outer != other or not ours or len(ours) != len(theirs):
        return None
    if outer != "struct":
        parts = [common(a, b, strings=strings) for a, b in zip(ours, theirs, strict=True)]
        return None if None in parts else f"{outer}<{','.join(map(str, parts))}>"
    fields = []
    for (name, a), (name_too, b) in zip(fields_of(left), fields_of(right), strict=True):
        meeting = common(a, b, strings=strings)
        if name != name_too or meeting is None:
            return None
        fields.append((name, meeting))
    return struct_of(fields)


def common_of(types: Iterable[Type], *, strings: bool = True) -> Type | None:
    """The type all are cast to; Spark looks at strings first."""
    ordered = sorted(types, key=lambda type_: type_ != "string")

    meeting: Type | None = "void"
    for type_ in ordered:
        meeting = None if meeting is None else common(meeting, type_, strings=strings)
    return meeting


def _with_string(other: Type) -> Type | None:
    if other in INTEGERS:
        return "bigint"
    if is_numeric(other):
        return "double"
    return other if other in (*_MOMENTS, "boolean", "binary") else None


def _numeric(left: Type, right: Type) -> Type | None:
    if left in INTEGERS and right in INTEGERS:
        return max(left, right, key=INTEGERS.index)
    if left in FLOATS or right in FLOATS:
        return "double"  # of two floats they are equal; any other mix could lose digits
    wide_left, wide_right = as_decimal(left), as_decimal(right)
    return wider_decimal(wide_left, wide_right) if wide_left and wide_right else None
