"""The columns of rows that trigger programs read: their types, and their values as Python's.

In a batch, a number is an int in units of its last digit, and a date is a number of days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.expr.types import INT64_DIGITS, INTEGERS, Schema, Type, decimal_parts
from everview.lang.agca.syntax import (
    Add,
    Atom,
    Constant,
    Expr,
    Negate,
    Product,
    Variable,
    walk,
)

Ints: TypeAlias = npt.NDArray[np.int64]
_EPOCH = date(1970, 1, 1).toordinal()
_ARROW: Mapping[Type, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "boolean": pa.bool_(),
}
_PYTHON: Mapping[Type, type] = {"string": str, "date": date, "boolean": bool}


EXACT = Context(prec=2000, traps=[Inexact, InvalidOperation, Overflow, Clamped])
"""Sums and products of decimals keep all of their digits."""


class _Dates(dict[int, date]):
    """Dates by their number of days since 1970, made when they are first asked for."""

    def __missing__(self, days: int) -> date:
        made = self[days] = date.fromordinal(days + _EPOCH)
        return made


DATES = _Dates()


def days(day: date) -> int:
    """The number of days since 1970."""
    return day.toordinal() - _EPOCH


def unscaled_decimal(units: int, scale: int) -> Decimal:
    """The decimal of so many units of its last digit; the context must be exact.

    >>> unscaled_decimal(1250, 2)
    Decimal('12.50')
    """
    return Decimal(units).scaleb(-scale)


def arrow_type(type_: Type) -> pa.DataType | None:
    """The type of a column in batches; None for a type that programs do not read."""
    parts = decimal_parts(type_)
    return pa.decimal128(*parts) if parts else _ARROW.get(type_)


@dataclass(frozen=True, slots=True)
class Columns:
    """The schema of each relation, and its columns that are never NULL."""

    schemas: Mapping[str, Schema]
    not_null: Mapping[str, frozenset[str]]

    def type(self, relation: str, at: int) -> Type:
        """The type of a column."""
        return self.schemas[relation][at].type

    def may_be_null(self, relation: str, at: int) -> bool:
        """Whether a column may be NULL."""
        return self.schemas[relation][at].name not in self.not_null[relation]

    def has_units(self, relation: str, at: int) -> bool:
        """Whether a column is a number or a date, and so an int in batches."""
        type_ = self.type(relation, at)
        return type_ == "date" or type_ in INTEGERS or decimal_parts(type_) is not None

    def scale(self, relation: str, at: int) -> int:
        """How many decimal places a column has."""
        parts = decimal_parts(self.type(relation, at))
        return parts[1] if parts else 0

    def is_date(self, relation: str, at: int) -> bool:
        """Whether a column is a date."""
        return self.type(relation, at) == "date"

    def fits_int64(self, relation: str, at: int) -> bool:
        """Whether all values of a column, in units, have 64 bits."""
        parts = decimal_parts(self.type(relation, at))
        return parts is None or parts[0] <= INT64_DIGITS

    def is_integral(self, body: Expr) -> bool:
        """Whether all values of a map with this meaning are whole numbers."""
        decimals = {
            argument.name
            for atom in walk(body)
            if isinstance(atom, Atom)
            for at, argument in enumerate(atom.arguments)
            if isinstance(argument, Variable) and self.scale(atom.relation, at)
        }
        return not any(
            each.name in decimals
            if isinstance(each, Variable)
            else isinstance(each, Constant) and isinstance(each.value, Decimal)
            for each in walk(body)
        )

    def units(self, relation: str, at: int, bound: Expr) -> int | None:
        """A constant in the units of a column; None if it is not a whole number of them."""
        value = _folded(bound)
        if isinstance(value, date):
            return days(value) if self.is_date(relation, at) else None
        if value is None or self.is_date(relation, at):
            return None
        units = value * 10 ** self.scale(relation, at)
        fits = units.denominator == 1 and abs(units) < 2**63
        return units.numerator if fits else None

    def test(self, relation: str, at: int, name: str, constant: Callable[[Any], str]) -> str:
        """The test, as Python, that a value is as the column's are in maps."""
        type_ = self.type(relation, at)
        kind = (
            "int" if type_ in INTEGERS else {"string": "str", "boolean": "bool"}.get(type_, type_)
        )
        if decimal_parts(type_):
            unit = constant(Decimal(1).scaleb(-self.scale(relation, at)))
            kind = f"Decimal and {name}.same_quantum({unit})"
        text = f"type({name}) is {kind}"
        return f"({name} is None or {text})" if self.may_be_null(relation, at) else text

    def checked(self, relation: str, at: int, value: Any) -> Any:
        """A value as the column's are in maps; a ValueError says what is wrong with it."""
        type_ = self.type(relation, at)
        if value is None:
            if self.may_be_null(relation, at):
                return None
            raise ValueError("NULL")
        parts = decimal_parts(type_)
        if type_ in INTEGERS and type(value) is int:
            limit = pa.array([value], arrow_type(type_))
            return limit[0].as_py()
        if parts and type(value) in (int, Decimal):
            found = pa.scalar(Decimal(value), pa.decimal128(*parts))
            return found.as_py()
        if type(value) is _PYTHON.get(type_):
            return value
        raise ValueError(f"a {type(value).__name__}")

    def array(self, relation: str, at: int, values: list[Any]) -> pa.Array:
        """Values of Python as an Arrow column, exactly; else a ValueError or TypeError."""
        type_ = self.type(relation, at)
        kinds: set[Any] = {*map(type, values)} - {type(None)}
        allowed: set[Any] = {int} if type_ in INTEGERS else {_PYTHON.get(type_)}
        if decimal_parts(type_):
            allowed = {int, Decimal}
        if not kinds <= allowed:
            raise TypeError(f"a {min(each.__name__ for each in kinds - allowed)}")
        return self.conform(relation, at, pa.array(values, arrow_type(type_)))

    def conform(self, relation: str, at: int, column: pa.Array) -> pa.Array:
        """An Arrow column as one of the declared type; else a ValueError or TypeError."""
        wanted = arrow_type(self.type(relation, at))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if column.type != wanted:
            both_text = pa.types.is_string(wanted) and _is_text(column.type)
            same = _kind(column.type) == _kind(wanted) or both_text or pa.types.is_null(column.type)
            if not same:
                raise TypeError(f"a {column.type}")
            column = column.cast(wanted, safe=True)
        if column.null_count and not self.may_be_null(relation, at):
            raise ValueError("NULL")
        return column


