"""Whether views are maintained or recomputed: whichever is likely to take less time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.database.cost.measurements import Measurements
from everview.expr.types import FLOATS, Type
from everview.plan.nodes import Partition, Plan, Window
from everview.plan.traverse import walk

Way: TypeAlias = Literal["incremental", "recompute"]

CHANGED_ROW_MS = 0.00003
"""Guessed milliseconds per changed row, and per fetch that it drives.

Deliberately low: an optimistic guess gets measured and corrected, a pessimistic one never is.
"""
BUILT_ROW_MS = 0.0003
"""Guessed milliseconds per row that a build reads."""
WEIGHED_MIN_ROWS = 1000
"""A smaller change is maintained without weighing the two ways."""
WEIGHED_MIN_FRACTION = 0.02
"""So is a change of fewer rows than this fraction of what recomputing would read."""
SPARK_SQL_FACTOR = 2.0
"""Guessed time of a program in Spark SQL, as a multiple of recomputing."""
RECOMPUTE_MAX_RATIO = 0.8
"""Recomputing must be expected to take less than this fraction of maintaining."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The way taken, and the milliseconds that either was expected to take; None: not weighed."""

    way: Way = "incremental"
    incremental: float | None = None
    recompute: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """What each way has to do for the views when `rows` rows of `tables` change.

    Maintaining drives `fetches` fetches per changed row; recomputing reads `builds` rows, by
    relation. `large`: Spark SQL would do either.
    """

    tables: str
    rows: int
    fetches: int
    builds: Mapping[str, int]
    large: bool = False


def choose(work: Workload, measured: Measurements) -> Choice:
    """The cheaper way; maintaining unless recomputing is clearly cheaper."""
    read = sum(work.builds.values())
    if work.rows < WEIGHED_MIN_FRACTION * read:
        return Choice()
    recompute = sum(
        measured.builds[name].estimate(rows, BUILT_ROW_MS)
        if name in measured.builds
        else rows * BUILT_ROW_MS
        for name, rows in work.builds.items()
    )
    incremental = _incremental_ms(work, measured, recompute)
    way: Way = "recompute" if recompute < RECOMPUTE_MAX_RATIO * incremental else "incremental"
    return Choice(way, incremental, recompute)


def _incremental_ms(work: Workload, measured: Measurements, recompute: float) -> float:
    """What the program is likely to take.

    Spark SQL fetches from a relation by reading all of it, so as long as no change about as large
    was measured, a program in Spark SQL is not expected to be cheaper than recomputing.
    """
    per_row = CHANGED_ROW_MS * (1 + work.fetches)
    before = measured.changes.get(work.tables)
    if work.large and (before is None or before.rows < work.rows / 2):
        return SPARK_SQL_FACTOR * recompute
    return before.estimate(work.rows, per_row) if before else work.rows * per_row


def is_exact(plan: Plan) -> bool:
    """Whether a plan has the same value to the last digit in whatever order rows are added.

    Sums of whole numbers and decimals do. Sums of floats, and means that go through them, may not.
    """
    computed = (
        each
        for node in walk(plan)
        if isinstance(node, Partition | Window)
        for each in (node.aggregates if isinstance(node, Partition) else node.columns)
    )
    return not any(each.function == "avg" or is_fraction(each.type) for each in computed)


def is_fraction(type_: Type) -> bool:
    """Whether a type is, or contains, a float or a double."""
    return _FRACTION.search(type_) is not None


_FRACTION = re.compile(rf"\b({'|'.join(FLOATS)})\b")
"""A struct with a field called `float` matches too, which costs speed and no answer."""
