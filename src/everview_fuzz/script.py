"""A case as a SQL script that shows the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from everview.expr.types import names
from everview.lang.sql.parse.functions import Function
from everview_fuzz.case import (
    Case,
    Change,
    Compact,
    Contents,
    Reopen,
    Row,
    Statement,
    Table,
    Transaction,
    View,
)
from everview_fuzz.literals import constant

ROWS_PER_STATEMENT = 20


def script(case: Case) -> str:
    """The statements of a case, in order; what SQL cannot say is said in a comment."""
    lines: list[str] = []
    contents = Contents()
    for step in case.steps:
        match step:
            case Table():
                contents.create(step)
                lines.append(f"{create_table(step)};")
            case Function():
                lines.append(f"{create_function(step)};")
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
    """CREATE TABLE with its constraints, or AS a query."""
    if table.copied:
        columns = ", ".join(f"`{column.name}`" for column in table.columns)
        return f"CREATE TABLE {table.name} AS SELECT {columns} FROM {table.copied}"
    parts = [
        f"`{column.name}` {column.type.upper()}{' NOT NULL' * (column.name in table.not_null)}"
        for column in table.columns
    ]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(f'`{name}`' for name in table.key)})")
    return f"CREATE TABLE {table.name} ({', '.join(parts)})"


def create_view(view: View) -> str:
    """CREATE MATERIALIZED VIEW with its query as it is."""
    create = "CREATE OR REPLACE" if view.replaces else "CREATE"
    given = {"refresh": "auto" if view.refresh == "auto" else "", "policy": view.policy}
    options = ", ".join(f"{name} = '{value}'" for name, value in given.items() if value)
    option = f" WITH ({options})" if options else ""
    return f"{create} MATERIALIZED VIEW {view.name}{option} AS {view.query}"


def create_function(function: Function) -> str:
    """CREATE FUNCTION."""
    takes = ", ".join(f"{column.name} {column.type.upper()}" for column in function.takes)
    gives = function.gives.upper()
    return f"CREATE FUNCTION {function.name}({takes}) RETURNS {gives} RETURN {function.body}"


def statement_text(change: Statement, table: Table) -> str:
    """DELETE, UPDATE, MERGE or INSERT with a subquery."""
    column, read, given = f"`{change.column}`", f"`{change.read}`", _constants(table, change.row)
    set_ = f"`{change.target}` = {given[table.place(change.target)]}"
    match change.kind:
        case "delete":
            return f"DELETE FROM {table.name} WHERE {column} IN (SELECT {read} FROM {change.other})"
        case "update":
            some = f"SELECT 1 FROM {change.other} AS o WHERE o.{read} = u.{column}"
            return f"UPDATE {table.name} AS u SET {set_} WHERE EXISTS ({some})"
    given[table.place(change.column)] = "o.v"
    if change.kind == "copy":
        values = f"(SELECT {read} AS v FROM {change.other} WHERE {read} IS NOT NULL)"
        return f"INSERT INTO {table.name} SELECT {', '.join(given)} FROM {values} AS o"
    values = f"(SELECT DISTINCT {read} AS v FROM {change.other} WHERE {read} IS NOT NULL)"
    listed = ", ".join(f"`{name}`" for name in names(table.columns))
    return (
        f"MERGE INTO {table.name} AS u USING {values} AS o ON u.{column} = o.v "
        f"WHEN MATCHED THEN UPDATE SET {set_} "
        f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({', '.join(given)})"
    )


def _transaction(step: Transaction, contents: Contents) -> list[str]:
    after = contents.copy()
    statements = [line for change in step.changes for line in _change(change, after)]
    if not step.forbidden:
        contents.rows = after.rows
    return ["BEGIN;", *statements, "COMMIT;"]


def _change(change: Change | Statement, contents: Contents) -> list[str]:
    """The change as statements, and done to the contents."""
    table = contents.tables[change.table]
    before = contents.rows[table.name].copy()
    contents.apply(change)
    if isinstance(change, Statement):
        return [f"{statement_text(change, table)};"]
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
    chunks = [listed[i : i + ROWS_PER_STATEMENT] for i in range(0, len(listed), ROWS_PER_STATEMENT)]
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
