"""Whether views equal their queries: the law, checked on the stored data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from everview.database.catalog.catalog import BEYOND_REACH, Catalog
from everview.database.cost.choose import is_fraction
from everview.database.error_context import sound
from everview.errors import UserError
from everview.expr.types import WEIGHT, Schema, names
from everview.lang.front_end import SQL
from everview.runtime.protocol import Difference, Engine, Snapshot

TOLERANCE = 1e-9
"""Sums of doubles depend on the order of addition; they agree to this relative difference."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ViewAudit:
    """One view against its query: rows that the view lacks, and rows it has too many.

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


@dataclass(frozen=True, slots=True)
class Audit:
    """The views audited, at one epoch."""

    epoch: int
    views: tuple[ViewAudit, ...]

    @property
    def ok(self) -> bool:
        """Whether every view equals its query."""
        return all(view.ok for view in self.views)

    def __iter__(self) -> Iterator[ViewAudit]:
        return iter(self.views)


def audit_view(
    name: str, catalog: Catalog, engine: Engine, snapshot: Snapshot, *, whole: bool
) -> ViewAudit:
    """A view against its query, over the tables alone when `whole`, else over what it reads."""
    if name not in catalog.views:
        raise UserError("C006", f"{name} is a table", remedy="audit a view")
    if (problem := catalog.beyond_reach.get(name)) is not None:
        told = f"{name} cannot be audited here: {problem.problem}"
        raise UserError("E015", told, remedy=problem.remedy)
    needed, tables = [name], list[str]()
    for each in needed:
        for read in catalog.reads(each):
            (needed if whole and read in catalog.views else tables).append(read)
    texts = {
        each: view.query if view.language == SQL else catalog.written(each)
        for each, view in catalog.views.items()
        if each in needed
    }
    with sound(snapshot):
        found = engine.difference(name, texts, tuple(dict.fromkeys(tables)), snapshot)
    return judge(name, catalog.schema(name), found)


def audit_all(catalog: Catalog, engine: Engine, snapshot: Snapshot) -> Audit:
    """Every view against its query over what it reads, or why this engine cannot evaluate it."""
    found = []
    for name in catalog.views:
        try:
            found.append(audit_view(name, catalog, engine, snapshot, whole=False))
        except UserError as problem:
            if problem.code not in BEYOND_REACH:
                raise
            found.append(ViewAudit(name, None, (), (), problem.problem))
    return Audit(snapshot.manifest.epoch, tuple(found))


def judge(view: str, schema: Schema, found: Difference) -> ViewAudit:
    """The verdict from query − view as weighted rows: positive is missing, negative surplus."""
    columns = [found.weighted.column(name).to_pylist() for name in (*names(schema), WEIGHT)]
    missing: Counter[Row] = Counter()
    surplus: Counter[Row] = Counter()
    for *values, weight in zip(*columns, strict=True):
        (missing if weight > 0 else surplus)[tuple(map(_counted, values))] += abs(weight)
    return replace(_verdict(view, schema, found.rows, missing, surplus), ours=found.ours)


def compare(view: str, schema: Schema, expected: pa.Table, found: pa.Table) -> ViewAudit:
    """The verdict from two tables of rows: what `found` lacks is missing, the rest surplus."""
    missing, surplus = _bag(expected), _bag(found)
    both = missing & surplus
    return _verdict(view, schema, found.num_rows, missing - both, surplus - both)


def _bag(rows: pa.Table) -> Counter[Row]:
    columns = (map(_counted, column.to_pylist()) for column in rows.columns)
    return Counter(zip(*columns, strict=True))


def _verdict(
    view: str, schema: Schema, rows: int, missing: Counter[Row], surplus: Counter[Row]
) -> ViewAudit:
    inexact = tuple(i for i, column in enumerate(schema) if is_fraction(column.type))
    if inexact:
        missing, surplus = _without_rounding(missing, surplus, inexact)
    return ViewAudit(view, rows, tuple(missing.elements()), tuple(surplus.elements()))


def _counted(value: Any) -> Any:
    """A value that can be counted: nested ones as tuples."""
    if isinstance(value, dict):
        value = value.items()
    elif not isinstance(value, list | tuple):
        return value
    return tuple(map(_counted, value))


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
