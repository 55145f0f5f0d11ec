"""Which casts give Spark's ANSI answer on DuckDB, and how they are spelled there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.types import Type, fields_of, is_nested, parts_of, precision_and_scale
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising, struct_field
from everview.sqlgen.parity.type_classes import is_in_class
from everview.sqlgen.types import spark_type_to_duckdb

Spelling: TypeAlias = Callable[[str, str], str]
"""From the SQL of the value and DuckDB's name of the target type to the SQL of the cast."""

BLANKS = r"E' \t\n\r\x0b\x0c'"
_INTEGER_TEXT = r"\s*[+-]?[0-9]+\s*"
_DECIMAL_TEXT = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
_PLAIN_DECIMAL_TEXT = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)\s*"
_DOUBLE_TEXT = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?\s*"
_DATE_TEXT = r"^\s*(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*$"
_YEAR_TEXT = r"\d{4}"
_MONTH_TEXT = r"\d{4}-\d{1,2}"
_DAY_TEXT = r"\d{4}-\d{1,2}-\d{1,2}"
_HOUR_TEXT = rf"{_DAY_TEXT}[ T]([01]?\d|2[0-3])"
_TIME_TEXT = r"([01]?\d|2[0-3]):\d{1,2}(:\d{1,2}(\.\d{0,9})?)?"
_STAMP_TEXT = rf"{_DAY_TEXT}([ T]({_TIME_TEXT})?\s*(Z|UTC|[+-]\d{{1,2}}(:\d{{2}})?)?)?"
_SURE_STAMP_TEXT = rf"{_DAY_TEXT}([ T]({_TIME_TEXT}(Z|[+-](0\d|1[0-7]):[0-5]\d)?)?)?"
"""A moment that DuckDB reads unless it is none."""
_PARTS_OF_STAMPS = ((_YEAR_TEXT, "-01-01"), (_MONTH_TEXT, "-01"), (_HOUR_TEXT, ":00"))
_NO_STAMP_TEXTS = (
    r"|[^0-9+\-T:].*",
    r"\d+[^0-9:\-].*",
    r"(\d{1,3}|\d{7,})(-.*)?",
    r"\d{4}-(\D.*|\d{3,}.*)?",
    r"\d{4}-\d{1,2}[^0-9\-].*",
    r"\d{4}-\d{1,2}-(\D.*|\d{3,}.*)?",
    rf"{_DAY_TEXT}[^0-9 T].*",
    rf"{_DAY_TEXT}[ T]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d*)?)?",
)
"""Texts that Spark reads as no moment: nothing, another separator, too few or too many digits."""
_FLOAT_LIMIT = "3.4028235677973366e38"


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast from one type class to another, shown equal; `why` says what the spelling avoids."""

    source: str
    target: str
    spell: Spelling
    why: str = ""
    partial: bool = False
    """Whether it may raise where Spark answers, so that TRY would hide an answer."""
    tried: Spelling | None = None
    """The cast that gives NULL where Spark raises, where TRY is not the way to it."""


def cast(sql: str, source: Type, target: Type, *, safe: bool = False) -> str:
    """The SQL of CAST(sql AS target), or of TRY_CAST where it is `safe`."""
    if source == target:
        return sql
    if is_nested(source) and is_nested(target) and not safe:
        return _cast_parts(sql, source, target)
    for entry in CASTS:
        if is_in_class(source, entry.source) and is_in_class(target, entry.target):
            if safe and entry.partial and not entry.tried:
                break
            if safe and entry.tried:
                return entry.tried(sql, spark_type_to_duckdb(target))
            spelled = entry.spell(sql, spark_type_to_duckdb(target))
            return f"TRY({spelled})" if safe else spelled
    raise NotAtParity(f"{'TRY_CAST' if safe else 'CAST'}({source} AS {target})")


def _cast_parts(sql: str, source: Type, target: Type) -> str:
    """Nested values are cast part by part, so that each part has Spark's answer."""
    (outer, ours), (other, theirs) = parts_of(source), parts_of(target)
    if outer == other == "array":
        return f"list_transform({sql}, lambda _e: {cast('_e', ours[0], theirs[0])})"
    if outer == other == "struct" and len(ours) == len(theirs):
        pairs = zip(fields_of(source), fields_of(target), strict=True)
        fields = ", ".join(
            f"'{name}': {cast(struct_field(sql, own), type_, wanted)}"
            for (own, type_), (name, wanted) in pairs
        )
        return f"CASE WHEN {sql} IS NULL THEN NULL ELSE {{{fields}}} END"
    raise NotAtParity(f"CAST({source} AS {target})")


