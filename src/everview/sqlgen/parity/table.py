"""THE TABLE: the constructs shown to give Spark's answer on DuckDB, and their spelling there.

A construct that is not here runs on Spark. Operands arrive already cast to the types Spark casts
them to; a spelling gives exactly Spark's value, type and error. tests/emit/test_parity.py shows
each entry equal over a grid of values.

One thing differs by design of the engines: Spark does not evaluate the right operand where the
left is NULL, nor the rest of an IN once it is decided, so DuckDB may raise where Spark gives an
answer, never the other way. An error on DuckDB is therefore a question to Spark, not a verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from everview.expr.type_inference import Typed
from everview.expr.types import Type
from everview.sqlgen import averages
from everview.sqlgen.parity import arithmetic, dates, json, nested, strings
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.type_classes import NotEqual, raised
from everview.sqlgen.types import spark_type_to_duckdb

__all__ = [
    "STRICT",
    "TABLE",
    "Entry",
    "NotEqual",
    "Site",
    "entry_for",
    "is_null_by_an_argument",
]

STRICT = "ev_strict_"
"""How the names of functions begin that an engine has to define in DuckDB."""


def entry_for(name: str, types: tuple[Type, ...]) -> Entry:
    """The first entry that speaks of the construct; NotEqual where there is none."""
    for entry in _named().get(name, ()):
        if entry.accepts(name, types):
            return entry
    raise NotEqual(f"{name}({', '.join(types)})")


@cache
def _named() -> dict[str, tuple[Entry, ...]]:
    names = dict.fromkeys(entry.name for entry in TABLE)
    return {name: tuple(e for e in TABLE if e.name == name) for name in names}


def _exact(operation: Callable[[str, str, tuple[Type, ...], Type], str]) -> Callable[[Site], str]:
    return lambda site: operation(site.args[0], site.args[1], site.types, site.result)


def _decimal_sum(site: Site) -> str:
    left, right = site.args
    return arithmetic.sum_or_difference(site.name, left, right, site.types, site.result)


def _division(symbol: str) -> Callable[[Site], str]:
    """Division of doubles, without a guard where the divisor is a literal that is not zero."""

    def spell(site: Site) -> str:
        left, right = site.args
        if site.literals[1] is not None and float(site.literals[1]) != 0:
            return f"({left} {symbol} {right})"
        return arithmetic.guarded(left, right, symbol, site.result)

    return spell


def _integer_remainder(site: Site) -> str:
    """The smallest integer % -1 is 0; DuckDB raises."""
    left, right = site.args
    if site.literals[1] is not None and int(site.literals[1]) != -1:
        return f"({left} % {right})"
    return f"CASE WHEN {right} = -1 THEN {left} - {left} ELSE ({left} % {right}) END"


def _decimal_remainder(site: Site) -> str:
    left, right = map(arithmetic.parts, site.types)
    if max(left[0] - left[1], right[0] - right[1]) + max(left[1], right[1]) > 38:
        raise NotEqual(f"{site.types[0]} % {site.types[1]}", "needs more than 38 digits")
    return f"CAST(({site.args[0]} % {site.args[1]}) AS {spark_type_to_duckdb(site.result)})"


def _decimal_whole_quotient(site: Site) -> str:
    (p1, s1), (p2, s2) = map(arithmetic.parts, site.types)
    scale = max(s1, s2)
    if p1 - s1 + s2 > 18 or p1 - s1 + scale > 38 or p2 - s2 + scale > 38:
        raise NotEqual(f"{site.types[0]} DIV {site.types[1]}", "may not fit a bigint")
    over, under = (
        f"({arithmetic.unscaled(arg, type_)} * {arithmetic.power_of_ten(scale - own)})"
        for arg, type_, own in zip(site.args, site.types, (s1, s2), strict=True)
    )
    return f"CAST({over} // {under} AS BIGINT)"


def _round_double(site: Site) -> str:
    """On the digits Java prints; beyond 15 of them those may differ, and we raise."""
    value = site.args[0]
    digits = int(site.literals[1] or 0) if len(site.args) == 2 else 0
    if not 0 <= digits <= 9:
        raise NotEqual(f"{site.name}(double, {digits})")
    rounded = f"{_ROUND[site.name]}(CAST(CAST({value} AS VARCHAR) AS DECIMAL(38,18)), {digits})"
    failure = raised("MORE_THAN_15_DIGITS", value, "DOUBLE")
    return (
        f"CASE WHEN isnan({value}) OR isinf({value}) THEN {value} "
        f"WHEN abs({value}) < 1e{15 - digits} THEN CAST(CAST({rounded} AS VARCHAR) AS DOUBLE) "
        f"ELSE {failure} END"
    )


def _case(site: Site) -> str:
    *pairs, default = site.args
    branches = zip(pairs[0::2], pairs[1::2], strict=True)
    tests = " ".join(f"WHEN {test} THEN {value}" for test, value in branches)
    return f"CASE {tests} ELSE {default} END"


def _joined(opening: str, separator: str) -> Callable[[Site], str]:
    return lambda site: f"{opening}({separator.join(site.args)})"


def _of_floats(site: Site) -> str:
    """Among floats, DuckDB's answer loses the sign of a zero; among doubles it does not."""
    wide = ", ".join(f"CAST({arg} AS DOUBLE)" for arg in site.args)
    return f"CAST({site.name}({wide}) AS FLOAT)"


