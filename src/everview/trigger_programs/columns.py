"""The columns of rows that trigger programs read: their types, and their values as Python's.

In a batch, a number is an int in units of its last digit, and a date is a number of days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.arguments import shown
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
_BITS: Mapping[Type, int] = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_ROUNDED = Context(prec=80)
"""Digits enough for every decimal that a column holds."""


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


def is_text(value: str) -> bool:
    """Whether a string is text: one with half of a surrogate pair is not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class BadValueError(ValueError):
    """What is wrong with a value of a column, as an error shows it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The schema of each relation, its columns that are never NULL, and how long texts may be."""

    schemas: Mapping[str, Schema]
    not_null: Mapping[str, frozenset[str]]
    lengths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def type(self, relation: str, at: int) -> Type:
        """The type of a column."""
        return self.schemas[relation][at].type

    def length(self, relation: str, at: int) -> int | None:
        """How many characters a text of a column may have."""
        return self.lengths.get(relation, {}).get(self.schemas[relation][at].name)

    def declared(self, relation: str, at: int) -> str:
        """The type of a column as it was declared."""
        length = self.length(relation, at)
        return self.type(relation, at).upper() if length is None else f"VARCHAR({length})"

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
        value = constant_value(bound)
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
        parts = decimal_parts(type_)
        if parts:
            unit = constant(Decimal(1).scaleb(-parts[1]))
            whole = constant(parts[0] - parts[1])
            tests = ["Decimal", f"{name}.same_quantum({unit})", f"{name}.adjusted() < {whole}"]
        elif type_ in INTEGERS:
            limit = 2 ** (_BITS[type_] - 1)
            tests = ["int", f"{constant(-limit)} <= {name} < {constant(limit)}"]
        elif type_ == "string":
            tests = ["str", f"({name}.isascii() or T({name}))"]
            length = self.length(relation, at)
            tests += [f"len({name}) <= {constant(length)}"] * (length is not None)
        else:
            tests = [{"boolean": "bool"}.get(type_, type_)]
        text = f"type({name}) is {' and '.join(tests)}"
        return f"({name} is None or {text})" if self.may_be_null(relation, at) else text

    def checked(self, relation: str, at: int, value: Any) -> Any:
        """A value as the column's are in maps; a BadValueError says what is wrong with it."""
        type_ = self.type(relation, at)
        if value is None:
            if self.may_be_null(relation, at):
                return None
            raise BadValueError("NULL")
        parts = decimal_parts(type_)
        if type_ in INTEGERS and type(value) is int:
            limit = 2 ** (_BITS[type_] - 1)
            if -limit <= value < limit:
                return value
        elif parts and type(value) in (int, Decimal):
            return _decimal(value, *parts)
        elif type_ == "string" and type(value) is str:
            return self._text(relation, at, value)
        elif type(value) is _PYTHON.get(type_):
            return value
        raise BadValueError(shown(value))

    def _text(self, relation: str, at: int, value: str) -> str:
        """A text that fits; blanks beyond its length are cut off, as in a stored table."""
        length = self.length(relation, at)
        if not is_text(value) or (length is not None and value[length:].strip(" ")):
            raise BadValueError(shown(value))
        return value[:length]

    def array(self, relation: str, at: int, values: list[Any]) -> pa.Array:
        """Values of Python as an Arrow column, exactly; else a BadValueError."""
        type_ = self.type(relation, at)
        kinds: set[Any] = {*map(type, values)} - {type(None)}
        allowed: set[Any] = {int} if type_ in INTEGERS else {_PYTHON.get(type_)}
        if decimal_parts(type_):
            allowed = {int, Decimal}
        try:
            if kinds <= allowed:
                return self.conform(relation, at, pa.array(values, arrow_type(type_)))
        except (pa.ArrowException, ValueError, OverflowError):
            pass
        # One of them is not as it should be, or must be changed first.
        found = [self.checked(relation, at, each) for each in values]
        return pa.array(found, arrow_type(type_))

    def conform(self, relation: str, at: int, column: pa.Array) -> pa.Array:
        """An Arrow column as one of the declared type; else a BadValueError."""
        wanted = arrow_type(self.type(relation, at))
        try:
            column.validate(full=True)
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            if column.type != wanted:
                both_text = pa.types.is_string(wanted) and _is_text(column.type)
                alike = both_text or _kind(column.type) == _kind(wanted)
                if not alike and not pa.types.is_null(column.type):
                    raise BadValueError(f"values of the Arrow type {column.type}")
                column = column.cast(wanted, safe=True)
            fits = not pa.types.is_date32(wanted) or _in_calendar(column)
        except (pa.ArrowException, OverflowError):
            fits = False
        if not fits:
            raise BadValueError("values that do not fit")
        if column.null_count and not self.may_be_null(relation, at):
            raise BadValueError("NULL")
        length = self.length(relation, at)
        if length is None or not pc.any(pc.greater(pc.utf8_length(column), length)).as_py():
            return column
        bare = pc.utf8_length(pc.utf8_rtrim(column, " "))
        if len(long := column.filter(pc.greater(bare, length))):
            raise BadValueError(shown(long[0].as_py()))
        return pc.utf8_slice_codeunits(column, 0, length)


def _decimal(value: int | Decimal, precision: int, scale: int) -> Decimal:
    """A number with exactly so many decimal places."""
    exact = Decimal(value)
    if exact.is_finite() and (not exact or exact.adjusted() < precision - scale):
        fitted = exact.quantize(Decimal(1).scaleb(-scale), context=_ROUNDED)
        if fitted == exact:
            return fitted
    raise BadValueError(shown(value))


def _in_calendar(column: pa.Array) -> bool:
    """Whether all dates are those of the years 1 to 9999."""
    found = pc.min_max(column.view(pa.int32()))
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or days(date.min) <= least <= most <= days(date.max)


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
        return [None if v is None else int(v.scaleb(scale, EXACT)) for v in column.to_pylist()]
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    plain: list[Any] = column.to_pylist()
    return plain


def constant_value(query: Expr) -> Fraction | date | None:
    """The value of an expression of constants."""
    match query:
        case Constant(int() | Decimal() as value):
            return Fraction(value)
        case Constant(date() as value):
            return value
        case Negate(body):
            inner = constant_value(body)
            return -inner if isinstance(inner, Fraction) else None
        case Add(parts) | Product(parts):
            found = [constant_value(each) for each in parts]
            total = Fraction(0 if isinstance(query, Add) else 1)
            for each in found:
                if not isinstance(each, Fraction):
                    return None
                total = total + each if isinstance(query, Add) else total * each
            return total
        case _:
            return None
