"""A case: tables, views and transactions in the order in which they happen, as data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from everview.expr.types import Schema, names
from everview.lang.sql.parse.functions import Function

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to create: empty, or with the rows that another one has by then."""

    name: str
    columns: Schema
    key: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    copied: str = ""

    def place(self, column: str) -> int:
        """Where in a row the value of a column is."""
        return names(self.columns).index(column)

    def key_of(self, row: Row) -> Row:
        """The values of the primary key."""
        return tuple(row[self.place(name)] for name in self.key)


@dataclass(frozen=True, slots=True)
class View:
    """A view to create, over what is there by then, or another query for one that is there.

    A `portable` query means in DuckDB's own SQL what it means here. Without a `policy` one is
    chosen.
    """

    name: str
    query: str
    portable: bool = False
    refresh: Literal["strict", "auto"] = "strict"
    replaces: bool = False
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that a transaction inserts into, deletes from or upserts into a table."""

    kind: Literal["insert", "delete", "upsert"]
    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A change that a subquery decides: the values of `other`.`read` that are not NULL.

    They say which rows of the table are meant, by `column`. Those are deleted, or updated to have
    the value that `row` has for `target`. MERGE updates them, and inserts `row` with every value
    that no row has. INSERT … SELECT inserts `row` with each of the values.
    """

    kind: Literal["delete", "update", "merge", "copy"]
    table: str
    column: str
    other: str
    read: str
    row: Row
    target: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that happen together; `forbidden` ones break a constraint and must be refused."""

    changes: tuple[Change | Statement, ...]
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Reopen:
    """The store is closed and opened again, by the other engine where there are two."""

    other: bool = False


@dataclass(frozen=True, slots=True)
class Compact:
    """The segments of every relation are added up."""


Step: TypeAlias = Table | Function | View | Transaction | Reopen | Compact


@dataclass(frozen=True, slots=True)
class Case:
    """What is done, in order, and the numbers it was drawn from."""

    seed: int
    number: int
    steps: tuple[Step, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the case."""
        return tuple(step for step in self.steps if isinstance(step, Table))

    @property
    def views(self) -> tuple[View, ...]:
        """The views of the case, a replaced one with each of its queries."""
        return tuple(step for step in self.steps if isinstance(step, View))


def reads(view: View, name: str) -> bool:
    """Whether a view names a table or another view."""
    return view.name != name and re.search(rf"\b{name}\b", view.query) is not None


def readers(view: View, views: Sequence[View]) -> set[str]:
    """The view, and all that read it, directly or not, where each is after what it reads."""
    found = {view.name}
    for each in views:
        if any(reads(each, name) for name in found):
            found.add(each.name)
    return found


@dataclass(slots=True)
class Contents:
    """What the tables hold, by definition: a bag of rows each."""

    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, Counter[Row]] = field(default_factory=dict)

    def copy(self) -> Contents:
        """The same contents, to be changed apart."""
        return Contents(dict(self.tables), {name: Counter(bag) for name, bag in self.rows.items()})

    def create(self, table: Table) -> None:
        """Add a table."""
        self.tables[table.name] = table
        self.rows[table.name] = Counter()
        if table.copied:
            places = [self.tables[table.copied].place(name) for name in names(table.columns)]
            for row, count in self.rows[table.copied].items():
                self.rows[table.name][tuple(row[at] for at in places)] += count

    def apply(self, change: Change | Statement) -> None:
        """Make a change; a row deleted more often than it is there has a negative count."""
        bag, table = self.rows[change.table], self.tables[change.table]
        if isinstance(change, Statement):
            self.rows[table.name] = self._after(change, table)
            return
        if change.kind == "upsert":
            self._replace(table, change.rows)
            return
        for row in change.rows:
            bag[row] += 1 if change.kind == "insert" else -1
            if not bag[row]:
                del bag[row]

    def _replace(self, table: Table, rows: tuple[Row, ...]) -> None:
        """Of several rows with one key the last one stays."""
        bag = self.rows[table.name]
        last = {table.key_of(row): row for row in rows}
        for old in [row for row in bag if table.key_of(row) in last]:
            del bag[old]
        bag.update(last.values())

    def _after(self, change: Statement, table: Table) -> Counter[Row]:
        """The rows of a table after a statement, from its definition."""
        before, at = self.rows[table.name], table.place(change.column)
        there = self.tables[change.other].place(change.read)
        read = Counter[Any]()
        for row, count in self.rows[change.other].items():
            read[row[there]] += count
        del read[None]
        if change.kind == "copy":
            return before + Counter({_changed(change.row, at, v): n for v, n in read.items()})
        meant = Counter({row: n for row, n in before.items() if row[at] in read})
        after = before - meant
        if change.kind != "delete":
            set_ = table.place(change.target)
            for row, count in meant.items():
                after[_changed(row, set_, change.row[set_])] += count
        if change.kind == "merge":
            present = {row[at] for row in before}
            missing = [value for value in read if value not in present]  # in a fixed order
            after.update(_changed(change.row, at, value) for value in missing)
        return after

    def problem(self) -> str | None:
        """Why these contents may not be committed, None when they may."""
        for name, bag in self.rows.items():
            table = self.tables[name]
            required = [names(table.columns).index(each) for each in table.not_null]
            if any(count < 0 for count in bag.values()):
                return f"a row is deleted from {name} that is not there"
            if any(row[i] is None for row in bag for i in required):
                return f"NULL in a column of {name} that is NOT NULL"
            found = Counter(table.key_of(row) for row in bag.elements()) if table.key else Counter()
            if any(count > 1 for count in found.values()):
                return f"a primary key of {name} occurs twice"
        return None


def _changed(row: Row, at: int, value: Any) -> Row:
    return (*row[:at], value, *row[at + 1 :])
