"""Scalar expressions as Python over the values of one row, None for NULL.

Each construct becomes one assignment, so that all parts are computed, as the vectorized operators
do. A value that cannot be computed exactly raises `Unsupported`, and they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeAlias

import pyarrow as pa

from everview.expr.coercion import as_decimal, drops_digits, exact_decimal
from everview.expr.type_inference import Typed, annotate
from everview.expr.types import INTEGERS, Schema, Type, decimal_parts, precision_and_scale
from everview.runtime.generated.values import is_exact, range_of, to_python
from everview.runtime.vector.decimals import quotient_operands
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.scalars import Fold

INDENT = "    "
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_COMPARED = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(slots=True)
class Writer:
    """The lines of a function that is being written, and the constants that it reads."""

    fold: Fold
    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    _names: int = 0

    def fresh(self) -> str:
        """A name that nothing has."""
        self._names += 1
        return f"v{self._names}"

    def line(self, depth: int, text: str) -> None:
        """Add a line."""
        self.lines.append(INDENT * depth + text)

    def assigned(self, depth: int, text: str) -> str:
        """The name of a value that is computed by one line."""
        name = self.fresh()
        self.line(depth, f"{name} = {text}")
        return name

    def constant(self, value: Any) -> str:
        """What stands for a value: no text of the user's is in the code."""
        if value is None:
            return "None"
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def within(self, depth: int, value: str, type_: Type) -> str:
        """The same value, which must be in the range of its type."""
        found = range_of(type_)
        assert found is not None, type_
        self.line(depth, f"if {value} is not None and not {found[0]} <= {value} <= {found[1]}:")
        self.line(depth + 1, "raise Unsupported")
        return value


def write_scalar(
    text: str, schema: Schema, row: Mapping[str, str], writer: Writer, depth: int
) -> tuple[str, Type]:
    """Write what computes a text over the variables of a row; the name of the value."""
    node = annotate(text, schema)
    return _Scalar(row, writer, depth).value(node), node.type or ""


@dataclass(frozen=True, slots=True)
class _Scalar:
    row: Mapping[str, str]
    writer: Writer
    depth: int

    def value(self, node: Typed) -> str:
        if node.type is None or not (node.type == "void" or is_exact(node.type)):
            raise Unsupported(node.name)
        if node.name == "column":
            return self.row[node.value or ""]
        if not _reads_columns(node):
            return self._constant(node)
        if node.name == "cast":
            (arg,) = node.args
            return self._cast(self.value(arg), arg.type or "", node.type)
        make = CONSTRUCTS.get(node.name)
        if make is None:
            raise Unsupported(node.name)
        values = [
            self._cast(self.value(arg), arg.type or "", to)
            for arg, to in zip(node.args, node.operands, strict=True)
        ]
        return make(self, node, values)

    def assigned(self, text: str) -> str:
        """The name of a value that is computed by one line."""
        return self.writer.assigned(self.depth, text)

    def unless_null(self, values: list[str], text: str) -> str:
        """A value that is NULL where one of its operands is."""
        if "None" in values:
            return "None"
        variables = [each for each in dict.fromkeys(values) if each not in self.writer.constants]
        test = " or ".join(f"{value} is None" for value in variables)
        return self.assigned(f"None if {test} else {text}" if test else text)

    def within(self, value: str, type_: Type) -> str:
        """The same value, which must be in the range of its type."""
        return self.writer.within(self.depth, value, type_)

    def _constant(self, node: Typed) -> str:
        found = self.writer.fold(node)
        if found.type == pa.null():
            return "None"
        return self.writer.constant(to_python(pa.array([found.as_py()], found.type))[0])

    def _cast(self, value: str, source: Type, target: Type) -> str:
        """A cast that keeps the value, or raises."""
        if source == target:
            return value
        if source == "void":
            return "None"
        ours, theirs = as_decimal(source), as_decimal(target)
        if ours is None or theirs is None:
            raise Unsupported(f"CAST({source} AS {target})")
        more = theirs[1] - ours[1]
        if more > 0:
            value = self.unless_null([value], f"{value} * {10**more}")
        elif more < 0:
            self.writer.line(self.depth, f"if {value} is not None and {value} % {10**-more}:")
            self.writer.line(self.depth + 1, "raise Unsupported")
            value = self.unless_null([value], f"{value} // {10**-more}")
        return self.within(value, target)


def _reads_columns(node: Typed) -> bool:
    return node.name in ("column", "variable") or any(map(_reads_columns, node.args))


_Make: TypeAlias = Callable[[_Scalar, Typed, list[str]], str]
"""Writes one use of a construct, given its operands; the name of its value."""


def _arithmetic(code: _Scalar, node: Typed, values: list[str]) -> str:
    left, right = values
    operands, to = node.operands, node.type or ""
    units = f"{left} {node.name} {right}"
    if operands[0] == operands[1] == to and to in INTEGERS:
        return code.within(code.unless_null(values, units), to)
    if not all(map(decimal_parts, operands)) or drops_digits(node.name, operands, to):
        raise _unsupported(node)
    ours, theirs = map(precision_and_scale, operands)
    _, scale = exact_decimal(node.name, ours, theirs)
    if node.name != "*":
        left = f"{left} * {10 ** (scale - ours[1])}"
        right = f"{right} * {10 ** (scale - theirs[1])}"
        units = f"{left} {node.name} {right}"
    more = precision_and_scale(to)[1] - scale
    units = f"({units}) * {10**more}" if more else units
    return code.within(code.unless_null(values, units), to)


