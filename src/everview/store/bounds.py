"""How the least and the greatest key of a file are written down, so that files can be skipped.

Bounds are safe, not tight: every key of the file lies between them, and `None` means unbounded.
Types whose order or equality could differ between engines (floats with NaN, binary, nested) have
no bounds, so their files are always read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

Bound: TypeAlias = tuple[str, int | str]
"""A type tag and a JSON value: ("int", 7), ("date", 19723), ("decimal", "1.50")."""

Ordered: TypeAlias = int | str | Decimal

TAGS: dict[str, type] = {
    "int": int,
    "string": str,
    "decimal": Decimal,
    "date": int,
    "timestamp": int,
    "timestamp_ntz": int,
}
"""What the value of a bound is, by its tag, once it is decoded."""

LONGEST_TEXT = 64
"""Longer strings are shortened, down for a low bound and up for a high one."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is known about one column of one file: low ≤ every non-null value ≤ high."""

    low: Bound | None
    high: Bound | None
    has_null: bool


UNKNOWN = Range(None, None, True)


def tag_of(type_: pa.DataType) -> str | None:
    """The tag of a type that has bounds, else None; values with different tags do not compare.

    Dates are days and timestamps microseconds since 1970, because Spark's reach further than
    Python's.
    """
    if types.is_integer(type_):
        return "int"
    if types.is_string(type_) or types.is_large_string(type_):
        return "string"
    if types.is_decimal(type_):
        return "decimal"
    if types.is_date32(type_):
        return "date"
    if types.is_timestamp(type_) and type_.unit == "us":
        return "timestamp" if type_.tz else "timestamp_ntz"
    return None


def ordered(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The Python values by which non-null values of a tagged type are compared."""
    if types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def decode(bound: Bound) -> Any:
    """The Python value of a bound.

    >>> decode(("decimal", "1.50"))
    Decimal('1.50')
    """
    tag, value = bound
    return Decimal(value) if tag == "decimal" else value


def as_scalar(bound: Bound, type_: pa.DataType) -> pa.Scalar:
    """A bound as a value of the type that it is of.

    >>> as_scalar(("date", 19723), pa.date32()).as_py()
    datetime.date(2024, 1, 1)
    """
    value = decode(bound)
    if types.is_date32(type_):
        return pa.scalar(value, pa.int32()).cast(type_)
    if types.is_timestamp(type_):
        return pa.scalar(value, pa.int64()).cast(type_)
    return pa.scalar(value, type_)


def range_of_sorted(column: pa.ChunkedArray) -> Range:
    """The range of a column sorted ascending, nulls first."""
    nulls = column.null_count
    tag = tag_of(column.type)
    if tag is None or nulls == len(column):
        return Range(None, None, nulls > 0)
    try:
        (low,), (high,) = ordered(column[nulls : nulls + 1]), ordered(column[-1:])
    except ValueError:  # a Spark string may hold bytes that are not UTF-8
        return Range(None, None, nulls > 0)
    return Range(_low(tag, low), _high(tag, high), nulls > 0)


def range_of_statistics(groups: Iterable[pq.Statistics], type_: pa.DataType) -> Range:
    """The range of a column from the Parquet statistics of its row groups."""
    tag = tag_of(type_)
    found = list(groups)
    if tag is None or any(group is None or not group.has_null_count for group in found):
        return UNKNOWN
    has_null = any(group.null_count for group in found)
    filled = [group for group in found if group.num_values]
    if not filled or not all(group.has_min_max for group in filled):
        return Range(None, None, has_null)
    try:
        low = min(ordered(pa.array([group.min for group in filled], type_)))
        high = max(ordered(pa.array([group.max for group in filled], type_)))
    except (ValueError, OverflowError, pa.ArrowException):
        return Range(None, None, has_null)
    return Range(_low(tag, low), _high(tag, high), has_null)


def _low(tag: str, value: Ordered) -> Bound:
    if isinstance(value, str):
        return tag, value[:LONGEST_TEXT]
    return tag, value if isinstance(value, int) else str(value)


def _high(tag: str, value: Ordered) -> Bound | None:
    if isinstance(value, str):
        short = value if len(value) <= LONGEST_TEXT else _successor(value[:LONGEST_TEXT])
        return None if short is None else (tag, short)
    return tag, value if isinstance(value, int) else str(value)


def _successor(prefix: str) -> str | None:
    r"""The least string above every string that begins with `prefix`, if there is one.

    >>> _successor("ab"), _successor("a\U0010ffff"), _successor("\U0010ffff")
    ('ac', 'b', None)
    >>> _successor("\ud7ff") == "\ue000"
    True
    """
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    # U+D800 to U+DFFF are surrogates, which no string holds.
    after = 0xE000 if kept[-1] == "\ud7ff" else ord(kept[-1]) + 1
    return kept[:-1] + chr(after)
