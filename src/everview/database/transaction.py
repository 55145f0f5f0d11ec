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
from everview.database import computed_columns
from everview.database import rows as given
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.error_context import report_damage
from everview.errors import UserError
from everview.expr.types import WEIGHT
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.protocol import Engine, Part, Snapshot, Staged, in_memory, row_count

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
    rows: Part
    removes: bool

    @property
    def is_empty(self) -> bool:
        return not row_count(self.rows)


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
    def pending(self) -> Mapping[str, list[Part]]:
        """What has been changed so far: for each table, weighted rows."""
        pending: dict[str, list[Part]] = {}
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

        def reported() -> T:
            with report_damage(self.snapshot):
                return work()

        return self._exclusively(reported, self)

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

    def delete(self, table: str, rows: Any = None, *, keys: Any = None) -> None:
        """Remove rows, given whole or by their primary keys; each must be there.

        For example:

            tx.delete("orders", [(1, 7, "10.00")])
            tx.delete("orders", keys=[2, 3])
        """
        if (rows is None) == (keys is None):
            raise UserError(
                "T013",
                "delete takes rows or keys, one of them",
                remedy="give the rows whole, or the values of their primary key as keys=[…]",
            )
        if keys is not None:
            self.run(lambda: self._delete_keys(self._table(table), keys))
        else:
            self.run(lambda: self._change(self._table(table), rows, -1))

    def upsert(self, table: str, rows: Any) -> None:
        """Insert rows, each in the place of the row with the same primary key, if there is one.

        Of several rows with one key the last counts. A Spark DataFrame has no order, so there a
        key may occur only once.

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
        if isinstance(fresh, pa.Table):
            fresh = _last_of_each_key(fresh, found.key)
        else:
            _must_have_each_key_once(fresh, found)
        fresh = self._completed(found, fresh, rows)
        old = self._removal(found, fresh)
        self._add(_Change(found.name, old, removes=True), _Change(found.name, fresh, removes=False))

    def _delete_keys(self, found: TableDefinition, keys: Any) -> None:
        if not found.key:
            raise UserError(
                "T004",
                f"{found.name} has no primary key, so no row can be named by one",
                remedy="declare a PRIMARY KEY, or give the rows whole",
            )
        columns = tuple(column for column in found.columns if column.name in found.key)
        if given.is_frame(keys):
            wanted = self.engine.frames.take_keys(keys, found.name, columns)
        else:
            wanted = given.keys(keys, found.name, columns)
        old = self._removal(found, wanted)
        if isinstance(wanted, pa.Table):
            _must_all_be_there(wanted, old, found)
        self._add(_Change(found.name, old, removes=True))

    def _removal(self, table: TableDefinition, by: Any) -> Part:
        """Minus the rows with the keys of `by`, stored or pending in this transaction."""
        pending = self.pending.get(table.name, [])
        like = by.rows if isinstance(by, Staged) else by
        before = in_memory(pending)
        if not isinstance(like, pa.Table) or before is None:
            return self.engine.frames.removal(table.name, table.key, by, self.snapshot, pending)
        key_columns = tuple(c for c in table.columns if c.name in like.column_names)
        plan = restrict_to_keys(Ref("current", table.columns), Ref("keys", key_columns), table.key)
        stored = self.engine.lookup(
            table.name, table.key[0], like.column(table.key[0]), self.snapshot
        )
        current = pa.concat_tables([stored, *before])
        old = self.engine.local.evaluate(plan, {"current": current, "keys": like})
        place, negative = old.schema.get_field_index(WEIGHT), pc.negate(old.column(WEIGHT))
        return old.set_column(place, WEIGHT, negative)

    def add_weighted(self, table: str, rows: Part, *, removes: bool) -> None:
        """Add rows that carry their weights."""
        self._must_be_open()
        self._add(_Change(table, rows, removes))

    def _add(self, *changes: _Change) -> None:
        """Add changes, all of them in one step."""
        filled = tuple(self._checked(each) for each in changes if not each.is_empty)
        self._changes = (*self._changes, *filled)

    def _checked(self, change: _Change) -> _Change:
        if not isinstance(change.rows, pa.Table):
            return change
        must_be_in_calendar(change.rows, "a value of the column {}")
        table = self.catalog.table(change.table)
        return replace(change, rows=given.limited(change.rows, table.name, table.lengths))

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
        part = self._weighted(table, rows, weight)
        if weight > 0:
            part = self._completed(table, part, rows)
        self.add_weighted(table.name, part, removes=weight < 0)

    def _completed(self, table: TableDefinition, part: Part, rows: Any) -> Part:
        """Rows that come, with what they leave out of computed columns."""
        names = {name.lower() for name in rows.columns} if given.is_frame(rows) else None
        left_out = names is not None and [n for n, _ in table.defaults if n.lower() not in names]
        if not left_out and not table.generated:
            return part
        engine, snapshot = self.engine, self.snapshot
        return computed_columns.completed(part, table, engine, snapshot, left_out or ())

    def _weighted(self, table: TableDefinition, rows: Any, weight: int) -> Part:
        if weight > 0 and (table.defaults or table.generated) and not given.is_frame(rows):
            rows = computed_columns.with_defaults(rows, table, self.engine, self.snapshot)
        if given.is_frame(rows):
            return self.engine.frames.take(rows, table.name, weight, table.lengths, self.snapshot)
        return given.limited(
            given.weighted(rows, table.name, table.columns, weight), table.name, table.lengths
        )

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


def _must_have_each_key_once(fresh: Staged, table: TableDefinition) -> None:
    """Refuse a frame with two rows of one key; of one that is only in files the commit does so."""
    if fresh.rows is None:
        return
    counted = fresh.rows.group_by(list(table.key)).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1))
    if twice.num_rows:
        key = twice.select(list(table.key)).slice(0, 1).to_pylist()[0]
        raise UserError(
            "T010",
            f"the DataFrame has {twice.num_rows} keys of {table.name} more than once, "
            f"for instance {key}",
            remedy="keep one row per key: a DataFrame has no order, so none of them is the last",
        )


def _must_all_be_there(keys: pa.Table, removed: Part, table: TableDefinition) -> None:
    """Refuse keys that no row has; as many rows as keys means that each was found."""
    if row_count(removed) == keys.num_rows:
        return
    columns, rows = list(table.key), in_memory([removed])
    if rows is None:
        raise UserError(
            "T011",
            f"{table.name} has no rows for {keys.num_rows - row_count(removed)} "
            f"of the {keys.num_rows} keys to be deleted",
            remedy="read the table to see its keys",
        )
    missing = keys.join(rows[0].select(columns), columns, join_type="left anti")
    if missing.num_rows:
        shown = missing.select(columns).slice(0, 3).to_pylist()
        more = f" and {missing.num_rows - 3} more" if missing.num_rows > 3 else ""
        raise UserError(
            "T011",
            f"{table.name} has no rows with these keys: {', '.join(map(str, shown))}{more}",
            remedy="read the table to see its keys",
        )
