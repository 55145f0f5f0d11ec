"""Decimals on Arrow columns, exact: a result that does not fit is an Arrow error, never wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import Type, decimal_parts
from everview.runtime.vector.batches import FEW
from everview.runtime.vector.errors import Unsupported

DIGITS = 38
"""What an Arrow decimal of 128 bits holds; twice as many in one of 256."""
_DIVIDED = 36
"""Digits of operands whose quotient, with all that rounding needs, fits 256 bits."""


def parts(type_: Type) -> tuple[int, int]:
    """Precision and scale of a type known to be decimal."""
    found = decimal_parts(type_)
    assert found is not None, type_
    return found


def total(operation: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """A sum or difference whose result keeps every digit of the operands."""

    def make(site: Any) -> Callable[..., Any]:
        (p1, s1), (p2, s2), (_, scale) = map(parts, (*site.types, site.result))
        if max(s1, s2) > scale:
            raise Unsupported("the result drops digits")
        digits = max(p1 - s1, p2 - s2) + max(s1, s2) + 1
        return _exact(operation, site.types, digits, site.result)

    return make


def product(site: Any) -> Callable[..., Any]:
    """A product whose result keeps every digit."""
    (p1, s1), (p2, s2), (_, scale) = map(parts, (*site.types, site.result))
    if scale != s1 + s2:
        raise Unsupported("the result drops digits")
    return _exact(pc.multiply, site.types, p1 + p2 + 1, site.result)


def _exact(
    operation: Callable[..., Any], types: tuple[Type, ...], digits: int, to: Type
) -> Callable[..., Any]:
    target = pa.decimal128(*parts(to))
    if digits <= DIGITS:
        return lambda left, right: _as(operation(left, right), target)
    if digits > 2 * DIGITS:
        raise Unsupported("too many digits")
    wide = [pa.decimal256(*parts(type_)) for type_ in types]

    def compute(left: Any, right: Any) -> Any:
        return pc.cast(operation(pc.cast(left, wide[0]), pc.cast(right, wide[1])), target)

    return compute


def _as(values: Any, target: pa.DataType) -> Any:
    return values if values.type == target else pc.cast(values, target)


def quotient(types: tuple[Type, ...], to: Type) -> Callable[..., Any]:
    """A quotient rounded half away from zero; Arrow raises where the divisor is zero.

    Arrow cuts a quotient off after s₁ + p₂ − s₂ + 1 digits behind the point. A quotient that is no
    tie is further from it than the last of these, so rounding what is left is rounding the
    quotient.
    """
    (p1, s1), (p2, s2), (_, scale) = map(parts, (*types, to))
    under = pa.decimal256(min(p2, _DIVIDED), s2)
    moved = max(s1, scale + s2 - under.precision)
    over = pa.decimal256(min(p1 + moved - s1, 2 * DIGITS), moved)
    made = max(4, moved + under.precision - s2 + 1)
    over = pa.decimal256(min(over.precision, 2 * DIGITS - made - s2 + moved), moved)
    if made <= scale or over.precision <= moved:
        raise Unsupported("too many digits")
    target = pa.decimal128(*parts(to))

    def compute(left: Any, right: Any) -> Any:
        found = pc.divide(pc.cast(left, over), pc.cast(right, under))
        return pc.cast(pc.round(found, ndigits=scale, round_mode="half_towards_infinity"), target)

    return compute


_SHORT = 24
"""Digits of values that can be added up some ten thousand times, nine digits each, in 128 bits."""


def times(values: pa.Array, weights: pa.Array) -> pa.Array:
    """Each number as often as its weight says, as a decimal with room for a sum of many."""
    if pa.types.is_integer(values.type):
        values = pc.cast(pc.cast(values, pa.int64()), pa.decimal128(19, 0))
    if values.type.precision <= _SHORT and len(values) <= FEW:
        short = pc.cast(pc.cast(weights, pa.decimal128(19, 0)), pa.decimal128(9, 0))
        return pc.multiply(values, short)
    wide = pa.decimal256(values.type.precision, values.type.scale)
    return pc.multiply(pc.cast(values, wide), pc.cast(weights, pa.decimal256(19, 0)))