def _membership(site: Site) -> str:
    return f"({site.args[0]} IN ({', '.join(site.args[1:])}))"


def _from_base(site: Site) -> str:
    """DuckDB reads the digits after 0x and 0b; none are zero."""
    mark = {"2": "0b0", "16": "0x0"}[site.literals[1] or ""]
    return f"CAST(CAST('{mark}' || {site.args[0]} AS UBIGINT) AS DECIMAL(20,0))"


def _average_double(site: Site) -> str:
    return averages.average_double_duckdb(site.args[0], site.args[1])


def _average_decimal(site: Site) -> str:
    precision, scale = (int(literal or -1) for literal in site.literals[2:])
    if precision > averages.MAX_AVERAGED_PRECISION:
        raise NotEqual(f"avg(decimal({precision},{scale}))", "needs more than 128 bits")
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
        raise NotEqual(f"bround({site.types[0]}, {site.literals[1]})")
    return f"round({', '.join(site.args)})"


def _whole_at_scale(site: Site) -> str:
    """floor and ceil of a decimal at a scale, on the digits that stay."""
    (precision, scale), digits = arithmetic.parts(site.types[0]), int(site.literals[1] or 0)
    if digits >= scale:
        return f"CAST({site.args[0]} AS {spark_type_to_duckdb(site.result)})"
    if digits < 0 or precision + digits > 38:
        raise NotEqual(f"{site.name}({site.types[0]}, {digits})")
    wide = f"CAST({site.args[0]} AS DECIMAL(38,{scale}))"
    moved = f"{wide} * CAST({10**digits} AS DECIMAL({digits + 1},0))"
    return arithmetic.scaled(f"CAST({site.name}({moved}) AS HUGEINT)", site.result)


def _moved_up(rest: str, under: str) -> str:
    """pmod from a remainder, which is written once: where it raises, a copy would raise early."""
    return f"(({rest} + CASE WHEN {under} > 0 THEN {under} ELSE 0 END) % {under})"


def _pmod_integer(site: Site) -> str:
    """Spark's sum of two large negative numbers wraps around; there we raise."""
    left, right = (f"CAST({arg} AS HUGEINT)" for arg in site.args)
    bits = {"int": 32, "bigint": 64}.get(site.types[0])
    if bits and site.literals[1] is None:
        failure = raised("SUM_WRAPS_AROUND", right, "HUGEINT")
        limit = f"-{2 ** (bits - 2)}::HUGEINT"
        right = f"CASE WHEN {right} < {limit} THEN {failure} ELSE {right} END"
    found = _moved_up(f"({left} % {right})", right)
    return f"CAST({found} AS {spark_type_to_duckdb(site.result)})"