def literal_cast(value: str, target: Type) -> str | None:
    """A string literal as a date or timestamp, where its form leaves no doubt, else None."""
    if target == "date" and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return f"CAST('{value}' AS DATE)"
    moment = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,6})?))?", value)
    if moment and target in ("timestamp", "timestamp_ntz"):
        stamp = f"{moment[1]} {moment[2] or '00:00:00'}"
        zone = "+00" if target == "timestamp" else ""
        return f"CAST('{stamp}{zone}' AS {spark_type_to_duckdb(target)})"
    return None


def _plain(sql: str, target: str) -> str:
    return f"CAST({sql} AS {target})"


def _truncated(sql: str, target: str) -> str:
    return f"CAST(trunc({sql}) AS {target})"


def _double_to_float(sql: str, target: str) -> str:
    huge = f"abs({sql}) > {_FLOAT_LIMIT} AND NOT isnan({sql})"
    signed = f"CASE WHEN {sql} > 0 THEN CAST('inf' AS FLOAT) ELSE CAST('-inf' AS FLOAT) END"
    return f"CASE WHEN {huge} THEN {signed} ELSE CAST({sql} AS {target}) END"


def _float_to_decimal(sql: str, target: str) -> str:
    digits = f"CAST(CAST(CAST({sql} AS DOUBLE) AS VARCHAR) AS {target})"
    limit = _limit(target)
    too_large = raising("NUMERIC_VALUE_OUT_OF_RANGE", sql, target)
    return (
        f"CASE WHEN isnan({sql}) OR isinf({sql}) THEN NULL "
        f"WHEN abs({sql}) >= {limit} THEN {too_large} ELSE {digits} END"
    )


def _limit(target: str) -> str:
    """The smallest power of ten a decimal type cannot hold; DuckDB overflows on exponents."""
    precision, scale = precision_and_scale(target.lower())
    return f"1e{precision - scale}::DOUBLE"


def _by_digits(sql: str, target: str) -> str:
    return f"CAST(CAST({sql} AS VARCHAR) AS {target})"


def _string_to_decimal(sql: str, target: str) -> str:
    bare = f"trim({sql}, {BLANKS})"
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL "
        f"WHEN regexp_full_match({sql}, '{_PLAIN_DECIMAL_TEXT}') THEN CAST({bare} AS {target}) "
        f"WHEN regexp_full_match({sql}, '{_DECIMAL_TEXT}') "
        f"AND abs(CAST({bare} AS DOUBLE)) < {_limit(target)} THEN CAST({bare} AS {target}) "
        f"ELSE {_invalid(sql, target)} END"
    )


def _invalid(sql: str, target: str) -> str:
    return raising("CAST_INVALID_INPUT", sql, target)


def _checked(pattern: str, value: str) -> Spelling:
    """A cast from a string that has the form Spark accepts; DuckDB alone accepts more."""

    def spell(sql: str, target: str) -> str:
        parsed = value.format(sql=sql, target=target)
        return (
            f"CASE WHEN {sql} IS NULL THEN NULL WHEN regexp_full_match({sql}, '{pattern}') "
            f"THEN {parsed} ELSE {_invalid(sql, target)} END"
        )

    return spell