def _quotient(code: _Scalar, node: Typed, values: list[str]) -> str:
    if not all(map(decimal_parts, node.operands)):
        raise _unsupported(node)
    return _divided(code, values, node.operands, node.type or "")


def _average(code: _Scalar, node: Typed, values: list[str]) -> str:
    """A total divided by a count; NULL for none."""
    some = code.assigned(f"{values[1]} or None")
    return _divided(code, [values[0], some], (node.operands[0], "decimal(19,0)"), node.type or "")


def _divided(code: _Scalar, values: list[str], types: tuple[Type, ...], to: Type) -> str:
    """A quotient rounded half away from zero, of numbers that the vectorized operators divide."""
    over, under = quotient_operands(types, to)
    (_, ours), (_, theirs), (_, scale) = map(precision_and_scale, (*types, to))
    left = code.unless_null(values[:1], f"{values[0]} * {10 ** (over.scale - ours)}")
    for value, most in ((left, over.precision), (values[1], under.precision)):
        code.writer.line(code.depth, f"if {value} is not None and abs({value}) >= {10**most}:")
        code.writer.line(code.depth + 1, "raise Unsupported")
    more = scale + theirs - over.scale
    under_ = f"{values[1]} * {10**-more}" if more < 0 else values[1]
    over_ = f"{left} * {10**more}" if more > 0 else left
    return code.within(code.unless_null([left, values[1]], f"divide({over_}, {under_})"), to)


def _comparison(code: _Scalar, node: Typed, values: list[str]) -> str:
    _must_be_alike(node)
    if "boolean" in node.operands and node.name not in ("=", "<>"):
        raise _unsupported(node)
    left, right = values
    return code.unless_null(values, f"{left} {_COMPARED[node.name]} {right}")


def _null_safe(sign: str) -> _Make:
    def make(code: _Scalar, node: Typed, values: list[str]) -> str:
        _must_be_alike(node)
        return code.assigned(f"{values[0]} {sign} {values[1]}")

    return make


def _membership(code: _Scalar, node: Typed, values: list[str]) -> str:
    _must_be_alike(node)
    value, *others = values
    found = code.assigned(f"{value} in ({', '.join(others)},)")
    unknown = code.assigned(f"None in ({', '.join(others)},)")
    return code.assigned(
        f"None if {value} is None else True if {found} else None if {unknown} else False"
    )


def _and(code: _Scalar, _node: Typed, values: list[str]) -> str:
    false = " or ".join(f"{value} is False" for value in values)
    unknown = " or ".join(f"{value} is None" for value in values)
    return code.assigned(f"False if {false} else None if {unknown} else True")


def _or(code: _Scalar, _node: Typed, values: list[str]) -> str:
    true = " or ".join(f"{value} is True" for value in values)
    unknown = " or ".join(f"{value} is None" for value in values)
    return code.assigned(f"True if {true} else None if {unknown} else False")


def _not(code: _Scalar, _node: Typed, values: list[str]) -> str:
    return code.unless_null(values, f"not {values[0]}")


def _test(test: str) -> _Make:
    """A construct of one operand that is never NULL."""
    return lambda code, _node, values: code.assigned(f"{values[0]} {test}")


def _case(code: _Scalar, _node: Typed, values: list[str]) -> str:
    *pairs, default = values
    branches = zip(pairs[0::2], pairs[1::2], strict=True)
    chosen = " else ".join(f"{value} if {test}" for test, value in branches)
    return code.assigned(f"{chosen} else {default}")


def _coalesce(code: _Scalar, _node: Typed, values: list[str]) -> str:
    *first, last = values
    chosen = "".join(f"{value} if {value} is not None else " for value in first)
    return code.assigned(chosen + last)


def _date_part(part: str) -> _Make:
    def make(code: _Scalar, node: Typed, values: list[str]) -> str:
        if node.operands != ("date",) or node.type != "int":
            raise _unsupported(node)
        return code.unless_null(values, f"day({values[0]}).{part}")

    return make


def _must_be_alike(node: Typed) -> None:
    if len({*node.operands}) != 1 or not is_exact(node.operands[0]):
        raise _unsupported(node)


def _unsupported(node: Typed) -> Unsupported:
    return Unsupported(f"{node.name}({', '.join(node.operands)})")


CONSTRUCTS: dict[str, _Make] = {
    "+": _arithmetic,
    "-": _arithmetic,
    "*": _arithmetic,
    "/": _quotient,
    **dict.fromkeys(_COMPARED, _comparison),
    "<=>": _null_safe("=="),
    "is distinct from": _null_safe("!="),
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": _test("is None"),
    "is not null": _test("is not None"),
    "is true": _test("is True"),
    "is false": _test("is False"),
    "in": _membership,
    "case": _case,
    "coalesce": _coalesce,
    "year": _date_part("year"),
    "month": _date_part("month"),
    "day": _date_part("day"),
    "ev_avg_decimal": _average,
}
"""Per construct, what writes it."""


def divide(units: int, by: int) -> int:
    """A quotient rounded half away from zero.

    >>> divide(5, 2), divide(-5, 2), divide(4, 3)
    (3, -3, 1)
    """
    if by == 0:
        raise Unsupported("division by zero")
    size = (2 * abs(units) + abs(by)) // (2 * abs(by))
    return size if (units < 0) == (by < 0) else -size


def day(days: int) -> date:
    """A date by its days since 1970."""
    return date.fromordinal(days + _EPOCH_DAY)
