"""Whether a table holds the rows that it should."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from everview_fuzz.case import Row


def same_bag(rows: pa.Table, expected: Counter[Row]) -> bool:
    """Whether a table holds exactly the rows expected."""
    return Counter(map(_comparable_row, _rows(rows))) == Counter(
        map(_comparable_row, expected.elements())
    )


def _rows(table: pa.Table) -> Iterable[Row]:
    return zip(*(map(_hashable, column.to_pylist()) for column in table.columns), strict=True)


def _hashable(value: Any) -> Any:
    """A value that can be counted: an array as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _comparable_row(row: Row) -> Row:
    return tuple(_comparable(value) for value in row)


def _comparable(value: Any) -> Any:
    """Not-a-number is equal to itself in a table, and not in Python."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
