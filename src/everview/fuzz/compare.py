"""Whether two bags of rows are equal: exactly, doubles to the audit's tolerance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from everview.engine.arrow import arrow_schema
from everview.fuzz.case import Row
from everview.pipeline.audit import ViewAudit, judge
from everview.plan.types import Schema


def difference(name: str, schema: Schema, left: pa.Table, right: pa.Table) -> ViewAudit:
    """The rows of `left` that `right` lacks, as missing, and the other way round, as surplus."""
    counts = Counter(_rows(left))
    counts.subtract(_rows(right))
    weighted = [(*row, count) for row, count in counts.items() if count]
    fields = list(arrow_schema(schema))
    columns = zip(*weighted, strict=True) if weighted else ((),) * len(fields)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)]
    return judge(name, schema, left.num_rows, pa.table(arrays, names=[f.name for f in fields]))


def same_bag(rows: pa.Table, expected: Counter[Row]) -> bool:
    """Whether a table holds exactly the rows expected."""
    return Counter(map(_named, _rows(rows))) == Counter(map(_named, expected.elements()))


def _rows(table: pa.Table) -> Iterable[Row]:
    return zip(*(map(_fixed, column.to_pylist()) for column in table.columns), strict=True)


def _fixed(value: Any) -> Any:
    """A value that can be counted: an array as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _named(row: Row) -> Row:
    return tuple(_name(value) for value in row)


def _name(value: Any) -> Any:
    """Not-a-number is equal to itself in a table, and not in Python."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
