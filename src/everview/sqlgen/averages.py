"""The mean of a group from its exact total and count, equal to the bit on both engines."""

from __future__ import annotations

from everview.expr.types import Type
from everview.sqlgen.parity.decimals import half_up, power_of_ten, scaled, unscaled

_HALF_RANGE = 2**63
"""A total splits into high * 2⁶³ + low with both parts a bigint, so each converts alike."""

MAX_AVERAGED_PRECISION = 20


def average_double_duckdb(total: str, count: str) -> str:
    """The mean as a double: each part rounds once, then IEEE operations in a fixed order."""
    high = f"CAST(CAST(CAST({total} AS HUGEINT) // {_HALF_RANGE}::HUGEINT AS BIGINT) AS DOUBLE)"
    low = f"CAST(CAST(CAST({total} AS HUGEINT) % {_HALF_RANGE}::HUGEINT AS BIGINT) AS DOUBLE)"
    whole = f"({high} * CAST({_HALF_RANGE} AS DOUBLE) + {low})"
    return f"CASE WHEN {count} <> 0 THEN {whole} / CAST({count} AS DOUBLE) END"


def average_double_spark(total: str, count: str) -> str:
    """As on DuckDB: the same parts in the same order."""
    whole = f"CAST({total} AS DECIMAL(38,0))"
    high = f"CAST({whole} DIV {_HALF_RANGE} AS DOUBLE)"
    low = f"CAST(CAST({whole} % {_HALF_RANGE} AS BIGINT) AS DOUBLE)"
    mean = f"({high} * CAST({_HALF_RANGE} AS DOUBLE) + {low}) / CAST({count} AS DOUBLE)"
    return f"CASE WHEN {count} <> 0 THEN {mean} END"


def average_decimal_duckdb(total: str, count: str, scale: int, to: Type) -> str:
    """The mean rounded half up to four more digits than the values have."""
    digits = f"({unscaled(total, f'decimal(38,{scale})')} * {power_of_ten(4)})"
    mean = scaled(half_up(digits, f"CAST({count} AS HUGEINT)"), to)
    return f"CASE WHEN {count} <> 0 THEN {mean} END"


def average_decimal_spark(total: str, count: str, precision: int, scale: int) -> str:
    """As Spark's avg: q + (2·|r| ≥ n) with q, r the whole quotient and remainder of the digits.

    Every step is exact in decimal(38,0): the dividend of the only division is a multiple of n.
    An exponent written behind the digits moves the point without a product's loss of scale.
    """
    digits = f"CAST(CONCAT(CAST({total} AS STRING), 'E{scale + 4}') AS DECIMAL(38,0))"
    under = f"CAST({count} AS DECIMAL(20,0))"
    rest = f"({digits} % {under})"
    quotient = f"CAST(({digits} - {rest}) / {under} AS DECIMAL({precision + 4},0))"
    up = f"CASE WHEN 2 * ABS({rest}) >= {under} THEN CAST(SIGN({rest}) AS INT) ELSE 0 END"
    mean = f"CONCAT(CAST({quotient} + {up} AS STRING), 'E-{scale + 4}')"
    result = f"DECIMAL({precision + 4},{scale + 4})"
    return f"CASE WHEN {count} <> 0 THEN CAST({mean} AS {result}) END"
