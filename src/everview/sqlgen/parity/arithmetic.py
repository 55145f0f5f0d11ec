"""Which operators and functions of numbers give Spark's answer on DuckDB, and their SQL there."""

from __future__ import annotations

from collections.abc import Callable

from everview.expr.types import Type, precision_and_scale
from everview.sqlgen import averages
from everview.sqlgen.parity import decimals
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising
from everview.sqlgen.types import spark_type_to_duckdb

STRICT = "ev_strict_"
"""Prefix of the functions that an engine has to define in DuckDB: Java's StrictMath."""


def _exact(operation: Callable[[str, str, tuple[Type, ...], Type], str]) -> Callable[[Site], str]:
    return lambda site: operation(site.args[0], site.args[1], site.types, site.result)


def _decimal_sum(site: Site) -> str:
    left, right = site.args
    return decimals.sum_or_difference(site.name, left, right, site.types, site.result)


def _division(symbol: str) -> Callable[[Site], str]:
    """Division of doubles, without a guard where the divisor is a literal that is not zero."""

    def spell(site: Site) -> str:
        left, right = site.args
        if site.literals[1] is not None and float(site.literals[1]) != 0:
            return f"({left} {symbol} {right})"
        return _guarded(left, right, symbol, site.result)

    return spell


def _integer_remainder(site: Site) -> str:
    """The smallest integer % -1 is 0; DuckDB raises."""
    left, right = site.args
    if site.literals[1] is not None and int(site.literals[1]) != -1:
        return f"({left} % {right})"
    return f"CASE WHEN {right} = -1 THEN {left} - {left} ELSE ({left} % {right}) END"


def _decimal_remainder(site: Site) -> str:
    left, right = map(precision_and_scale, site.types)
    if max(left[0] - left[1], right[0] - right[1]) + max(left[1], right[1]) > 38:
        raise NotAtParity(f"{site.types[0]} % {site.types[1]}", "needs more than 38 digits")
    return f"CAST(({site.args[0]} % {site.args[1]}) AS {spark_type_to_duckdb(site.result)})"


def _decimal_whole_quotient(site: Site) -> str:
    (p1, s1), (p2, s2) = map(precision_and_scale, site.types)
    scale = max(s1, s2)
    if p1 - s1 + s2 > 18 or p1 - s1 + scale > 38 or p2 - s2 + scale > 38:
        raise NotAtParity(f"{site.types[0]} DIV {site.types[1]}", "may not fit a bigint")
    over, under = (
        f"({decimals.unscaled(arg, type_)} * {decimals.power_of_ten(scale - own)})"
        for arg, type_, own in zip(site.args, site.types, (s1, s2), strict=True)
    )
    return f"CAST({over} // {under} AS BIGINT)"


def _round_double(site: Site) -> str:
    """On the digits Java prints; beyond 15 of them those may differ, and we raise."""
    value = site.args[0]
    digits = int(site.literals[1] or 0) if len(site.args) == 2 else 0
    if not 0 <= digits <= 9:
        raise NotAtParity(f"{site.name}(double, {digits})")
    rounded = f"{_ROUND[site.name]}(CAST(CAST({value} AS VARCHAR) AS DECIMAL(38,18)), {digits})"
    failure = raising("MORE_THAN_15_DIGITS", value, "DOUBLE")
    return (
        f"CASE WHEN isnan({value}) OR isinf({value}) THEN {value} "
        f"WHEN abs({value}) < 1e{15 - digits} THEN CAST(CAST({rounded} AS VARCHAR) AS DOUBLE) "
        f"ELSE {failure} END"
    )


def _from_base(site: Site) -> str:
    """DuckDB reads the digits after 0x and 0b; none are zero."""
    mark = {"2": "0b0", "16": "0x0"}[site.literals[1] or ""]
    return f"CAST(CAST('{mark}' || {site.args[0]} AS UBIGINT) AS DECIMAL(20,0))"


def _average_double(site: Site) -> str:
    return averages.average_double_duckdb(site.args[0], site.args[1])


def _average_decimal(site: Site) -> str:
    precision, scale = (int(literal or -1) for literal in site.literals[2:])
    if precision > averages.MAX_AVERAGED_PRECISION:
        raise NotAtParity(f"avg(decimal({precision},{scale}))", "needs more than 128 bits")
    return averages.average_decimal_duckdb(site.args[0], site.args[1], scale, site.result)


