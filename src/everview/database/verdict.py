"""The verdict of an audit: which rows a view lacks and which it has too many, as bags."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from everview.database.cost.choose import is_fraction
from everview.expr.types import WEIGHT, Schema, names
from everview.runtime.protocol import Difference

TOLERANCE = 1e-9
"""The relative difference within which doubles are equal: sums depend on the order of addition."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ViewAudit:
    """One view against its query: rows that the view lacks, and rows that it has too many.

    `rows` is the number of rows of the view, and `unchecked` says why it could not be compared.
    `ours` says why the query was read by Everview itself; it is empty where Spark read it, which
    shares nothing with what maintains the view.
    """

    view: str
    rows: int | None
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]
    unchecked: str = ""
    """Why it could not be compared, where this engine does not know what its query means."""
    ours: str = ""

    @property
    def ok(self) -> bool:
        """Whether the view equals its query."""
        return not (self.missing or self.surplus or self.unchecked)


def judge(view: str, schema: Schema, found: Difference) -> ViewAudit:
    """The verdict from query − view as weighted rows: positive is missing, negative surplus."""
    columns = [found.weighted.column(name).to_pylist() for name in (*names(schema), WEIGHT)]
    missing: Counter[Row] = Counter()
    surplus: Counter[Row] = Counter()
    for *values, weight in zip(*columns, strict=True):
        (missing if weight > 0 else surplus)[tuple(map(_hashable, values))] += abs(weight)
    return replace(_verdict(view, schema, found.rows, missing, surplus), ours=found.ours)


def compare(view: str, schema: Schema, expected: pa.Table, found: pa.Table) -> ViewAudit:
    """The verdict from two tables of rows: what `found` lacks is missing, the rest surplus."""
    missing, surplus = _bag(expected), _bag(found)
    both = missing & surplus
    return _verdict(view, schema, found.num_rows, missing - both, surplus - both)


def _bag(rows: pa.Table) -> Counter[Row]:
    columns = (map(_hashable, column.to_pylist()) for column in rows.columns)
    return Counter(zip(*columns, strict=True))


def _verdict(
    view: str, schema: Schema, rows: int, missing: Counter[Row], surplus: Counter[Row]
) -> ViewAudit:
    inexact = tuple(i for i, column in enumerate(schema) if is_fraction(column.type))
    if inexact:
        missing, surplus = _without_rounding(missing, surplus, inexact)
    return ViewAudit(view, rows, tuple(missing.elements()), tuple(surplus.elements()))


def _hashable(value: Any) -> Any:
    """A hashable value: nested ones as tuples."""
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return value
    return tuple(map(_hashable, value))


def _without_rounding(
    missing: Counter[Row], surplus: Counter[Row], inexact: tuple[int, ...]
) -> tuple[Counter[Row], Counter[Row]]:
    """What is left when rows that differ only by rounding cancel."""

    def exact(row: Row) -> Row:
        return tuple(value for i, value in enumerate(row) if i not in inexact)

    waiting: dict[Row, list[Row]] = {}
    for row in surplus.elements():
        waiting.setdefault(exact(row), []).append(row)
    left: Counter[Row] = Counter()
    for row in missing.elements():
        others = waiting.get(exact(row), [])
        partner = next((o for o in others if _close(row, o, inexact)), None)
        if partner is None:
            left[row] += 1
        else:
            others.remove(partner)
    return left, Counter(row for others in waiting.values() for row in others)


def _close(a: Row, b: Row, inexact: tuple[int, ...]) -> bool:
    return all(_same(a[i], b[i]) for i in inexact)


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(_same, x, y))
    if not (isinstance(x, float) and isinstance(y, float)):
        return bool(x == y)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or math.isclose(x, y, rel_tol=TOLERANCE)
