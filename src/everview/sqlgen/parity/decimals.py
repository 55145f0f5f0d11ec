"""Exact decimal arithmetic on DuckDB: how Spark's result is computed in 128 bits, or refused."""

from __future__ import annotations

from everview.expr.coercion import MAX_PRECISION, drops_digits
from everview.expr.types import Type, precision_and_scale
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.types import spark_type_to_duckdb


def sum_or_difference(symbol: str, left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left ± right for decimals, where the result keeps every digit of the operands."""
    scale = precision_and_scale(to)[1]
    too_wide = any(p - s + scale > MAX_PRECISION for p, s in map(precision_and_scale, types))
    if too_wide or drops_digits(symbol, types, to):
        raise NotAtParity(f"{types[0]} {symbol} {types[1]}", "the result drops digits")
    return f"CAST(({left} {symbol} {right}) AS {spark_type_to_duckdb(to)})"


def product(left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left * right for decimals; widened first, since DuckDB stops at 18 digits for small ones."""
    if drops_digits("*", types, to):
        raise NotAtParity(f"{types[0]} * {types[1]}", "the result drops digits")
    precision, scale = precision_and_scale(types[0])
    wide = f"CAST({left} AS DECIMAL({max(precision, 19)},{scale}))"
    return f"CAST(({wide} * {right}) AS {spark_type_to_duckdb(to)})"


def quotient(left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left / right for decimals, on the unscaled values; raises where 38 digits are too few."""
    shift = _shift(types, to)
    if shift < 0:
        raise NotAtParity(f"{types[0]} / {types[1]}", "the quotient drops digits")
    over = f"({unscaled(left, types[0])} * {power_of_ten(shift)})"
    if not _fits(types, shift):
        over = f"CAST(CAST({over} AS DECIMAL(38,0)) AS HUGEINT)"
    return scaled(half_up(over, unscaled(right, types[1])), to)


def require_fit(types: tuple[Type, ...], to: Type) -> None:
    """Refuse a quotient that may need more than 38 digits on the way, where Spark needs none."""
    shift = _shift(types, to)
    if not _fits(types, shift):
        raise NotAtParity(f"{types[0]} / {types[1]}", "the quotient needs more than 128 bits")


def _shift(types: tuple[Type, ...], to: Type) -> int:
    """How many digits the unscaled dividend is moved, for a quotient of the result's scale."""
    over, under, result = (precision_and_scale(type_)[1] for type_ in (*types, to))
    return result - over + under


def _fits(types: tuple[Type, ...], shift: int) -> bool:
    return precision_and_scale(types[0])[0] + shift <= 38 and precision_and_scale(types[1])[0] <= 37


def half_up(over: str, under: str) -> str:
    """over / under for HUGEINT, rounded half away from zero; raises where under is zero.

    Spark rounds the quotient to 39 significant digits first. That cannot reach a tie: a quotient
    that is none is further from it than 1 / (2 · over), relatively, and over has 38 digits.
    """
    tie = f"2 * abs({over} % {under}) >= abs({under})"
    return f"({over} // {under} + CASE WHEN {tie} THEN sign({over}) * sign({under}) ELSE 0 END)"


def unscaled(sql: str, type_: Type) -> str:
    """The digits of a decimal as a HUGEINT."""
    precision, scale = precision_and_scale(type_)
    if scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    if precision + scale <= 38:
        shifted = f"CAST({sql} AS DECIMAL(38,{scale})) * CAST({10**scale} AS DECIMAL(38,0))"
        return f"CAST({shifted} AS HUGEINT)"
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled(sql: str, to: Type) -> str:
    """The decimal whose digits are a HUGEINT."""
    scale = precision_and_scale(to)[1]
    target = spark_type_to_duckdb(to)
    whole = f"CAST({sql} AS DECIMAL(38,0))"
    if scale == 0:
        return f"CAST({whole} AS {target})"
    unit = f"CAST('0.{'1':0>{scale}}' AS DECIMAL({scale},{scale}))"
    return f"CAST(({whole} * {unit}) AS {target})"


def power_of_ten(exponent: int) -> str:
    """10ⁿ as a HUGEINT."""
    return f"{10**exponent}::HUGEINT"
