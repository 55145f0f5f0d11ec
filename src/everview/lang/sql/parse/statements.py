"""The statements of the language, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.errors import Span
from everview.expr.types import Schema
from everview.lang.sql.parse.constraints import Constraint
from everview.lang.sql.parse.functions import Function

STRICT, AUTO = "strict", "auto"
"""How a view is refreshed: only incrementally, or with blocks recomputed where needed."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with its columns and constraints, or AS a query.

    `lengths` says how many characters the texts of a column may have. `defaults` and `generated`
    are expressions for columns that a row does not give.
    """

    name: str
    columns: Schema
    key: tuple[str, ...]
    not_null: tuple[str, ...]
    if_not_exists: bool
    span: Span
    query: Query | None = None
    lengths: tuple[tuple[str, int], ...] = ()
    constraints: tuple[Constraint, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    generated: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateAssertion:
    """CREATE ASSERTION: a condition on all tables and views."""

    constraint: Constraint
    span: Span


@dataclass(frozen=True, slots=True)
class AlterConstraints:
    """ALTER TABLE that adds and drops constraints, by name, or SETs and DROPs NOT NULL."""

    table: str
    added: tuple[Constraint, ...]
    dropped: tuple[tuple[str, bool], ...]
    not_null: tuple[tuple[str, bool], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED] VIEW over a query, kept as it was written."""

    name: str
    query: str
    columns: tuple[str, ...]
    if_not_exists: bool
    span: Span
    replaces: bool = False
    refresh: str = STRICT
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION with an expression as its body."""

    function: Function
    if_not_exists: bool
    replaces: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE, VIEW, FUNCTION or ASSERTION."""

    kind: str
    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO a table, from VALUES or a query."""

    table: str
    columns: tuple[str, ...]
    query: str
    span: Span


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM a table."""

    table: str
    alias: str
    where: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE a table: new values for columns of the rows that satisfy a condition."""

    table: str
    alias: str
    assignments: tuple[tuple[str, str], ...]
    where: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN of a MERGE: for which rows, and what happens to them."""

    matched: bool
    condition: str | None
    action: str
    columns: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO a table USING a source."""

    table: str
    alias: str
    source: str
    on: str
    clauses: tuple[MergeClause, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TransactionBracket:
    """BEGIN, COMMIT or ROLLBACK."""

    action: str
    span: Span


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a view."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT over tables and views."""

    text: str
    reads: tuple[str, ...]
    span: Span


Statement: TypeAlias = (
    CreateTable
    | CreateView
    | CreateFunction
    | CreateAssertion
    | AlterConstraints
    | Drop
    | Insert
    | Delete
    | Update
    | Merge
    | TransactionBracket
    | Explain
    | Query
)