def _is_text(type_: pa.DataType) -> bool:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(
        test(inner)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _kind(type_: pa.DataType) -> str:
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return "number"
    return "date" if pa.types.is_date32(type_) else str(type_)


def integers(column: pa.Array) -> Ints | None:
    """An Arrow column without NULL in units; None for texts, and numbers beyond 64 bits."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        if type_.precision > INT64_DIGITS:
            return None
        words = np.frombuffer(column.buffers()[1], np.int64)
        low: Ints = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
        return low
    if pa.types.is_date32(type_):
        since_1970: Ints = column.view(pa.int32()).to_numpy().astype(np.int64)
        return since_1970
    if pa.types.is_integer(type_):
        found: Ints = column.to_numpy().astype(np.int64)
        return found
    return None


def values(column: pa.Array) -> list[Any]:
    """The values of an Arrow column as Python's, numbers and dates in units."""
    if not column.null_count and (found := integers(column)) is not None:
        listed: list[Any] = found.tolist()
        return listed
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        return [None if v is None else int(v.scaleb(scale)) for v in column.to_pylist()]
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    plain: list[Any] = column.to_pylist()
    return plain


def _folded(query: Expr) -> Fraction | date | None:
    """The value of an expression of constants."""
    match query:
        case Constant(int() | Decimal() as value):
            return Fraction(value)
        case Constant(date() as value):
            return value
        case Negate(body):
            inner = _folded(body)
            return -inner if isinstance(inner, Fraction) else None
        case Add(parts) | Product(parts):
            found = [_folded(each) for each in parts]
            total = Fraction(0 if isinstance(query, Add) else 1)
            for each in found:
                if not isinstance(each, Fraction):
                    return None
                total = total + each if isinstance(query, Add) else total * each
            return total
        case _:
            return None
