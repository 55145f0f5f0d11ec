"""Decimal arithmetic on Arrow columns, exact: a result that does not fit is an Arrow error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.coercion import MAX_PRECISION, drops_digits, exact_decimal
from everview.expr.type_inference import Typed
from everview.expr.types import Type, precision_and_scale
from everview.runtime.vector.batches import VECTOR_MAX_ROWS
from everview.runtime.vector.errors import Unsupported

_MAX_DIVIDED_DIGITS = 36
"""Digits of operands whose quotient, with all that rounding needs, fits 256 bits."""


def exact(node: Typed, operation: Callable[..., Any]) -> Callable[..., Any]:
    """A sum, difference or product whose result type keeps every digit."""
    left, right = map(precision_and_scale, node.operands)
    if drops_digits(node.name, node.operands, node.type or ""):
        raise Unsupported("the result drops digits")
    digits, _ = exact_decimal(node.name, left, right)
    target = pa.decimal128(*precision_and_scale(node.type or ""))
    if digits <= MAX_PRECISION:
        return lambda a, b: _as(operation(a, b), target)
    if digits > 2 * MAX_PRECISION:
        raise Unsupported("too many digits")
    wide = pa.decimal256(*left), pa.decimal256(*right)

    def compute(a: Any, b: Any) -> Any:
        return pc.cast(operation(pc.cast(a, wide[0]), pc.cast(b, wide[1])), target)

    return compute


def _as(values: Any, target: pa.DataType) -> Any:
    return values if values.type == target else pc.cast(values, target)


def quotient(types: tuple[Type, ...], to: Type) -> Callable[..., Any]:
    """A quotient rounded half away from zero; Arrow raises where the divisor is zero.

    Arrow cuts a quotient off after s₁ + p₂ − s₂ + 1 digits behind the point. A quotient that is no
    tie is further from it than the last of these, so rounding what is left is rounding the
    quotient.
    """
    over, under = quotient_operands(types, to)
    precision, scale = precision_and_scale(to)
    target = pa.decimal128(precision, scale)

    def compute(left: Any, right: Any) -> Any:
        digits = pc.divide(pc.cast(left, over), pc.cast(right, under))
        rounded = pc.round(digits, ndigits=scale, round_mode="half_towards_infinity")
        return pc.cast(rounded, target)

    return compute


def quotient_operands(
    types: tuple[Type, ...], to: Type
) -> tuple[pa.Decimal256Type, pa.Decimal256Type]:
    """The types of dividend and divisor with which a quotient is computed; they must fit those."""
    (p1, s1), (p2, s2), (_, scale) = map(precision_and_scale, (*types, to))
    under = pa.decimal256(min(p2, _MAX_DIVIDED_DIGITS), s2)
    moved = max(s1, scale + s2 - under.precision)
    over = pa.decimal256(min(p1 + moved - s1, 2 * MAX_PRECISION), moved)
    quotient_scale = max(4, moved + under.precision - s2 + 1)
    over = pa.decimal256(
        min(over.precision, 2 * MAX_PRECISION - quotient_scale - s2 + moved), moved
    )
    if quotient_scale <= scale or over.precision <= moved:
        raise Unsupported("too many digits")
    return over, under


_SUMMABLE_DIGITS = 24
"""24 digits times a weight of nine, summed over VECTOR_MAX_ROWS, need 38: a decimal128 holds it."""


def times_weights(values: pa.Array, weights: pa.Array) -> pa.Array:
    """Each number times its weight, as a decimal with room for the sum of all of them."""
    if pa.types.is_integer(values.type):
        values = pc.cast(pc.cast(values, pa.int64()), pa.decimal128(19, 0))
    if values.type.precision <= _SUMMABLE_DIGITS and len(values) <= VECTOR_MAX_ROWS:
        short = pc.cast(pc.cast(weights, pa.decimal128(19, 0)), pa.decimal128(9, 0))
        return pc.multiply(values, short)
    wide = pa.decimal256(values.type.precision, values.type.scale)
    return pc.multiply(pc.cast(values, wide), pc.cast(weights, pa.decimal256(19, 0)))
