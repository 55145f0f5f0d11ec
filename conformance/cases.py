"""What a case is: tables, views, changes and checks, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """CREATE TABLE, as it is written; `query` is the source of a CREATE TABLE AS."""

    name: str
    sql: str
    columns: tuple[tuple[str, str], ...]
    keyed: bool = False
    query: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A view and its query, in Spark's dialect."""

    name: str
    query: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP VIEW or DROP TABLE."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that leave and rows that come, in one transaction: (table, row) pairs."""

    delete: tuple[tuple[str, Row], ...]
    insert: tuple[tuple[str, Row], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A change known only as SQL: INSERT or DELETE."""

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Check:
    """A query and the rows that others recorded for it, cells as text."""

    query: str
    expected: tuple[tuple[str, ...], ...]
    null: str


Step: TypeAlias = Table | View | Drop | Change | Statement | Check


@dataclass(frozen=True, slots=True)
class Case:
    """One independent case of a suite; `disturbed` asks for changes made up around its rows."""

    id: str
    suite: str
    steps: tuple[Step, ...]
    disturbed: bool = False

    def tables(self) -> dict[str, Table]:
        """The tables of the case, by name."""
        return {step.name: step for step in self.steps if isinstance(step, Table)}


def change(table: str, delete: Iterable[Iterable[Any]], insert: Iterable[Iterable[Any]]) -> Change:
    """The change of one table."""
    return Change(
        tuple((table, tuple(row)) for row in delete), tuple((table, tuple(row)) for row in insert)
    )


def parse_table(sql: str) -> Table:
    """A table from its CREATE TABLE in Spark's dialect.

    >>> parse_table("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP)").columns
    (('id', 'INT'), ('at', 'TIMESTAMP'))
    """
    tree = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(tree, exp.Create)
    columns = tuple(
        (column.name, column.args["kind"].sql(dialect="spark"))
        for column in tree.this.find_all(exp.ColumnDef)
        if column.parent is tree.this
    )
    keyed = tree.find(exp.PrimaryKey, exp.PrimaryKeyColumnConstraint) is not None
    query = tree.expression.sql(dialect="spark") if tree.expression else None
    return Table(tree.find(exp.Table).name, sql, columns, keyed, query)  # type: ignore[union-attr]
