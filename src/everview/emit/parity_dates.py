"""The parity table's rows for dates and timestamps."""

from __future__ import annotations

from collections.abc import Callable

from everview.emit.entry import Entry, Site
from everview.emit.kinds import NotEqual
from everview.emit.types import spark_type_to_duckdb

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_TIME_UNITS = {
    **_UNITS,
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
_PATTERNS = {
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "EEE": "%a",
    "EEEE": "%A",
    "MMM": "%b",
    "MMMM": "%B",
    "d": "%-d",
}


def _truncated(site: Site) -> str:
    """trunc(date, unit): a unit below the week gives NULL."""
    unit = _UNITS.get((site.literals[1] or "").upper())
    if unit is None:
        raise NotEqual(f"trunc to {site.literals[1] or 'a computed unit'}", "not shown equal")
    return f"CAST(date_trunc('{unit}', {site.args[0]}) AS DATE)"


def _timestamp_truncated(site: Site) -> str:
    unit = _TIME_UNITS.get(site.value or "")
    if unit is None:
        raise NotEqual(f"date_trunc to {site.value}", "not shown equal")
    return f"date_trunc('{unit}', {site.args[0]})"


def _formatted(site: Site) -> str:
    pattern = "".join(map(_translated, _runs(site.literals[1] or "?")))
    return f"strftime(CAST({site.args[0]} AS TIMESTAMP), '{pattern}')"


def _translated(run: str) -> str:
    if run in _PATTERNS:
        return _PATTERNS[run]
    if run[0].isalnum() or run[0] in "'[]{}#%?":
        raise NotEqual(f"date_format with {run}", "not shown equal")
    return run


def _runs(pattern: str) -> list[str]:
    """The pattern cut where the character changes.

    >>> _runs("yyyy-MM")
    ['yyyy', '-', 'MM']
    """
    runs: list[str] = []
    for char in pattern:
        if runs and runs[-1][0] == char:
            runs[-1] += char
        else:
            runs.append(char)
    return runs


def _interval(site: Site) -> str:
    count, unit = (site.value or "").split()
    return f"INTERVAL '{count}' {unit}"


def _moved(site: Site) -> str:
    moment, interval = site.args
    return f"CAST(({moment} {site.name} {interval}) AS {spark_type_to_duckdb(site.result)})"


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
            ("stamp", "interval_date"),
            ("stamp", "interval_time"),
        )
    ),
    *(
        Entry(name, "date", _part(f"{name}({{0}})"))
        for name in ("year", "quarter", "month", "day", "dayofyear", "weekofyear")
    ),
    Entry("dayofweek", "date", _part("dayofweek({0}) + 1")),
    Entry("weekday", "date", _part("isodow({0}) - 1")),
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
    Entry("to_date", "date", "{0}"),
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
