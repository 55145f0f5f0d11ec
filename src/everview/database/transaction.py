"""A transaction: changes gathered, then all of them committed as one epoch, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from everview import arguments
from everview.database import rows as given
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.errors import UserError
from everview.expr.types import WEIGHT
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.results import Result

T = TypeVar("T")
Commit = Callable[["Transaction"], int]


class Exclusively(Protocol):
    """Runs a part of a transaction while nobody else writes."""

    def __call__(self, work: Callable[[], T], turn: Transaction, /) -> T:
        """The result of `work`."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Weighted rows of a table."""

    table: str
    rows: Any
    removes: bool

    @property
    def is_empty(self) -> bool:
        return isinstance(self.rows, pa.Table) and not self.rows.num_rows


class Transaction:
    """Changes of one or more tables, which become one epoch together, or not at all.

    Until then only later calls of the same transaction see them. A transaction that changes
    nothing makes no epoch.
    """

    def __init__(
        self,
        engine: Engine,
        snapshot: Snapshot,
        catalog: Catalog,
        commit: Commit,
        exclusively: Exclusively = lambda work, _: work(),
    ) -> None:
        self.engine = engine
        self.snapshot = snapshot
        self.catalog = catalog
        self.thread = get_ident()
        self._commit = commit
        self._exclusively = exclusively
        self._changes: tuple[_Change, ...] = ()
        """Replaced in one step, so that a statement is in it wholly or not at all."""
        self._open = True
        self._running = Lock()
        self._running.acquire()

    @property
    def is_open(self) -> bool:
        """Whether it has neither been committed nor rolled back."""
        return self._open

    @property
    def pending(self) -> Mapping[str, list[Any]]:
        """What has been changed so far: for each table, weighted rows."""
        pending: dict[str, list[Any]] = {}
        for change in self._changes:
            pending.setdefault(change.table, []).append(change.rows)
        return pending

    @property
    def removes(self) -> frozenset[str]:
        """The tables from which rows are removed."""
        return frozenset(change.table for change in self._changes if change.removes)

    def run(self, work: Callable[[], T]) -> T:
        """Do a part of the transaction, while nobody else writes."""
        self._must_be_open()
        return self._exclusively(work, self)

    def wait(self, seconds: float) -> None:
        """Return when it has ended, or after `seconds`."""
        if self._running.acquire(timeout=seconds):
            self._running.release()

    def insert(self, table: str, rows: Any) -> None:
        """Add rows: tuples, dicts, pandas, Arrow, Polars or a Spark DataFrame.

        For example:

            tx.insert("orders", [(4, 7, "2.00")])
        """
        self.run(lambda: self._change(self._table(table), rows, 1))

    def delete(self, table: str, rows: Any) -> None:
        """Remove rows, given whole; each must be there.

        For example:

            tx.delete("orders", [(1, 7, "10.00")])
        """
        self.run(lambda: self._change(self._table(table), rows, -1))

    def upsert(self, table: str, rows: Any) -> None:
        """Insert rows, each in the place of the row with the same primary key, if there is one.

        For example:

            tx.upsert("orders", [(1, 7, "12.00")])
        """
        self.run(lambda: self._upsert(self._table(table), rows))

    def _upsert(self, found: TableDefinition, rows: Any) -> None:
        if not found.key:
            raise UserError(
                "T004",
                f"{found.name} has no primary key, so no row can be replaced",
                remedy="declare a PRIMARY KEY, or delete and insert",
            )
        fresh = self._weighted(found, rows, 1)
        if given.is_frame(fresh):
            fresh = self.engine.frames.change(Result(fresh.toArrow, lambda: fresh), found.columns)
        if not isinstance(fresh, pa.Table):
            raise UserError(
                "T005",
                f"the DataFrame has too many rows to be upserted into {found.name}",
                remedy="insert it into a table of its own and MERGE that",
            )
        old = self._current(found, fresh)
        place, negative = old.schema.get_field_index(WEIGHT), pc.negate(old.column(WEIGHT))
        self._add(
            _Change(found.name, old.set_column(place, WEIGHT, negative), removes=True),
            _Change(found.name, _last_of_each_key(fresh, found.key), removes=False),
        )

    def add_weighted(self, table: str, rows: Any, *, removes: bool) -> None:
        """Add rows that carry their weights: an Arrow table or the engine's own frame."""
        self._must_be_open()
        self._add(_Change(table, rows, removes))

    def _add(self, *changes: _Change) -> None:
        """Add changes, all of them in one step."""
        filled = tuple(self._checked(each) for each in changes if not each.is_empty)
        self._changes = (*self._changes, *filled)

    def _checked(self, change: _Change) -> _Change:
        if isinstance(change.rows, pa.Table):
            must_be_in_calendar(change.rows, "a value of the column {}")
        return replace(change, rows=self._limited(self.catalog.table(change.table), change.rows))

    def commit(self) -> int:
        """Make all changes one epoch, and return its number."""

        def committed() -> int:
            self._open = False
            return self._commit(self)

        try:
            return self.run(committed)
        finally:
            self._end()

    def rollback(self) -> None:
        """Discard all changes."""
        self._end()

    def _end(self) -> None:
        """Wake up the writers that wait for it; again does nothing."""
        self._open, self._changes = False, ()
        if self._running.locked():
            with suppress(RuntimeError):
                self._running.release()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()

    def _table(self, name: str) -> TableDefinition:
        return self.catalog.table(arguments.text("table", name))

    def _change(self, table: TableDefinition, rows: Any, weight: int) -> None:
        self.add_weighted(table.name, self._weighted(table, rows, weight), removes=weight < 0)

    def _weighted(self, table: TableDefinition, rows: Any, weight: int) -> Any:
        convert = self.engine.frames.take if given.is_frame(rows) else given.weighted
        return self._limited(table, convert(rows, table.name, table.columns, weight))

    def _limited(self, table: TableDefinition, rows: Any) -> Any:
        """The rows, their texts no longer than the table's types say."""
        limited = given.limited if isinstance(rows, pa.Table) else self.engine.frames.limit
        return limited(rows, table.name, table.lengths) if table.lengths else rows

    def _current(self, table: TableDefinition, like: pa.Table) -> pa.Table:
        """The rows with the same keys as `like`, stored or pending in this transaction."""
        keys = Ref("keys", table.columns)
        plan = restrict_to_keys(Ref("current", table.columns), keys, table.key)
        stored = self.engine.lookup(
            table.name, table.key[0], like.column(table.key[0]), self.snapshot
        )
        pending = self.pending.get(table.name, [])
        if not all(isinstance(rows, pa.Table) for rows in pending):
            raise UserError(
                "T005",
                f"{table.name} already has a change from a Spark DataFrame in this transaction",
                remedy="commit it first, then upsert",
            )
        current = pa.concat_tables([stored, *pending])
        return self.engine.local.evaluate(plan, {"current": current, "keys": like})

    def _must_be_open(self) -> None:
        if not self._open:
            raise UserError(
                "T003",
                "this transaction has ended",
                remedy="begin another with db.transaction() or BEGIN",
            )


def _last_of_each_key(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Of several rows with one key, the last given."""
    numbered = rows.append_column("__n", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([("__n", "max")]).column("__n_max")
    return rows.take(last.sort())
