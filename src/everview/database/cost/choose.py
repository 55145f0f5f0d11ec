"""Whether views are maintained or built anew: by what either is likely to take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from everview.database.cost.measurements import Samples
from everview.expr.types import FLOATS, Type
from everview.plan.nodes import Partition, Plan, Window
from everview.plan.traverse import walk

Way: TypeAlias = Literal["incremental", "recompute"]

CHANGED_ROW = 0.00003
"""Milliseconds for a changed row and each fetch that it drives, where more is not known.

It is rather too little: what is maintained is measured, what is not is guessed at again.
"""
BUILT_ROW = 0.0003
"""Milliseconds for a row that a build reads, where more is not known."""
LEAST_ROWS = 1000
"""A change of fewer rows is not weighed at all."""
LEAST_PART = 0.02
"""Nor is a change of a smaller part of what would be read."""
SPARK_SQL = 2.0
"""How many times as long as a build a program of Spark SQL takes, where more is not known."""
CLEARLY = 0.8
"""Building anew is chosen where it takes less than this part of the other way."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The way taken, and the milliseconds that either was expected to take; None: not weighed."""

    way: Way = "incremental"
    incremental: float | None = None
    recompute: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A change of `rows` rows of `tables`, and what each way has to do for the views.

    `fetches` says how many fetches it drives, `builds` how many rows each build reads, and `large`
    whether Spark SQL would do either.
    """

    tables: str
    rows: int
    fetches: int
    builds: Mapping[str, int]
    large: bool = False


def choose(question: Question, samples: Samples) -> Choice:
    """The cheaper way, and the one that is known well where there is little between them."""
    read = sum(question.builds.values())
    if question.rows < LEAST_PART * read:
        return Choice()
    building = sum(
        samples.builds[name].at(rows, BUILT_ROW) if name in samples.builds else rows * BUILT_ROW
        for name, rows in question.builds.items()
    )
    maintaining = _maintaining(question, samples, building)
    way: Way = "recompute" if building < CLEARLY * maintaining else "incremental"
    return Choice(way, maintaining, building)


def _maintaining(question: Question, samples: Samples, building: float) -> float:
    """What the program is likely to take.

    Spark SQL fetches from a relation by reading all of it, so a program of it is not cheaper than
    a build, as long as none as large was measured.
    """
    each = CHANGED_ROW * (1 + question.fetches)
    known = samples.changes.get(question.tables)
    if question.large and (known is None or known.rows < question.rows / 2):
        return SPARK_SQL * building
    return known.at(question.rows, each) if known else question.rows * each


def is_exact(plan: Plan) -> bool:
    """Whether its value, computed another way, is the same to the last digit.

    Totals are. What is computed from the rows of a group in any order may not be: sums of
    fractions, and means that go through them.
    """
    computed = (
        each
        for node in walk(plan)
        if isinstance(node, Partition | Window)
        for each in (node.aggregates if isinstance(node, Partition) else node.columns)
    )
    return not any(each.function == "avg" or is_fraction(each.type) for each in computed)


def is_fraction(type_: Type) -> bool:
    """Whether some part of a type is a float or a double."""
    return _FRACTION.search(type_) is not None


_FRACTION = re.compile(rf"\b({'|'.join(FLOATS)})\b")
"""A field of such a name does no harm."""
