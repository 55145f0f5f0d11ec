"""Which functions of dates and timestamps give Spark's answer on DuckDB, and their SQL there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from everview.sqlgen.parity import casts
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising
from everview.sqlgen.types import spark_type_to_duckdb

_UNITS = dict(
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    QUARTER="quarter",
    WEEK="week",
)
_TIMES = ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_TIME_UNITS = {**_UNITS, "DAY": "day", "DD": "day", **{unit: unit.lower() for unit in _TIMES}}
_WRITTEN = """yyyy=%Y yy=%y MM=%m M=%-m MMM=%b MMMM=%B dd=%d d=%-d D=%-j DDD=%j E=%a EE=%a EEE=%a
EEEE=%A HH=%H H=%-H hh=%I h=%-I a=%p mm=%M m=%-M ss=%S s=%-S SSS=%g SSSSSS=%f"""
_PATTERNS: dict[str, str] = dict(re.findall(r"(\w+)=(\S+)", _WRITTEN))
_READ = {run: _PATTERNS[run] for run in ("yyyy", "MM", "dd", "HH", "mm", "ss")}
_SHAPES = {run: rf"\d{{{len(run)}}}" for run in _READ}
_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_DAY = "86400000000"


def _truncated(site: Site) -> str:
    """trunc(date, unit): a unit below the week gives NULL."""
    unit = _UNITS.get((site.literals[1] or "").upper())
    if unit is None:
        raise NotAtParity(f"trunc to {site.literals[1] or 'a computed unit'}")
    return f"CAST(date_trunc('{unit}', {site.args[0]}) AS DATE)"


def _timestamp_truncated(site: Site) -> str:
    unit = _TIME_UNITS.get(site.value or "")
    if unit is None:
        raise NotAtParity(f"date_trunc to {site.value}")
    return f"date_trunc('{unit}', {site.args[0]})"


def _formatted(site: Site) -> str:
    pattern = "".join(_translated(run, site.name) for run in _runs(site.literals[1] or "?"))
    return f"strftime(CAST({site.args[0]} AS TIMESTAMP), '{pattern}')"


def _translated(run: str, name: str, known: dict[str, str] = _PATTERNS) -> str:
    if run in known:
        return known[run]
    if run.startswith("'") and run[1:].isalnum():
        return run[1:]
    if run[0].isalnum() or run[0] in "'[]{}#%?\\":
        raise NotAtParity(f"{name} with the pattern {run}")
    return run


def _parsed(target: str, spelling: str = "{0}") -> Callable[[Site], str]:
    """A text read by a pattern of fixed widths; whatever has another form is an error.

    A function that tries gives NULL instead, but where there is a sign: longer years have one.
    To Java, letters in a pattern stand for those of the other case as well.
    """

    def spell(site: Site) -> str:
        text, runs = site.args[0], _runs(site.literals[1] or "?")
        used = [run for run in runs if run in _READ]
        tries = site.name.startswith("try_")
        cased = tries and any(run[0] == "'" for run in runs)
        if cased or len(set(used)) < len(used) or not {"yyyy", "MM", "dd"} <= set(used):
            raise NotAtParity(f"{site.name} with the pattern {site.literals[1] or 'of a column'!r}")
        shape, form = (
            "".join(_translated(run, site.name, known) for run in runs)
            for known in (_SHAPES, _READ)
        )
        shape = shape.replace(".", "[.]").replace("+", "[+]").replace("*", "[*]")
        read = "try_strptime" if tries else "strptime"
        moment = spelling.format(f"CAST({read}({text}, '{form}') AS {target})")
        failure = raising("CANNOT_PARSE_TIMESTAMP", text, spark_type_to_duckdb(site.result))
        if tries:
            sign = "^[+-]" if runs[0] == "yyyy" else "[+-]"
            failure = f"CASE WHEN regexp_matches({text}, '{sign}') THEN {failure} END"
        return (
            f"CASE WHEN {text} IS NULL THEN NULL WHEN regexp_full_match({text}, '{shape}') "
            f"THEN {moment} ELSE {failure} END"
        )

    return spell


def _runs(pattern: str) -> list[str]:
    """The pattern cut where the character changes; what is in quotes is one, with the first.

    >>> _runs("yyyy-MM'T'HH")
    ['yyyy', '-', 'MM', "'T", 'HH']
    """
    runs: list[str] = []
    quoted = False
    for char in pattern:
        if char == "'":
            quoted = not quoted
            runs += ["'"] if quoted else []
        elif quoted or (runs and runs[-1][0] == char):
            runs[-1] += char
        else:
            runs.append(char)
    return runs


def _next_day(site: Site) -> str:
    """The first such weekday after the date; two letters, three, or the whole name."""
    name = (site.literals[1] or "?").strip().upper()
    days = [n for n, day in enumerate(_WEEKDAYS, 1) if name in (day, day[:3], day[:2])]
    if not days:
        raise NotAtParity(f"next_day to {site.literals[1] or 'a computed day'}")
    return f"({site.args[0]} + CAST((({days[0]} - isodow({site.args[0]})) + 6) % 7 + 1 AS INTEGER))"


def _time_of_day(moment: str) -> str:
    return f"(((epoch_us({moment}) % {_DAY}) + {_DAY}) % {_DAY})"


def _months_between(site: Site) -> str:
    """Whole months between like days or month ends, else with a fraction of 31 days."""
    a, b = site.args[:2]
    if len(site.args) == 3 and site.literals[2] is None:
        raise NotAtParity("months_between with computed rounding")
    months = f"((year({a}) - year({b})) * 12 + month({a}) - month({b}))"
    seconds = " - ".join(f"{_time_of_day(moment)} // 1000000" for moment in (a, b))
    part = f"CAST((day({a}) - day({b})) * 86400 + {seconds} AS DOUBLE) / 2678400.0::DOUBLE"
    exact = f"({months} + {part})"
    if len(site.args) == 2 or site.literals[2] == "TRUE":
        exact = f"floor({exact} * 1e8 + 0.5) / 1e8"
    ends = " AND ".join(f"CAST({moment} AS DATE) = last_day({moment})" for moment in (a, b))
    whole = f"day({a}) = day({b}) OR ({ends})"
    return f"CASE WHEN {whole} THEN CAST({months} AS DOUBLE) ELSE {exact} END"


_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _elapsed(site: Site) -> str:
    """Whole units from the second moment to the first, months as java.time counts them."""
    end, start = site.args
    if site.value in (*_TIMES, "DAY", "WEEK"):
        moments = ", ".join(f"CAST({moment} AS TIMESTAMP)" for moment in (start, end))
        return f"date_sub('{site.value.lower()}', {moments})"
    if site.value not in _MONTHS:
        raise NotAtParity(f"timestampdiff in {site.value}")
    days = [f"CAST({moment} AS DATE)" for moment in (end, start)]
    clocks = [_time_of_day(moment) for moment in (end, start)]
    last = (
        f"({days[0]} + CASE WHEN {days[0]} > {days[1]} AND {clocks[0]} < {clocks[1]} THEN -1 "
        f"WHEN {days[0]} < {days[1]} AND {clocks[0]} > {clocks[1]} THEN 1 ELSE 0 END)"
    )
    packed = [f"((year({day}) * 12 + month({day})) * 32 + day({day}))" for day in (last, days[1])]
    return f"(({packed[0]} - {packed[1]}) // {32 * _MONTHS[site.value]})"


def _later(site: Site) -> str:
    unit = (site.value or "").lower()
    known = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    if unit not in known:
        raise NotAtParity(f"timestampadd in {unit.upper()}")
    step = f"to_months(3 * {site.args[1]})" if unit == "quarter" else f"to_{unit}s({site.args[1]})"
    return f"CAST(({site.args[0]} + {step}) AS {spark_type_to_duckdb(site.result)})"


def _interval(site: Site) -> str:
    count, unit = (site.value or "").split()
    return f"INTERVAL '{count}' {unit}"


def _moved(site: Site) -> str:
    moment, interval = site.args if "interval" in site.types[1] else site.args[::-1]
    return f"CAST(({moment} {site.name} {interval}) AS {spark_type_to_duckdb(site.result)})"


def _from_seconds(site: Site) -> str:
    pattern = site.literals[1] if len(site.args) == 2 else "yyyy-MM-dd HH:mm:ss"
    moment = f"make_timestamp({site.args[0]} * 1000000)"
    return _formatted(replace(site, args=(moment, ""), literals=(None, pattern)))


def _made(site: Site) -> str:
    *parts, seconds = site.args
    moment = f"make_timestamp({', '.join(parts)}, CAST({seconds} AS DOUBLE))"
    return f"CAST({moment} AS TIMESTAMP WITH TIME ZONE)"


def _floored(unit: int) -> str:
    return f"((epoch_us({{0}}) - ((epoch_us({{0}}) % {unit}) + {unit}) % {unit}) // {unit})"


def _part(expression: str) -> str:
    return f"CAST({expression} AS INTEGER)"


def _each(name: str, kinds: tuple[str, ...], spelling: str | Callable[[Site], str]) -> list[Entry]:
    return [Entry(name, kind, spelling) for kind in kinds]


ENTRIES: tuple[Entry, ...] = (
    Entry("+", "date int", "({0} + {1})"),
    Entry("+", "int date", "({1} + {0})"),
    Entry("-", "date int", "({0} - {1})"),
    Entry("interval", "", _interval),
    *(
        Entry(sign, f"{moment} {interval}", _moved)
        for sign in "+-"
        for moment, interval in (
            ("date", "interval_date"),
            ("date", "interval_time"),
            ("stamp", "interval_date"),
            ("stamp", "interval_time"),
        )
    ),
    *(
        Entry("+", f"interval_{unit} {moment}", _moved)
        for unit in ("date", "time")
        for moment in ("date", "stamp")
    ),
    *(
        Entry(name, "date", _part(f"{name}({{0}})"))
        for name in ("year", "quarter", "month", "day", "dayofyear", "weekofyear")
    ),
    Entry("dayofweek", "date", _part("dayofweek({0}) + 1")),
    Entry("weekday", "date", _part("isodow({0}) - 1")),
    Entry("dayofweek_iso", "date", _part("isodow({0})")),
    Entry("yearofweek", "date", _part("isoyear({0})")),
    *(Entry(name, "stamp", _part(f"{name}({{0}})")) for name in ("hour", "minute", "second")),
    Entry(
        "second_fraction",
        "stamp",
        "CAST(date_part('microsecond', {0}) * 0.000001 AS DECIMAL(8,6))",
    ),
    Entry("date_add", "date int", "({0} + {1})"),
    Entry("date_sub", "date int", "({0} - {1})"),
    Entry("datediff", "date date", "CAST({0} - {1} AS INTEGER)"),
    Entry("add_months", "date int", "CAST({0} + to_months({1}) AS DATE)"),
    Entry("last_day", "date", "last_day({0})"),
    Entry("next_day", "date string", _next_day),
    Entry("months_between", "timestamp timestamp", _months_between),
    Entry("months_between", "timestamp timestamp boolean", _months_between),
    Entry("timestampdiff", "timestamp timestamp", _elapsed),
    Entry("timestampadd", "stamp int", _later),
    Entry("to_date", "date", "{0}"),
    Entry("to_date", "string string", _parsed("DATE")),
    Entry("to_date", "date string", "{0}"),
    Entry("to_date", "stamp string", "CAST({0} AS DATE)"),
    Entry("try_to_date", "string string", _parsed("DATE")),
    Entry("to_timestamp", "timestamp", "{0}"),
    *(
        Entry(name, kinds, "CAST({0} AS {to})")
        for name, kinds in (
            ("to_timestamp", "date string"),
            ("to_timestamp", "stamp string"),
            ("try_to_timestamp", "date"),
            ("try_to_timestamp", "stamp"),
        )
    ),
    Entry("try_to_timestamp", "string", lambda site: casts.tried_timestamp(*site.args)),
    Entry("try_to_timestamp", "string string", _parsed("TIMESTAMP WITH TIME ZONE")),
    Entry("to_timestamp", "string string", _parsed("TIMESTAMP WITH TIME ZONE")),
    Entry("unix_timestamp", "timestamp", "(epoch_us({0}) // 1000000)"),
    Entry("unix_timestamp", "string string", _parsed("TIMESTAMP", "CAST(epoch({0}) AS BIGINT)")),
    Entry("from_unixtime", "bigint", _from_seconds),
    Entry("from_unixtime", "bigint string", _from_seconds),
    *(
        Entry(f"timestamp_{unit}", "bigint", f"make_timestamptz({{0}} * {micros})")
        for unit, micros in (("seconds", 1000000), ("millis", 1000), ("micros", 1))
    ),
    Entry("date_from_unix_date", "int", "(DATE '1970-01-01' + {0})"),
    Entry("make_timestamp", "int int int int int decimal", _made),
    Entry("make_date", "int int int", "make_date({0}, {1}, {2})"),
    Entry("trunc", "date string", _truncated),
    Entry("date_trunc", "timestamp", _timestamp_truncated),
    Entry("date_format", "timestamp string", _formatted),
    Entry("unix_date", "date", "CAST({0} - DATE '1970-01-01' AS INTEGER)"),
    Entry("unix_micros", "timestamp", "epoch_us({0})"),
    Entry("unix_millis", "timestamp", _floored(1000)),
    Entry("unix_seconds", "timestamp", _floored(1000000)),
    Entry("dayname", "date", "strftime({0}, '%a')"),
    Entry("monthname", "date", "strftime({0}, '%b')"),
)
