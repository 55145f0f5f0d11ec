"""Which dates and timestamps are kept: those of the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.quoting import spark_name
from everview.expr.types import WEIGHT, Type, fields_of, parts_of
from everview.runtime.retry import CalculationError

_FIRST, _LAST = date.min, date.max
_MOMENTS = ("date", "timestamp", "timestamp_ntz")


def must_be_in_calendar(rows: pa.Table, what: str = "a value computed here") -> None:
    """Refuse rows with a date or a timestamp that no one could read; rows that go are let go.

    In `what` the name of the column may stand for {}.
    """
    for name in _columns_with_moments(rows.schema):
        if not _is_outside(rows.column(name)):
            continue
        weighted = WEIGHT in rows.column_names
        coming = rows.filter(pc.greater(rows.column(WEIGHT), 0)) if weighted else rows
        if _is_outside(coming.column(name)):
            raise outside_calendar(what.format(name))


@lru_cache(maxsize=4096)
def _columns_with_moments(schema: pa.Schema) -> tuple[str, ...]:
    """The columns in whose values there may be dates or timestamps."""
    return tuple(field.name for field in schema if _has_moments(field.type))


def _has_moments(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(_has_moments(type_.field(at).type) for at in range(type_.num_fields))
    return bool(pa.types.is_temporal(type_))


def outside_calendar(what: str) -> CalculationError:
    """The error for a moment outside the calendar."""
    return CalculationError(
        "E010",
        f"{what} is a date or timestamp outside the years 1 to 9999",
        remedy="change the data, or guard the expression with CASE",
    )


def _is_outside(column: pa.ChunkedArray) -> bool:
    return any(_leaves_outside(chunk) for chunk in column.chunks if len(chunk))


def _leaves_outside(values: pa.Array) -> bool:
    return any(_reaches_outside(leaf) for leaf in _moments(values))


def _moments(values: pa.Array) -> Iterator[pa.Array]:
    """The arrays of dates and timestamps in an array."""
    type_ = values.type
    if pa.types.is_date32(type_) or (pa.types.is_timestamp(type_) and type_.unit == "us"):
        yield values
    elif pa.types.is_map(type_):
        yield from _moments(values.keys)
        yield from _moments(values.items)
    elif pa.types.is_list(type_):
        yield from _moments(values.flatten())
    elif pa.types.is_struct(type_):
        for part in values.flatten():
            yield from _moments(part)


def _reaches_outside(values: pa.Array) -> bool:
    numbers = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    least, most = _BOUNDS[pa.types.is_date32(values.type)]
    found = pc.min_max(numbers)
    return (
        found["min"].is_valid and not least <= found["min"].as_py() <= found["max"].as_py() <= most
    )


def _days(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def _micros(day: date) -> int:
    return _days(day) * 86_400_000_000


_BOUNDS = {
    True: (_days(_FIRST), _days(_LAST)),
    False: (_micros(_FIRST), _micros(_LAST) + 86_400_000_000 - 1),
}
"""The first and the last of dates in days, and of timestamps in microseconds."""


def outside_on_spark(sql: str, type_: Type, depth: int = 0) -> str | None:
    """Spark SQL for whether a value holds a moment outside the calendar; None where it cannot."""
    if type_ in _MOMENTS:
        return f"NOT YEAR({sql}) BETWEEN {_FIRST.year} AND {_LAST.year}"
    outer, inner = parts_of(type_)
    element = f"e{depth}"
    match outer:
        case "array":
            found = outside_on_spark(element, inner[0], depth + 1)
            return found and f"EXISTS({sql}, {element} -> {found})"
        case "map":
            lists = (f"MAP_KEYS({sql})", f"MAP_VALUES({sql})")
            each = [
                outside_on_spark(part, f"array<{of}>", depth)
                for part, of in zip(lists, inner, strict=True)
            ]
        case "struct":
            each = [
                outside_on_spark(f"{sql}.{spark_name(n)}", of, depth) for n, of in fields_of(type_)
            ]
        case _:
            each = []
    return " OR ".join(f"({part})" for part in each if part) or None
