"""The statements of the language, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from everview.errors import Span
from everview.expr.types import Schema
from everview.lang.sql.parse.alterations import Action
from everview.lang.sql.parse.constraints import Constraint
from everview.lang.sql.parse.functions import Function

Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values for the parameters of statements, by position or by name."""

STRICT, AUTO = "strict", "auto"
"""How a view is refreshed: only incrementally, or with blocks recomputed where needed."""


FIRST_ORDER, CIRCUIT, HIGHER_ORDER = "first-order", "circuit", "higher-order"
POLICIES = (FIRST_ORDER, CIRCUIT, HIGHER_ORDER)
NESTED_MODES = (AUTO, "shredded", "inline")
"""How the collections inside the rows of a view are kept."""
"""What is stored for a view: the tables only, the inputs of operators too, or partial aggregates in
place of joins."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with its columns and constraints, or AS a query.

    `lengths` says how many characters the texts of a column may have. `defaults` and `generated`
    are expressions for columns that a row does not give. A table that `is_set` has no row twice.
    `collections` are the paths of the arrays that are stored by themselves.
    """

    name: str
    columns: Schema
    key: tuple[str, ...]
    not_null: tuple[str, ...]
    if_not_exists: bool
    span: Span
    query: Query | None = None
    lengths: tuple[tuple[str, int], ...] = ()
    comment: str = ""
    column_comments: tuple[tuple[str, str], ...] = ()
    is_set: bool = False
    constraints: tuple[Constraint, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    generated: tuple[tuple[str, str], ...] = ()
    collections: tuple[str, ...] = ()


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
    if_exists: bool
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
    comment: str = ""
    policy: str = ""
    nested: str = "auto"


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION with an expression as its body."""

    function: Function
    if_not_exists: bool
    replaces: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE, VIEW, FUNCTION or ASSERTION; with `cascade` what rests on it goes too."""

    kind: str
    name: str
    if_exists: bool
    span: Span
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Alter:
    """ALTER TABLE or ALTER VIEW: all of its actions together.

    With `cascade` the views that would break are dropped.
    """

    kind: str
    name: str
    actions: tuple[Action, ...]
    if_exists: bool
    cascade: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW of all tables or views, of the columns of one, or of the statement that creates it."""

    what: str
    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON a table, a view or a column; an empty text takes it away."""

    relation: str
    column: str | None
    text: str
    span: Span
    kind: str


@dataclass(frozen=True, slots=True)
class OnConflict:
    """ON CONFLICT of an INSERT: what happens to a row whose key is there already.

    Nothing, where there are no `assignments`; else these, to rows that satisfy the condition. Both
    call the row that is there by the `alias` of its table.
    """

    alias: str

    columns: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO a table, from VALUES or a query.

    Of a collection, `of` says in which row it is: the key, and the elements on the way down.
    """

    table: str
    columns: tuple[str, ...]
    query: str
    span: Span
    conflict: OnConflict | None = None
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM a table; from a collection `of` a row, elements that are named may go."""

    table: str
    alias: str
    where: str | None
    span: Span
    of: tuple[str, ...] = ()
    elements: str = ""


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE: all rows of some tables; with `cascade` of those that refer to them too."""

    tables: tuple[str, ...]
    span: Span
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE a table: new values for columns of the rows that satisfy a condition.

    In a collection `of` a row, for parts of elements.
    """

    table: str
    alias: str
    assignments: tuple[tuple[str, str], ...]
    where: str | None
    span: Span
    of: tuple[str, ...] = ()


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
class CopyInto:
    """COPY INTO a table FROM files; `options` are words and values as they are written."""

    table: str
    columns: tuple[str, ...]
    path: str
    options: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY a query TO a file."""

    query: str
    reads: tuple[str, ...]
    path: str
    options: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TransactionBracket:
    """BEGIN, COMMIT or ROLLBACK; BEGIN may give the transaction an id."""

    action: str
    span: Span
    id: str | tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a view."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class ExplainChanges:
    """EXPLAIN CHANGES OF a view or table: what the open transaction would change of it."""

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
    | Alter
    | Comment
    | Show
    | Insert
    | Delete
    | Update
    | Merge
    | Truncate
    | CopyInto
    | CopyTo
    | TransactionBracket
    | Explain
    | ExplainChanges
    | Query
)
