"""A case as a SQL script that shows the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from everview.fuzz.case import (
    Case,
    Change,
    Compact,
    Contents,
    Reopen,
    Row,
    Table,
    Transaction,
    View,
)
from everview.fuzz.literals import constant
from everview.plan.types import names

ROWS_A_STATEMENT = 20


def script(case: Case) -> str:
    """The statements of a case, in order; what SQL cannot say is said in a comment."""
    lines: list[str] = []
    contents = Contents()
    for step in case.steps:
        match step:
            case Table():
                contents.create(step)
                lines.append(f"{create_table(step)};")
            case View():
                lines.append(f"{create_view(step)};")
            case Transaction():
                lines += _transaction(step, contents)
            case Reopen():
                lines.append("-- here the store is closed and opened again")
            case Compact():
                lines.append("-- here the store is compacted")
    return "\n".join(lines) + "\n"


def create_table(table: Table) -> str:
    """CREATE TABLE with its constraints."""
    parts = [
        f"`{column.name}` {column.type.upper()}{' NOT NULL' * (column.name in table.not_null)}"
        for column in table.columns
    ]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(f'`{name}`' for name in table.key)})")
    return f"CREATE TABLE {table.name} ({', '.join(parts)})"


def create_view(view: View) -> str:
    """CREATE MATERIALIZED VIEW with its query as it is."""
    return f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}"


def _transaction(step: Transaction, contents: Contents) -> list[str]:
    after = contents.copy()
    statements = [line for change in step.changes for line in _change(change, after)]
    if not step.forbidden:
        contents.rows = after.rows
    return ["BEGIN;", *statements, "COMMIT;"]


def _change(change: Change, contents: Contents) -> list[str]:
    """The change as statements, and done to the contents."""
    table = contents.tables[change.table]
    before = contents.rows[table.name].copy()
    contents.apply(change)
    after = contents.rows[table.name]
    if change.kind == "insert":
        return _inserts(table, change.rows)
    # DELETE takes every copy of a row, so the copies that stay are inserted again.
    touched = [row for row in before if before[row] != after[row]]
    stay = Counter({row: after[row] for row in (*touched, *after) if after[row] != before[row]})
    kept = [row for row, count in stay.items() for _ in range(max(count, 0))]
    return [*_deletes(table, touched), *_inserts(table, kept)]


def _inserts(table: Table, rows: Iterable[Row]) -> list[str]:
    listed = [f"({', '.join(_constants(table, row))})" for row in rows]
    chunks = [listed[i : i + ROWS_A_STATEMENT] for i in range(0, len(listed), ROWS_A_STATEMENT)]
    return [f"INSERT INTO {table.name} VALUES {', '.join(chunk)};" for chunk in chunks]


def _deletes(table: Table, rows: Iterable[Row]) -> list[str]:
    found = []
    for row in rows:
        pairs = zip(names(table.columns), _constants(table, row), strict=True)
        condition = " AND ".join(f"`{name}` <=> {value}" for name, value in pairs)
        found.append(f"DELETE FROM {table.name} WHERE {condition};")
    return found


def _constants(table: Table, row: Row) -> list[str]:
    return [constant(value, c.type) for value, c in zip(row, table.columns, strict=True)]
