"""Rows that violate a constraint: the error for them, and whether there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from everview.compiler import Assertion
from everview.database.audit_query import declared
from everview.database.queries import select
from everview.errors import UserError
from everview.expr.types import WEIGHT
from everview.lang.sql.lower.top_level_query import lower_ordered
from everview.program.constraints import ASSERTION, DUPLICATE_KEY, MISSING_ROW
from everview.program.steps import Check
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.results import Result

MAX_ROWS_SHOWN = 20
"""How many of the offending rows an error shows."""
_VALUE_MAX_SHOWN = 200
"""How many characters of a value an error shows."""


def shown_row(row: Mapping[str, Any], show: Callable[[object], str] = repr) -> str:
    """A row as text.

    >>> shown_row({"id": 1, "name": None})
    '(id=1, name=None)'
    """
    return "(" + ", ".join(f"{name}={show(value)}" for name, value in row.items()) + ")"


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE_MAX_SHOWN else f"{text[:_VALUE_MAX_SHOWN]}…"


def violation(check: Check, rows: pa.Table) -> UserError:
    """The error for rows that violate a check; nothing has been changed."""
    columns = [name for name in rows.column_names if name != WEIGHT]
    if check.rule == DUPLICATE_KEY:
        columns = list(check.columns)
    first = rows.select(columns).slice(0, MAX_ROWS_SHOWN).to_pylist()
    more = f" and {rows.num_rows - MAX_ROWS_SHOWN} more" if rows.num_rows > MAX_ROWS_SHOWN else ""
    listed = ", ".join(shown_row(row, _cut) for row in first) + more
    if check.rule == ASSERTION:
        return UserError(
            "T014",
            f"{check.table} is violated: {' '.join(check.text.split())}: {listed}",
            remedy="give rows that satisfy it; nothing has changed",
        )
    if check.rule == DUPLICATE_KEY:
        return UserError(
            "T010",
            f"{check.table} would have two rows with the same primary key: {listed}",
            remedy="upsert the rows, or delete the old ones in the same transaction",
        )
    if check.rule == MISSING_ROW:
        return UserError(
            "T011",
            f"{check.table} does not have the rows to be deleted: {listed}",
            remedy="delete rows exactly as they are stored; read the table to see them",
        )
    return UserError(
        "T012",
        f"NULL in a column of {check.table} that may not be NULL "
        f"({', '.join(check.columns)}): {listed}",
        remedy="give a value",
    )


def must_hold(assertion: Assertion, engine: Engine, after: Snapshot) -> None:
    """Refuse an epoch in which rows violate an assertion, which is evaluated as a whole.

    It is read as for its program: Spark itself does not read every condition.
    """
    check = Check(ASSERTION, assertion.name, (), assertion.plan, assertion.text)
    query = lower_ordered(_some(assertion.query), declared(after), engine.analyze)
    _must_have_none(check, engine.select(query, after, {}))


def must_be_empty(
    check: Check, query: str, reads: tuple[str, ...], engine: Engine, after: Snapshot
) -> None:
    """Refuse an epoch in which a query has rows, which violate a check."""
    _must_have_none(check, select(engine, _some(query), reads, after, {}))


def _some(query: str) -> str:
    return f"SELECT * FROM ({query}) AS violating LIMIT {MAX_ROWS_SHOWN + 1}"


def _must_have_none(check: Check, found: Result) -> None:
    rows: pa.Table = found.to_arrow()
    if rows.num_rows:
        raise violation(check, rows)
