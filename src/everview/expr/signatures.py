"""THE SIGNATURES: every construct whose type we know, with the rule that gives it."""

from __future__ import annotations

from everview.expr.nested_signatures import CONCATENATED, JOINED, NESTED, REVERSED
from everview.expr.parameters import (
    MOMENTS,
    a_bigint,
    a_binary,
    a_date,
    a_double,
    a_float,
    a_small_int,
    a_string,
    a_timestamp,
    a_zoned_timestamp,
    an_int,
    an_integer,
    anything,
    digits,
    exactly,
    nested,
    number,
    seconds,
    shifted,
)
from everview.expr.signature_rules import (
    Rule,
    arithmetic,
    average_decimal,
    average_double,
    bitwise,
    by_format,
    case,
    choice,
    comparison,
    date_plus,
    either,
    from_base,
    function,
    interval,
    membership,
    plus_interval,
    rounding,
    same,
    single,
    swapped,
    to_whole,
    variadic,
)
from everview.expr.types import INTEGERS, Type

_truth = exactly("boolean")
_pure_string = exactly("string")
_two_strings = (a_string, a_string)
_two_pure_strings = (_pure_string, _pure_string)


def _each(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


def _read_by_format(result: Type) -> tuple[Rule, Rule]:
    """A text parsed by a format; a date or timestamp is taken as it is."""
    return function(result, *_two_pure_strings), function(result, exactly(*MOMENTS), _pure_string)


_TRY_WORDS = ("add", "subtract", "multiply", "divide", "mod")
TRY_OPERATORS = {f"try_{word}": symbol for word, symbol in zip(_TRY_WORDS, "+-*/%", strict=True)}
"""Operators that give NULL where the plain one raises."""

SIGNATURES: dict[str, Rule] = {
    "+": either(
        arithmetic("+"), date_plus, swapped(date_plus), plus_interval, swapped(plus_interval)
    ),
    "-": either(arithmetic("-"), date_plus, plus_interval),
    **{name: arithmetic(name) for name in ("*", "/", "%", "pmod", "div")},
    **{name: arithmetic(symbol) for name, symbol in TRY_OPERATORS.items()},
    "interval": interval,
    **_each("negative positive abs", same(number)),
    **_each("& | ^", bitwise),
    "~": same(an_integer),
    **_each("shiftleft shiftright shiftrightunsigned", same(shifted, an_int)),
    "bit_count": function("int", exactly(*INTEGERS, "boolean")),
    **_each("= <> < <= > >= <=>", comparison),
    "is distinct from": comparison,
    **_each("and or", function("boolean", _truth, _truth)),
    "not": function("boolean", _truth),
    **dict.fromkeys(("is null", "is not null"), function("boolean", anything)),
    **dict.fromkeys(("is true", "is false"), function("boolean", _truth)),
    "in": membership,
    **dict.fromkeys(("not like", "not ilike"), function("boolean", *_two_strings)),
    **_each("like ilike rlike startswith endswith contains", function("boolean", *_two_strings)),
    "case": case,
    "coalesce": choice(strings=True),
    **_each("greatest least", choice(strings=False)),
    **_each("ceil floor", to_whole),
    **_each("round bround", rounding),
    **_each(
        "sign sqrt degrees radians exp ln cbrt rint log10 log2 log1p expm1 sin cos tan",
        function("double", a_double),
    ),
    **_each("power log", function("double", a_double, a_double)),
    **_each("pi e", function("double")),
    "factorial": function("bigint", an_int),
    "isnan": function("boolean", exactly("double", "float")),
    "nanvl": either(
        function("float", a_float, exactly("float")), function("double", a_double, a_double)
    ),
    **_each("length ascii", function("int", a_string)),
    **_each("octet_length bit_length", function("int", _pure_string)),
    "substring": function("string", a_string, an_int, an_int, optional=1),
    **_each("left right", function("string", _pure_string, an_int)),
    "concat": either(variadic("string", a_string), CONCATENATED),
    "concat_ws": either(variadic("string", a_string, least=1), JOINED),
    **_each("upper lower initcap", function("string", a_string)),
    "reverse": either(function("string", a_string), REVERSED),
    **_each("trim ltrim rtrim btrim", function("string", *_two_strings, optional=1)),
    "replace": function("string", *_two_strings, a_string, optional=1),
    **_each("translate regexp_replace", function("string", *_two_strings, a_string)),
    "locate": function("int", *_two_strings, an_int, optional=1),
    **_each("lpad rpad", function("string", a_string, an_int, a_string, optional=1)),
    "repeat": function("string", a_string, an_int),
    **_each("chr bin", function("string", a_bigint)),
    "hex": function("string", digits),
    "unhex": function("binary", a_string),
    "luhn_check": function("boolean", a_string),
    "to_number": by_format,
    "base64": function("string", a_binary),
    **_each("md5 sha", function("string", _pure_string)),
    "sha2": function("string", a_binary, an_int),
    "overlay": function("string", *_two_strings, an_int, an_int, optional=1),
    "regexp_extract": function("string", *_two_strings, an_int),
    "find_in_set": function("int", *_two_strings),
    **_each("split_part substring_index", function("string", *_two_strings, an_int)),
    **_each(
        "year quarter month day dayofweek dayofweek_iso weekday dayofyear weekofyear yearofweek",
        function("int", a_date),
    ),
    **_each("hour minute second", function("int", a_timestamp)),
    "second_fraction": function("decimal(8,6)", a_timestamp),
    **_each("date_add date_sub", function("date", a_date, a_small_int)),
    "datediff": function("int", a_date, a_date),
    "add_months": function("date", a_date, an_int),
    "last_day": function("date", a_date),
    **_each("next_day trunc", function("date", a_date, a_string)),
    "months_between": function("double", a_zoned_timestamp, a_zoned_timestamp, _truth, optional=1),
    "timestampdiff": function("bigint", a_zoned_timestamp, a_zoned_timestamp),
    "timestampadd": same(a_timestamp, a_small_int),
    "to_date": either(function("date", a_date), *_read_by_format("date")),
    "to_timestamp": either(function("timestamp", a_zoned_timestamp), *_read_by_format("timestamp")),
    "try_to_date": function("date", *_two_pure_strings),
    "try_to_timestamp": either(
        function("timestamp", exactly("string", *MOMENTS)),
        function("timestamp", *_two_pure_strings),
    ),
    "unix_timestamp": either(
        function("bigint", exactly("timestamp")), function("bigint", *_two_pure_strings)
    ),
    "from_unixtime": function("string", a_bigint, _pure_string, optional=1),
    "date_from_unix_date": function("date", an_int),
    **_each("timestamp_seconds timestamp_millis timestamp_micros", function("timestamp", a_bigint)),
    "make_timestamp": function("timestamp", *[an_int] * 5, seconds),
    "make_date": function("date", an_int, an_int, an_int),
    "date_trunc": function("timestamp", a_zoned_timestamp),
    "date_format": function("string", a_zoned_timestamp, a_string),
    "unix_date": function("int", exactly("date")),
    **_each("unix_seconds unix_millis unix_micros", function("bigint", exactly("timestamp"))),
    **_each("dayname monthname", function("string", a_date)),
    "get_json_object": function("string", *_two_pure_strings),
    "json_array_length": function("int", _pure_string),
    "to_json": function("string", nested),
    "ev_avg_double": average_double,
    "ev_avg_decimal": average_decimal,
    "ev_single": single,
    "ev_from_base": from_base,
    **NESTED,
}