def _string_to_double(sql: str, target: str) -> str:
    bare = f"trim({sql}, {BLANKS})"
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN regexp_full_match({sql}, '{_DOUBLE_TEXT}') "
        f"THEN CAST(rtrim({bare}, 'dDfF') AS {target}) "
        rf"WHEN regexp_full_match({sql}, '(?i)\s*([+-]?inf(inity)?|nan)\s*') "
        f"THEN CAST({bare} AS {target}) ELSE {_invalid(sql, target)} END"
    )


def _string_to_boolean(sql: str, target: str) -> str:
    bare = f"lower(trim({sql}, {BLANKS}))"
    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN {bare} IN ('t','true','y','yes','1') THEN TRUE "
        f"WHEN {bare} IN ('f','false','n','no','0') THEN FALSE "
        f"ELSE {_invalid(sql, target)} END"
    )


def _string_to_date(sql: str, target: str) -> str:
    def part(number: int) -> str:
        found = f"NULLIF(regexp_extract({sql}, '{_DATE_TEXT}', {number}), '')"
        return f"CAST(COALESCE({found}, '1') AS BIGINT)"

    return (
        f"CASE WHEN {sql} IS NULL THEN NULL WHEN regexp_matches({sql}, '{_DATE_TEXT}') "
        f"THEN make_date({part(1)}, {part(2)}, {part(3)}) "
        f"ELSE {_invalid(sql, target)} END"
    )


def _decimal_to_string(sql: str, _: str) -> str:
    """The digits, with a zero before the point where DuckDB leaves it out."""
    return rf"regexp_replace(CAST({sql} AS VARCHAR), '^(-?)[.]', '\10.')"


def _double_to_string(sql: str, _: str) -> str:
    """The digits Java prints; from 1e15 on, and below a thousandth, they may be others."""
    digits, size = f"CAST({sql} AS VARCHAR)", f"abs({sql})"
    mantissa = rf"regexp_replace(replace({digits}, '.', ''), '^(-?\d)(\d+?)0*$', '\1.\2')"
    exponent = f"'E' || (length(split_part(CAST({size} AS VARCHAR), '.', 1)) - 1)"
    return (
        f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN isinf({sql}) THEN "
        f"CASE WHEN {sql} > 0 THEN 'Infinity' ELSE '-Infinity' END "
        f"WHEN {sql} = 0 OR ({size} >= 0.001 AND {size} < 10000000) THEN {digits} "
        f"WHEN {size} >= 10000000 AND {size} < 1e15 THEN {mantissa} || {exponent} "
        f"WHEN {sql} IS NOT NULL THEN {raising('DIGITS_MAY_DIFFER', sql, 'VARCHAR')} END"
    )


def _stamp_cases(sql: str, target: str, word: str, *full: tuple[str, str]) -> str:
    """A CASE for the forms of a moment, of which a year, a month or an hour alone is completed."""
    bare = f"trim({sql}, {BLANKS})"
    shapes = (
        *((shape, f"{word}({bare} || '{rest}' AS {target})") for shape, rest in _PARTS_OF_STAMPS),
        *((shape, found.format(bare=bare, target=target)) for shape, found in full),
    )
    cases = " ".join(f"WHEN regexp_full_match({bare}, '{x}') THEN {found}" for x, found in shapes)
    return f"CASE WHEN {sql} IS NULL THEN NULL {cases} ELSE {_invalid(sql, target)} END"


def _string_to_timestamp(sql: str, target: str) -> str:
    """A date with or without a time and an offset; a time alone means today to Spark."""
    return _stamp_cases(sql, target, "CAST", (_STAMP_TEXT, "CAST({bare} AS {target})"))


