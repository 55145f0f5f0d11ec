"""Shrinks a case: leaves out whatever is not needed to fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from everview.expr.types import names
from everview.lang.sql.parse.functions import Function
from everview_fuzz.case import (
    Case,
    Change,
    Contents,
    Row,
    Statement,
    Step,
    Table,
    Transaction,
    View,
    reads,
)
from everview_fuzz.check.run import Failure
from everview_fuzz.shrink.reductions import inlined, reductions

Fails: TypeAlias = Callable[[Case], Failure | None]
T = TypeVar("T")


def shrink(case: Case, failure: Failure, fails: Fails, seconds: float) -> tuple[Case, Failure]:
    """Make the case smaller while it fails with the same signature and there is time."""
    deadline = time.monotonic() + seconds
    found = fails(case)
    if found is None or found.signature != failure.signature:
        return case, failure
    best = replace(case, steps=case.steps[: found.step + 1])
    progress = True
    while progress:
        progress = False
        for reduction in PASSES:
            candidates = reduction(best)
            candidate = next(candidates, None)
            while candidate is not None and time.monotonic() < deadline:
                result = fails(candidate) if candidate.steps != best.steps else None
                if result is not None and result.signature == failure.signature:
                    kept = candidate.steps[: result.step + 1]
                    best, found, progress = replace(candidate, steps=kept), result, True
                    candidates = reduction(best)
                candidate = next(candidates, None)
    return best, found


def _without_some(items: Sequence[T]) -> Iterator[list[T]]:
    """The items without a half, a quarter, … of them, and without each one."""
    size = len(items) // 2 or 1
    while items and size:
        for start in range(0, len(items), size):
            yield [*items[:start], *items[start + size :]]
        size //= 2


def one_view(case: Case) -> Iterator[Case]:
    """With one view, and what it reads."""
    for view in reversed(case.views):
        needed = {view.name}
        for other in reversed(case.views):
            if any(reads(each, other.name) for each in case.views if each.name in needed):
                needed.add(other.name)
        kept = [s for s in case.steps if not isinstance(s, View) or s.name in needed]
        yield replace(case, steps=tuple(kept))


def fewer_layers(case: Case) -> Iterator[Case]:
    """With the query of one view inlined where the view was read."""
    for inner in case.views:
        if any(reads(each, inner.name) for each in case.views):
            yield replace(
                case,
                steps=tuple(
                    replace(s, query=inlined(s.query, inner)) if isinstance(s, View) else s
                    for s in case.steps
                    if s is not inner
                ),
            )


def fewer_steps(case: Case) -> Iterator[Case]:
    """Without some of the tables, views and transactions."""
    for steps in _without_some(case.steps):
        yield _repaired(case, steps)


def fewer_rows(case: Case) -> Iterator[Case]:
    """Without some of the rows that are inserted, deleted or upserted."""
    places = [
        (s, c, r)
        for s, step in enumerate(case.steps)
        if isinstance(step, Transaction)
        for c, change in enumerate(step.changes)
        for r in range(len(change.rows) if isinstance(change, Change) else 1)
    ]
    for kept in _without_some(places):
        yield _repaired(case, _with_rows(case.steps, set(kept)))


def _with_rows(steps: Sequence[Step], kept: set[tuple[int, int, int]]) -> list[Step]:
    made: list[Step] = []
    for s, step in enumerate(steps):
        if isinstance(step, Transaction):
            changes: list[Change | Statement] = []
            for c, each in enumerate(step.changes):
                if isinstance(each, Change):
                    rows = tuple(row for r, row in enumerate(each.rows) if (s, c, r) in kept)
                    changes.append(replace(each, rows=rows))
                elif (s, c, 0) in kept:
                    changes.append(each)
            made.append(replace(step, changes=tuple(changes)))
        else:
            made.append(step)
    return made


def simpler_queries(case: Case) -> Iterator[Case]:
    """With a view's query a little simpler."""
    for position, step in enumerate(case.steps):
        if isinstance(step, View):
            for query in reductions(step.query):
                steps = list(case.steps)
                steps[position] = replace(step, query=query)
                yield _repaired(case, steps)


def fewer_columns(case: Case) -> Iterator[Case]:
    """Without one column of a table."""
    for table in case.tables:
        for at, column in enumerate(table.columns):
            if len(table.columns) > 1 and column.name not in table.key:
                yield replace(
                    case, steps=tuple(_without_column(step, table, at) for step in case.steps)
                )


def _without_column(step: Step, table: Table, at: int) -> Step:
    def cut(row: Row) -> Row:
        return (*row[:at], *row[at + 1 :])

    def cut_from(change: Change | Statement) -> Change | Statement:
        if change.table != table.name:
            return change
        if isinstance(change, Statement):
            return replace(change, row=cut(change.row))
        return replace(change, rows=tuple(map(cut, change.rows)))

    match step:
        case Table() if step.name == table.name:
            columns = (*table.columns[:at], *table.columns[at + 1 :])
            required = tuple(name for name in table.not_null if name in names(columns))
            return replace(table, columns=columns, not_null=required)
        case Transaction():
            return replace(step, changes=tuple(map(cut_from, step.changes)))
        case _:
            return step


PASSES = (one_view, fewer_steps, fewer_rows, fewer_layers, simpler_queries, fewer_columns)
"""What is tried, in this order, until nothing helps."""


def _repaired(case: Case, steps: Sequence[Step]) -> Case:
    """The case without what the missing steps make impossible."""
    contents, made = Contents(), list[Step]()
    lost = {step.name for step in case.steps if isinstance(step, Table | Function | View)}
    lost -= {step.name for step in steps if isinstance(step, Table | Function | View)}
    for step in steps:
        match step:
            case Table() if step.copied in lost:
                lost.add(step.name)
            case Table():
                contents.create(step)
                made.append(step)
            case View():
                if any(reads(step, name) for name in lost):
                    lost.add(step.name)
                else:
                    made.append(step)
            case Transaction():
                made += _allowed_part(step, contents)
            case _:
                made.append(step)
    return replace(case, steps=tuple(made))


def _allowed_part(step: Transaction, contents: Contents) -> list[Step]:
    """The transaction with only those rows that the contents allow, done to the contents."""
    after = contents.copy()
    changes: list[Change | Statement] = []
    for change in step.changes:
        if change.table not in contents.tables:
            continue
        if isinstance(change, Statement):
            if change.other in contents.tables and _is_allowed(change, after):
                changes.append(change)
                after.apply(change)
            continue
        rows = change.rows if step.forbidden else _allowed_rows(change, after)
        if rows:
            changes.append(replace(change, rows=rows))
            after.apply(changes[-1])
    if step.forbidden:
        return [replace(step, changes=tuple(changes))] if after.problem() else []
    contents.rows = after.rows
    return [replace(step, changes=tuple(changes))] if changes else []


def _is_allowed(change: Statement, contents: Contents) -> bool:
    """Whether a statement breaks no constraint."""
    now = contents.copy()
    now.apply(change)
    return now.problem() is None


def _allowed_rows(change: Change, contents: Contents) -> tuple[Row, ...]:
    if change.kind == "upsert":
        return change.rows
    table, now = contents.tables[change.table], contents.copy()
    rows: list[Row] = []
    for row in change.rows:
        there = now.rows[table.name]
        if change.kind == "delete" and there[row] <= 0:
            continue
        taken = {table.key_of(each) for each in there} if table.key else set()
        if change.kind == "insert" and table.key and table.key_of(row) in taken:
            continue
        now.apply(replace(change, rows=(row,)))
        rows.append(row)
    return tuple(rows)
