"""Arithmetic with Spark's results on DuckDB: exact decimals, guarded division, half-up averages."""

from __future__ import annotations

from everview.expr.types import Type, decimal_parts
from everview.sqlgen.parity.type_classes import NotEqual, raised
from everview.sqlgen.types import spark_type_to_duckdb


def parts(type_: Type) -> tuple[int, int]:
    """Precision and scale of a type known to be decimal."""
    found = decimal_parts(type_)
    assert found is not None, type_
    return found


def sum_or_difference(symbol: str, left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left ± right for decimals, where the result keeps every digit of the operands."""
    scale = parts(to)[1]
    for precision, own in map(parts, types):
        if own > scale or precision - own + scale > 38:
            raise NotEqual(f"{types[0]} {symbol} {types[1]}", "the result drops digits")
    return f"CAST(({left} {symbol} {right}) AS {spark_type_to_duckdb(to)})"


def product(left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left * right for decimals; widened first, since DuckDB stops at 18 digits for small ones."""
    (p1, s1), (_, s2) = map(parts, types)
    if parts(to)[1] != s1 + s2:
        raise NotEqual(f"{types[0]} * {types[1]}", "the result drops digits")
    wide = f"CAST({left} AS DECIMAL({max(p1, 19)},{s1}))"
    return f"CAST(({wide} * {right}) AS {spark_type_to_duckdb(to)})"


def quotient(left: str, right: str, types: tuple[Type, ...], to: Type) -> str:
    """left / right for decimals, on the unscaled values; raises where 38 digits are too few."""
    shift = parts(to)[1] - parts(types[0])[1] + parts(types[1])[1]
    if shift < 0:
        raise NotEqual(f"{types[0]} / {types[1]}", "the quotient drops digits")
    over = f"({unscaled(left, types[0])} * {power_of_ten(shift)})"
    if not _fits(types, shift):
        over = f"CAST(CAST({over} AS DECIMAL(38,0)) AS HUGEINT)"
    return scaled(half_up(over, unscaled(right, types[1])), to)


def must_fit(types: tuple[Type, ...], to: Type) -> None:
    """Refuse a quotient that may need more than 38 digits on the way, where Spark needs none."""
    shift = parts(to)[1] - parts(types[0])[1] + parts(types[1])[1]
    if not _fits(types, shift):
        raise NotEqual(f"{types[0]} / {types[1]}", "the quotient needs more than 128 bits")


def _fits(types: tuple[Type, ...], shift: int) -> bool:
    return parts(types[0])[0] + shift <= 38 and parts(types[1])[0] <= 37


def half_up(over: str, under: str) -> str:
    """over / under for HUGEINT, rounded half away from zero; raises where under is zero.

    Spark rounds the quotient to 39 significant digits first. That cannot reach a tie: a quotient
    that is none is further from it than 1 / (2 · over), relatively, and over has 38 digits.
    """
    tie = f"2 * abs({over} % {under}) >= abs({under})"
    return f"({over} // {under} + CASE WHEN {tie} THEN sign({over}) * sign({under}) ELSE 0 END)"


def unscaled(sql: str, type_: Type) -> str:
    """The digits of a decimal as a HUGEINT."""
    precision, scale = parts(type_)
    if scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    if precision + scale <= 38:
        shifted = f"CAST({sql} AS DECIMAL(38,{scale})) * CAST({10**scale} AS DECIMAL(38,0))"
        return f"CAST({shifted} AS HUGEINT)"
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled(sql: str, to: Type) -> str:
    """The decimal whose digits are a HUGEINT."""
    scale = parts(to)[1]
    target = spark_type_to_duckdb(to)
    whole = f"CAST({sql} AS DECIMAL(38,0))"
    if scale == 0:
        return f"CAST({whole} AS {target})"
    unit = f"CAST('0.{'1':0>{scale}}' AS DECIMAL({scale},{scale}))"
    return f"CAST(({whole} * {unit}) AS {target})"


def power_of_ten(exponent: int) -> str:
    """10ⁿ as a HUGEINT."""
    return f"{10**exponent}::HUGEINT"


def wrapped(sql: str, bits: int) -> str:
    """A HUGEINT as an integer of so many bits holds it, without a check."""
    half = f"{2 ** (bits - 1)}::HUGEINT"
    return f"(((({sql}) + {half}) & {2**bits - 1}::HUGEINT) - {half})"


def guarded(over: str, under: str, symbol: str, to: Type) -> str:
    """over / under or over % under for doubles: zero raises, unless the other side is NULL."""
    test = f"{under} = 0 AND {over} IS NOT NULL"
    failure = raised("DIVIDE_BY_ZERO", under, spark_type_to_duckdb(to))
    return f"CASE WHEN {test} THEN {failure} ELSE ({over} {symbol} {under}) END"