def tried_timestamp(sql: str, target: str = "TIMESTAMP WITH TIME ZONE") -> str:
    """NULL where the text is certainly no moment; an error where Spark may read it and we not."""
    return _stamp_cases(
        sql,
        target,
        "TRY_CAST",
        (_SURE_STAMP_TEXT, "TRY_CAST({bare} AS {target})"),
        (_STAMP_TEXT, "CAST({bare} AS {target})"),
        (f"(?s){'|'.join(_NO_STAMP_TEXTS)}", "NULL"),
    )


def _from_seconds(micros: str) -> Spelling:
    return lambda sql, _: f"make_timestamptz(CAST({micros.format(sql)} AS BIGINT))"


def _seconds(sql: str, target: str) -> str:
    micros = f"epoch_us({sql})"
    floored = f"({micros} - (({micros} % 1000000) + 1000000) % 1000000) // 1000000"
    return f"CAST({floored} AS {target})"


_trimmed = f"CAST(trim({{sql}}, {BLANKS}) AS {{target}})"

CASTS: tuple[Cast, ...] = (
    Cast("void", "any", _plain),
    Cast("integer", "integer", _plain),
    Cast("integer", "decimal", _plain),
    Cast("integer", "float", _plain),
    Cast("integer", "double", _plain),
    Cast("integer", "string", _plain),
    Cast("integer", "boolean", _plain),
    Cast("decimal", "decimal", _plain, "both round half up and raise on overflow"),
    Cast("decimal", "integer", _truncated, "DuckDB alone rounds"),
    Cast("decimal", "double", _by_digits, "DuckDB rounds twice"),
    Cast("decimal", "float", _by_digits, "DuckDB rounds twice"),
    Cast("decimal", "boolean", _plain),
    Cast(
        "decimal", "string", _decimal_to_string, "0.5 is .5 where all digits are behind the point"
    ),
    Cast("float", "double", _plain),
    Cast("double", "float", _double_to_float, "DuckDB raises where Spark gives infinity"),
    Cast("fraction", "integer", _truncated, "DuckDB alone rounds"),
    Cast("fraction", "short decimal", _float_to_decimal, "beyond 15 digits, Java's may differ"),
    Cast("fraction", "boolean", _plain),
    Cast("double", "string", _double_to_string, "Java writes 1.0E7", partial=True),
    Cast("integer", "timestamp", _from_seconds("CAST({0} AS BIGINT) * 1000000"), partial=True),
    Cast("boolean", "number", _plain),
    Cast("boolean", "string", _plain),
    Cast("string", "integer", _checked(_INTEGER_TEXT, _trimmed), "'12.5' is no integer"),
    Cast("string", "decimal", _string_to_decimal, "'1_000' is no number"),
    Cast("string", "fraction", _string_to_double, "'1_000' is no number"),
    Cast("string", "boolean", _string_to_boolean, "'yes' is true in Spark"),
    Cast("string", "date", _string_to_date, "'2024-2' is a date in Spark, 'epoch' is not"),
    Cast(
        "string",
        "stamp",
        _string_to_timestamp,
        "'2024-2' is a moment in Spark",
        partial=True,
        tried=tried_timestamp,
    ),
    Cast("string", "binary", lambda sql, _: f"encode({sql})"),
    Cast("date", "string", _plain),
    Cast("date", "timestamp", _plain),
    Cast("date", "timestamp_ntz", _plain),
    Cast("timestamp", "date", _plain),
    Cast("timestamp", "timestamp_ntz", _plain),
    Cast("timestamp", "string", lambda sql, _: f"CAST(CAST({sql} AS TIMESTAMP) AS VARCHAR)"),
    Cast("timestamp", "integer", _seconds, "DuckDB has no such cast"),
    Cast("timestamp", "double", lambda sql, _: f"(CAST(epoch_us({sql}) AS DOUBLE) / 1e6)"),
    Cast("timestamp_ntz", "date", _plain),
    Cast("timestamp_ntz", "timestamp", _plain),
    Cast("timestamp_ntz", "string", _plain),
)