def _round_decimal(site: Site) -> str:
    digits = site.literals[1] if len(site.args) == 2 else "0"
    rounded = f"{_ROUND[site.name]}({site.args[0]}, {digits})"
    return f"CAST({rounded} AS {spark_type_to_duckdb(site.result)})"


def _round_integer(site: Site) -> str:
    """Integers change only where digits before the point are asked for."""
    if int(site.literals[1] or 0) >= 0:
        return site.args[0]
    if site.name == "bround":
        raise NotAtParity(f"bround({site.types[0]}, {site.literals[1]})")
    return f"round({', '.join(site.args)})"


def _whole_at_scale(site: Site) -> str:
    """floor and ceil of a decimal at a scale, on the digits that stay."""
    (precision, scale), digits = precision_and_scale(site.types[0]), int(site.literals[1] or 0)
    if digits >= scale:
        return f"CAST({site.args[0]} AS {spark_type_to_duckdb(site.result)})"
    if digits < 0 or precision + digits > 38:
        raise NotAtParity(f"{site.name}({site.types[0]}, {digits})")
    wide = f"CAST({site.args[0]} AS DECIMAL(38,{scale}))"
    moved = f"{wide} * CAST({10**digits} AS DECIMAL({digits + 1},0))"
    return decimals.scaled(f"CAST({site.name}({moved}) AS HUGEINT)", site.result)


def _moved_up(rest: str, under: str) -> str:
    """pmod from a remainder, which is written once: where it raises, a copy would raise early."""
    return f"(({rest} + CASE WHEN {under} > 0 THEN {under} ELSE 0 END) % {under})"


def _pmod_integer(site: Site) -> str:
    """Spark's sum of two large negative numbers wraps around; there we raise."""
    left, right = (f"CAST({arg} AS HUGEINT)" for arg in site.args)
    bits = {"int": 32, "bigint": 64}.get(site.types[0])
    if bits and site.literals[1] is None:
        failure = raising("SUM_WRAPS_AROUND", right, "HUGEINT")
        limit = f"-{2 ** (bits - 2)}::HUGEINT"
        right = f"CASE WHEN {right} < {limit} THEN {failure} ELSE {right} END"
    found = _moved_up(f"({left} % {right})", right)
    return f"CAST({found} AS {spark_type_to_duckdb(site.result)})"


def _pmod_fraction(site: Site) -> str:
    left, right = site.args
    failure = raising("REMAINDER_BY_ZERO", right, spark_type_to_duckdb(site.result))
    rest = f"({left} % {right})"
    found = f"CASE WHEN {rest} < 0 THEN ({rest} + {right}) % {right} ELSE {rest} END"
    return f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN {failure} ELSE {found} END"


def _pmod_decimal(site: Site) -> str:
    found = _moved_up(_decimal_remainder(site), site.args[1])
    return f"CAST({found} AS {spark_type_to_duckdb(site.result)})"


def _shift(template: str) -> Callable[[Site], str]:
    """A shift of 32 or 64 bits, by the count modulo the bits, that wraps around."""

    def spell(site: Site) -> str:
        bits = 32 if site.types[0] == "int" else 64
        value, count = f"CAST({site.args[0]} AS HUGEINT)", f"({site.args[1]} & {bits - 1})"
        shifted = template.format(value=value, count=count, mask=f"{2**bits - 1}::HUGEINT")
        return f"CAST({_wrapped(shifted, bits)} AS {spark_type_to_duckdb(site.result)})"

    return spell


def _guarded(over: str, under: str, symbol: str, to: Type) -> str:
    """over / under or over % under for doubles: zero raises, unless the other side is NULL."""
    test = f"{under} = 0 AND {over} IS NOT NULL"
    failure = raising("DIVIDE_BY_ZERO", under, spark_type_to_duckdb(to))
    return f"CASE WHEN {test} THEN {failure} ELSE ({over} {symbol} {under}) END"


def _wrapped(sql: str, bits: int) -> str:
    """A HUGEINT as an integer of so many bits holds it, without a check."""
    half = f"{2 ** (bits - 1)}::HUGEINT"
    return f"(((({sql}) + {half}) & {2**bits - 1}::HUGEINT) - {half})"


_ROUND = {"round": "round", "bround": "round_even"}
_RINT = (
    "CASE WHEN abs({0}) < 4503599627370496 AND {0} <> 0 THEN CASE WHEN abs({0}) <= 0.5 "
    "THEN 0.0::DOUBLE * sign({0}) WHEN abs({0} - trunc({0})) = 0.5 THEN 2 * round({0} / 2) "
    "ELSE round({0}) END ELSE {0} END"
)

_SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"

ENTRIES: tuple[Entry, ...] = (
    *(
        Entry(symbol, f"{kind} {kind}", f"({{0}} {symbol} {{1}})")
        for symbol in "+-*"
        for kind in ("integer", "fraction")
    ),
    Entry("+", "decimal decimal", _decimal_sum),
    Entry("-", "decimal decimal", _decimal_sum),
    Entry("*", "decimal decimal", _exact(decimals.product)),
    Entry("/", "double double", _division("/")),
    Entry("/", "decimal decimal", _exact(decimals.quotient)),
    Entry("%", "integer integer", _integer_remainder),
    Entry("%", "fraction fraction", _division("%")),
    Entry("%", "decimal decimal", _decimal_remainder),
    Entry("div", "bigint bigint", "({0} // {1})"),
    Entry("div", "decimal decimal", _decimal_whole_quotient),
    Entry("negative", "number", "(-{0})"),
    Entry("abs", "number", "abs({0})"),
    Entry("sign", "double", _SIGN),
    Entry("ceil", "bigint", "{0}"),
    Entry("floor", "bigint", "{0}"),
    Entry("ceil", "double", "CASE WHEN isnan({0}) THEN 0 ELSE CAST(ceil({0}) AS BIGINT) END"),
    Entry("floor", "double", "CASE WHEN isnan({0}) THEN 0 ELSE CAST(floor({0}) AS BIGINT) END"),
    Entry("ceil", "decimal", "CAST(ceil({0}) AS {to})"),
    Entry("floor", "decimal", "CAST(floor({0}) AS {to})"),
    Entry("ceil", "decimal int", _whole_at_scale),
    Entry("floor", "decimal int", _whole_at_scale),
    *(
        Entry(name, kinds, spelling)
        for name in _ROUND
        for kinds, spelling in (
            ("decimal", _round_decimal),
            ("decimal int", _round_decimal),
            ("integer", "{0}"),
            ("integer int", _round_integer),
            ("double", _round_double),
            ("double int", _round_double),
        )
    ),
    Entry("rint", "double", _RINT),
    Entry(
        "factorial", "int", "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END"
    ),
    Entry("pi", "", "pi()"),
    Entry("e", "", "CAST('2.718281828459045' AS DOUBLE)"),
    Entry("positive", "number", "{0}"),
    Entry("pmod", "integer integer", _pmod_integer),
    Entry("pmod", "fraction fraction", _pmod_fraction),
    Entry("pmod", "decimal decimal", _pmod_decimal),
    Entry("shiftleft", "integer int", _shift("({value} * (1::HUGEINT << {count}))")),
    Entry("shiftright", "integer int", _shift("({value} >> {count})")),
    Entry("shiftrightunsigned", "integer int", _shift("(({value} & {mask}) >> {count})")),
    Entry("bit_count", "integer", "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"),
    Entry("bit_count", "boolean", "CAST({0} AS INTEGER)"),
    Entry("sqrt", "double", "sqrt({0})"),
    *(Entry(name, "double", f"{STRICT}{name}({{0}})") for name in ("exp", "expm1")),
    *(
        Entry(name, "double", f"CASE WHEN {{0}} > {above} THEN {STRICT}{name}({{0}}) END")
        for name, above in (("ln", 0), ("log2", 0), ("log10", 0), ("log1p", -1))
    ),
    Entry(
        "log",
        "double double",
        f"CASE WHEN {{0}} > 0 AND {{1}} > 0 THEN {STRICT}log({{0}}, {{1}}) END",
    ),
    Entry("power", "double double", f"{STRICT}power({{0}}, {{1}})"),
    Entry("degrees", "double", "degrees({0})"),
    Entry("radians", "double", "radians({0})"),
    Entry("isnan", "fraction", "COALESCE(isnan({0}), FALSE)"),
    Entry("nanvl", "float float", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    Entry("nanvl", "double double", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    *(Entry(symbol, "integer integer", f"({{0}} {symbol} {{1}})") for symbol in "&|"),
    Entry("^", "integer integer", "xor({0}, {1})"),
    Entry("~", "integer", "(~{0})"),
    Entry("ev_avg_double", "decimal bigint", _average_double),
    Entry("ev_avg_decimal", "decimal bigint int int", _average_decimal),
    Entry("ev_from_base", "string int", _from_base),
    Entry(
        "ev_single",
        "bigint any",
        "CASE WHEN {0} > 1 THEN error('a subquery used as a value has several rows') ELSE {1} END",
    ),
)
