"""How many rows and values states hold, those of a recursion per iteration, as a table."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from everview.expr.types import ITERATION, WEIGHT
from everview.store.store import Store

MAX_LINES = 20
"""The most lines of the table; the last one sums up the remaining iterations."""


def rows_at(store: Store, state: str) -> dict[int, int]:
    """How many rows are stored of a state at each iteration, in the newest epoch."""
    relation = store.latest().relations.get(state)
    segments = relation.segments if relation else ()
    files = [file for segment in segments for file in segment.files]
    rows = store.read_files(files, columns=[ITERATION])
    counts = rows.column(ITERATION).value_counts().to_pylist() if rows.num_columns else []
    return dict(sorted((each["values"], each["counts"]) for each in counts))


def entries_of(store: Store, state: str, columns: tuple[str, ...]) -> int:
    """How many different values some columns of a state have, in the newest epoch."""
    relation = store.latest().relations.get(state)
    files = [file for segment in relation.segments for file in segment.files] if relation else []
    rows = store.read_files(files, columns=[*columns, WEIGHT])
    if not rows.num_columns:
        return 0
    summed = rows.group_by(list(columns)).aggregate([(WEIGHT, "sum")])
    return int(pc.sum(pc.not_equal(summed[f"{WEIGHT}_sum"], 0)).as_py() or 0)


def table(states: Mapping[str, Mapping[int, int]]) -> list[str]:
    """The rows of each state by iteration.

    >>> print(*table({"reach": {1: 4, 2: 10, 3: 1}, "ways": {1: 5, 3: 2}}), sep="\\n")
    iteration  reach  ways
            1      4     5
            2     10     0
            3      1     2
    """
    last = max((max(rows, default=0) for rows in states.values()), default=0)
    shown = MAX_LINES if last <= MAX_LINES else MAX_LINES - 1
    lines = [("iteration", *states)]
    for first in range(1, min(shown, last) + 1):
        lines.append((str(first), *(str(rows.get(first, 0)) for rows in states.values())))
    if last > shown:
        rest = (sum(n for at, n in rows.items() if at > shown) for rows in states.values())
        lines.append((f"{shown + 1}–{last}", *map(str, rest)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.rjust, line, widths)) for line in lines]