def _pmod_fraction(site: Site) -> str:
    left, right = site.args
    failure = raised("REMAINDER_BY_ZERO", right, spark_type_to_duckdb(site.result))
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
        return f"CAST({arithmetic.wrapped(shifted, bits)} AS {spark_type_to_duckdb(site.result)})"

    return spell


_ROUND = {"round": "round", "bround": "round_even"}
_RINT = (
    "CASE WHEN abs({0}) < 4503599627370496 AND {0} <> 0 THEN CASE WHEN abs({0}) <= 0.5 "
    "THEN 0.0::DOUBLE * sign({0}) WHEN abs({0} - trunc({0})) = 0.5 THEN 2 * round({0} / 2) "
    "ELSE round({0}) END ELSE {0} END"
)

_SIGN = "CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END"

_ARITHMETIC = (
    *(
        Entry(symbol, f"{kind} {kind}", f"({{0}} {symbol} {{1}})")
        for symbol in "+-*"
        for kind in ("integer", "fraction")
    ),
    Entry("+", "decimal decimal", _decimal_sum),
    Entry("-", "decimal decimal", _decimal_sum),
    Entry("*", "decimal decimal", _exact(arithmetic.product)),
    Entry("/", "double double", _division("/")),
    Entry("/", "decimal decimal", _exact(arithmetic.quotient)),
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

_LOGIC = (
    *(
        Entry(symbol, "plain plain", f"({{0}} {symbol} {{1}})")
        for symbol in ("=", "<>", "<", "<=", ">", ">=")
    ),
    Entry("<=>", "plain plain", "({0} IS NOT DISTINCT FROM {1})"),
    Entry("is distinct from", "plain plain", "({0} IS DISTINCT FROM {1})"),
    Entry("and", "boolean boolean", "({0} AND {1})"),
    Entry("or", "boolean boolean", "({0} OR {1})"),
    Entry("not", "boolean", "(NOT {0})"),
    Entry("is null", "any", "({0} IS NULL)"),
    Entry("is not null", "any", "({0} IS NOT NULL)"),
    Entry("is true", "boolean", "({0} IS TRUE)"),
    Entry("is false", "boolean", "({0} IS FALSE)"),
    Entry("in", "plain plain*", _membership),
    Entry("case", "any any*", _case),
    Entry("coalesce", "any*", _joined("COALESCE", ", ")),
    Entry("greatest", "ordered ordered*", _joined("greatest", ", ")),
    Entry("least", "ordered ordered*", _joined("least", ", ")),
    Entry("greatest", "float float*", _of_floats),
    Entry("least", "float float*", _of_floats),
)

TABLE: tuple[Entry, ...] = (
    *_ARITHMETIC,
    *_LOGIC,
    *strings.ENTRIES,
    *dates.ENTRIES,
    *nested.ENTRIES,
    *json.ENTRIES,
)
"""Every construct that may run on DuckDB."""

NULL_TOLERANT = frozenset(
    (
        *("and", "or", "<=>", "is distinct from", "is null", "is not null", "is true", "is false"),
        *("in", "case", "coalesce", "greatest", "least", "isnan", "nanvl", "concat_ws", "locate"),
        *("to_date", "to_timestamp"),  # a moment is not read, whatever the format is
        *("array", "struct", "named_struct", "map", "ev_single"),
        *("array_append", "array_prepend", "array_repeat", "array_join"),
    )
)
"""Constructs that look at a NULL; all others are NULL where an argument is."""


def is_null_by_an_argument(node: Typed) -> bool:
    """Whether a call is NULL because one of its arguments is the literal NULL."""
    return node.name not in NULL_TOLERANT and any(map(_is_null, node.args))


def _is_null(node: Typed) -> bool:
    """Whether a node is the literal NULL, cast or not."""
    if node.name == "cast":
        return _is_null(node.args[0])
    return node.name == "literal" and node.type == "void"
