"""THE SIGNATURES: every construct whose type we know, with the rule that gives it."""

from __future__ import annotations

from everview.plan.parameters import (
    a_date,
    a_double,
    a_small_int,
    a_string,
    a_timestamp,
    a_zoned_timestamp,
    an_int,
    an_integer,
    anything,
    exactly,
    number,
    shifted,
)
from everview.plan.signatures import (
    Rule,
    arithmetic,
    average_decimal,
    average_double,
    bitwise,
    case,
    choice,
    comparison,
    date_plus,
    days_plus_date,
    either,
    function,
    interval,
    membership,
    plus_interval,
    rounding,
    same,
    to_whole,
    variadic,
)
from everview.plan.types import INTEGERS

_truth = exactly("boolean")
_pure_string = exactly("string")
_logical = function("boolean", _truth, _truth)
_date_part = function("int", a_date)
_time_part = function("int", a_timestamp)

RULES: dict[str, Rule] = {
    "+": either(arithmetic("+"), date_plus, days_plus_date, plus_interval),
    "-": either(arithmetic("-"), date_plus, plus_interval),
    **{name: arithmetic(name) for name in ("*", "/", "%", "pmod", "div")},
    "interval": interval,
    "negative": same(number),
    "abs": same(number),
    **dict.fromkeys(("&", "|", "^"), bitwise),
    "~": same(an_integer),
    "shiftleft": same(shifted, an_int),
    "shiftright": same(shifted, an_int),
    "shiftrightunsigned": same(shifted, an_int),
    "bit_count": function("int", exactly(*INTEGERS, "boolean")),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "is distinct from"), comparison),
    "and": _logical,
    "or": _logical,
    "not": function("boolean", _truth),
    "is null": function("boolean", anything),
    "is not null": function("boolean", anything),
    "is true": function("boolean", _truth),
    "is false": function("boolean", _truth),
    "in": membership,
    **{name: function("boolean", a_string, a_string) for name in ("like", "not like")},
    **{name: function("boolean", a_string, a_string) for name in ("ilike", "not ilike", "rlike")},
    "case": case,
    "coalesce": choice(strings=True),
    "greatest": choice(strings=False),
    "least": choice(strings=False),
    "sign": function("double", a_double),
    "ceil": to_whole,
    "floor": to_whole,
    "round": rounding,
    "bround": rounding,
    **{
        name: function("double", a_double)
        for name in [
            "sqrt",
            "degrees",
            "radians",
            "exp",
            "ln",
            "cbrt",
            "rint",
            "log10",
            "log2",
            "log1p",
            "expm1",
        ]
    },
    "power": function("double", a_double, a_double),
    "pi": function("double"),
    "e": function("double"),
    "isnan": function("boolean", exactly("double", "float")),
    "nanvl": function("double", exactly("double"), exactly("double")),
    "length": function("int", a_string),
    "octet_length": function("int", _pure_string),
    "bit_length": function("int", _pure_string),
    "substring": function("string", a_string, an_int, an_int, optional=1),
    "left": function("string", _pure_string, an_int),
    "right": function("string", _pure_string, an_int),
    "concat": variadic("string", a_string),
    "concat_ws": variadic("string", a_string, least=1),
    **{name: function("string", a_string) for name in ["upper", "lower", "initcap", "reverse"]},
    **{
        name: function("string", a_string, a_string, optional=1)
        for name in ["trim", "ltrim", "rtrim", "btrim"]
    },
    "replace": function("string", a_string, a_string, a_string, optional=1),
    "translate": function("string", a_string, a_string, a_string),
    **{
        name: function("boolean", a_string, a_string)
        for name in ["startswith", "endswith", "contains"]
    },
    "locate": function("int", a_string, a_string, an_int, optional=1),
    "lpad": function("string", a_string, an_int, a_string, optional=1),
    "rpad": function("string", a_string, an_int, a_string, optional=1),
    "repeat": function("string", a_string, an_int),
    "space": function("string", an_int),
    "ascii": function("int", a_string),
    "md5": function("string", _pure_string),
    "sha": function("string", _pure_string),
    "split_part": function("string", a_string, a_string, an_int),
    "substring_index": function("string", a_string, a_string, an_int),
    "find_in_set": function("int", a_string, a_string),
    **dict.fromkeys(
        ["year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear"],
        _date_part,
    ),
    **dict.fromkeys(("hour", "minute", "second"), _time_part),
    "second_fraction": function("decimal(8,6)", a_timestamp),
    "date_add": function("date", a_date, a_small_int),
    "date_sub": function("date", a_date, a_small_int),
    "datediff": function("int", a_date, a_date),
    "add_months": function("date", a_date, an_int),
    "last_day": function("date", a_date),
    "next_day": function("date", a_date, a_string),
    "to_date": function("date", a_date),
    "make_date": function("date", an_int, an_int, an_int),
    "trunc": function("date", a_date, a_string),
    "date_trunc": function("timestamp", a_zoned_timestamp),
    "date_format": function("string", a_zoned_timestamp, a_string),
    "unix_date": function("int", exactly("date")),
    **{
        name: function("bigint", exactly("timestamp"))
        for name in ["unix_seconds", "unix_millis", "unix_micros"]
    },
    "dayname": function("string", a_date),
    "monthname": function("string", a_date),
    "ev_avg_double": average_double,
    "ev_avg_decimal": average_decimal,
}
