"""A case: tables, views and transactions in the order in which they happen, as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from everview.plan.types import Schema, names

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to create."""

    name: str
    columns: Schema
    key: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()

    def key_of(self, row: Row) -> Row:
        """The values of the primary key."""
        return tuple(row[names(self.columns).index(name)] for name in self.key)


@dataclass(frozen=True, slots=True)
class View:
    """A view to create, over what is there by then.

    A `portable` query means in DuckDB's own SQL what it means here.
    """

    name: str
    query: str
    portable: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that a transaction inserts into, deletes from or upserts into a table."""

    kind: Literal["insert", "delete", "upsert"]
    table: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that happen together; `forbidden` ones break a constraint and must be refused."""

    changes: tuple[Change, ...]
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Reopen:
    """The store is closed and opened again, by the other engine where there are two."""

    other: bool = False


@dataclass(frozen=True, slots=True)
class Compact:
    """The segments of every relation are added up."""


Step: TypeAlias = Table | View | Transaction | Reopen | Compact


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
        """The views of the case."""
        return tuple(step for step in self.steps if isinstance(step, View))


@dataclass(slots=True)
class Contents:
    """What the tables hold, by definition: a bag of rows each."""

    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, Counter[Row]] = field(default_factory=dict)

    def copy(self) -> Contents:
        """The same contents, to be changed apart."""
        return Contents(dict(self.tables), {name: Counter(bag) for name, bag in self.rows.items()})

    def create(self, table: Table) -> None:
        """Add an empty table."""
        self.tables[table.name] = table
        self.rows[table.name] = Counter()

    def apply(self, change: Change) -> None:
        """Make a change; a row deleted more often than it is there has a negative count."""
        bag, table = self.rows[change.table], self.tables[change.table]
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
