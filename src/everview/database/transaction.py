"""A transaction: changes gathered, then all of them committed as one epoch, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, get_ident
from types import TracebackType
from typing import Any, Protocol, TypeVar, overload

import pyarrow as pa

from everview import arguments
from everview.database import computed_columns, queries
from everview.database import rows as given
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.change_feed import ChangePair, pair_of_parts, weighted_rows
from everview.database.collections.changes import Changes as DeepChange
from everview.database.collections.changes import (
    DeepChanges,
    Labels,
    must_be_whole,
    must_have_collections,
)
from everview.database.error_context import report_damage
from everview.database.minimal import minimized
from everview.database.rows_by_key import (
    KeyedUpdate,
    last_of_each_key,
    must_all_be_there,
    must_have_each_key_once,
    removal,
)
from everview.errors import UserError
from everview.runtime.protocol import Engine, Part, Snapshot, row_count
from everview.runtime.results import Result
from everview.store.transaction_ids import TransactionId

T = TypeVar("T")
Commit = Callable[["Transaction"], int]
Preview = Callable[["Transaction", Collection[str]], Mapping[str, list[Part]]]
"""The changes of some views that a transaction would make, as it is now."""
Parameters = Sequence[object] | Mapping[str, object]
"""Values for the parameters of statements, by position or by name."""
RunSql = Callable[["Transaction", str, Parameters | None, str | None], Result | None]
"""Runs statements inside a transaction; the rows of the last one."""


def no_sql(*_: object) -> Result | None:
    """For transactions that are not handed out: nobody calls it."""
    raise AssertionError("no statement is run inside by its own handle")


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
    minimal: bool = False
    """Whether what it deletes may be absent, and what it inserts present."""

    @property
    def is_empty(self) -> bool:
        return not row_count(self.rows)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A DataFrame of weighted rows of a table, which nothing has computed yet."""

    table: str
    frame: Any
    removes: bool


class Transaction:
    """Changes of one or more tables, which become one epoch together, or not at all.

    Until then only later calls of the same transaction see them. A transaction that changes
    nothing makes no epoch, unless it has an `id`, which is kept.
    """

    def __init__(
        self,
        engine: Engine,
        snapshot: Snapshot,
        catalog: Catalog,
        commit: Commit,
        exclusively: Exclusively = lambda work, _: work(),
        id_: TransactionId | None = None,
        preview: Preview = lambda *_: {},
        run_sql: RunSql = no_sql,
    ) -> None:
        self.engine = engine
        self.snapshot = snapshot
        self.catalog = catalog
        self.id = id_
        self.committed_in = None if id_ is None else snapshot.manifest.ids.epoch_of(id_)
        """For an id that was committed before, an epoch in which that can be seen."""
        self.thread = get_ident()
        self._commit = commit
        self._exclusively = exclusively
        self._preview = preview
        self._run_sql = run_sql
        self._labels = Labels(snapshot.manifest.epoch)
        self._gathered: tuple[tuple[_Change, ...], tuple[_Arrival, ...]] = (), ()
        """Replaced in one step, so that a statement is in it wholly or not at all.

        What arrived comes after the changes, and becomes some when they are asked for.
        """
        self._previewed: tuple[object, Mapping[str, list[Part]]] = (None, {})
        """What was computed of views, and of which changes that is."""
        self._open = True
        self._running = Lock()
        self._running.acquire()

    @property
    def is_open(self) -> bool:
        """Whether it has neither been committed nor rolled back."""
        return self._open

    @property
    def repeated(self) -> bool:
        """Whether a transaction with this id was committed before; then this one does nothing."""
        return self.committed_in is not None

    @property
    def _changes(self) -> tuple[_Change, ...]:
        """All changes so far; the DataFrames that arrived for a table are computed by one job."""
        changes, arrivals = self._gathered
        if arrivals:
            frames: dict[str, list[_Arrival]] = {}
            for each in arrivals:
                frames.setdefault(each.table, []).append(each)
            found = (self._staged(table, each) for table, each in frames.items())
            self._gathered = (*changes, *(each for each in found if not each.is_empty)), ()
        return self._gathered[0]

    def _staged(self, table: str, arrivals: Sequence[_Arrival]) -> _Change:
        part = self.engine.frames.stage([each.frame for each in arrivals], table, self.snapshot)
        return _Change(table, part, any(each.removes for each in arrivals))

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

    def pending_of(self, names: Iterable[str]) -> Mapping[str, list[Part]]:
        """The pending changes of tables, and what follows from them for those among `names`.

        Those are views, and tables with foreign keys to rows that go. All of them are computed by
        one run of the program that the commit would run, and kept until something else is changed.
        A violation of a rule is raised as it would be then.
        """
        pending = self.pending
        following = self.catalog.tables_that_follow(self.removes)
        changed = {*pending, *following}
        wanted = [
            name
            for name in names
            if name in following
            or (name in self.catalog.views and changed & {*self.catalog.tables_under(name)})
        ]
        of, known = self._previewed
        known = known if of is self._changes else {}
        missing = [name for name in wanted if name not in known]
        if missing:
            found = self._preview(self, missing)
            known = {**known, **{name: found.get(name, []) for name in missing}}
            self._previewed = self._changes, known
        return {**pending, **{name: known[name] for name in wanted}}

    @overload
    def preview(self, names: str) -> ChangePair: ...

    @overload
    def preview(
        self, names: list[str] | tuple[str, ...] | set[str] | None = None
    ) -> dict[str, ChangePair]: ...

    def preview(self, names: Any = None) -> Any:
        """What the commit would change: of a view or table, the rows that leave and that come.

        Nothing is committed. Of several names, or of all views, a dict has the pair of each; they
        cost one run of the transaction's program. What the commit would refuse is refused.

            deleted, inserted = tx.preview("revenue")
            for name, (deleted, inserted) in tx.preview().items():
                print(name, deleted.rows(), inserted.rows())
        """
        if isinstance(names, str):
            return self.preview([names])[self.catalog.relation(names)]
        chosen = [*self.catalog.views] if names is None else arguments.names("names", names)
        relations = [self.catalog.relation(name) for name in chosen]
        pending = self.run(lambda: self.pending_of(relations))
        return {name: self._pair(name, pending.get(name, [])) for name in relations}

    def _pair(self, name: str, parts: list[Part]) -> ChangePair:
        both = pair_of_parts(self.engine, name, parts, self.snapshot)
        return ChangePair(*(queries.within_budget(each, self.engine) for each in both))

    def weighted_preview(self, name: str) -> Result:
        """What the commit would change of a view or table, as rows with their weights."""
        relation = self.catalog.relation(name)
        parts = self.run(lambda: self.pending_of([relation])).get(relation, [])
        rows = weighted_rows(self.engine, relation, parts, self.snapshot)
        return queries.within_budget(rows, self.engine)

    def read(self, name: str) -> Result:
        """The rows that a table or view will have, if the transaction is committed as it is now.

        For example:

            tx.read("revenue").rows()
        """
        relation = self.catalog.relation(arguments.text("name", name))
        table = self.catalog.tables.get(relation)
        pending = self.run(lambda: self.pending_of([relation]))
        if table is not None and table.collections:
            return self.deep.read(table, pending)
        return queries.read(self.engine, relation, self.snapshot, pending)

    def sql(
        self, text: str, params: Parameters | None = None, *, dialect: str | None = None
    ) -> Result | None:
        """Run queries and changes inside the transaction, and return the rows of the last one.

        A query sees what the transaction has changed, and views as they would be. Declarations,
        BEGIN and COMMIT stand outside. `params` and `dialect` are those of `db.sql`.

            tx.sql("UPDATE orders SET amount = ? WHERE id = ?", [6, 3]).changed
            tx.sql("SELECT total FROM revenue WHERE customer = :c", {"c": 7}).rows()
        """
        self._must_be_open()
        return self._run_sql(self, text, params, dialect)

    def run(self, work: Callable[[], T]) -> T:
        """Do a part of the transaction, while nobody else writes."""
        self._must_be_open()

        def reported() -> T:
            with report_damage(self.snapshot):
                return work()

        return self._exclusively(reported, self)

    def gather(self, work: Callable[[], None]) -> None:
        """Add to the changes, all or nothing; a transaction that is repeated leaves that out."""
        if self.repeated:
            self._must_be_open()
            return
        before = self._gathered
        try:
            self.run(work)
        except BaseException:
            self._gathered = before
            raise

    def wait(self, seconds: float) -> None:
        """Return when it has ended, or after `seconds`."""
        if self._running.acquire(timeout=seconds):
            self._running.release()

    def insert(self, table: str, rows: Any) -> None:
        """Add rows: tuples, dicts, pandas, Arrow, Polars, a Spark DataFrame, or a Path of files.

        For example:

            tx.insert("orders", [(4, 7, "2.00")])
        """
        self.gather(lambda: self._change(self._table(table), rows, 1))

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
            self.gather(lambda: self._delete_keys(self._table(table), keys))
        else:
            self.gather(lambda: self._change(self._table(table), rows, -1))

    def upsert(self, table: str, rows: Any) -> None:
        """Insert rows, each in the place of the row with the same primary key, if there is one.

        Of several rows with one key the last counts. A Spark DataFrame has no order, so there a
        key may occur only once.

            tx.upsert("orders", [(1, 7, "12.00")])
        """
        self.gather(lambda: self._upsert(self._table(table), rows))

    def update(
        self,
        table: str,
        rows: Any = None,
        *,
        keys: Any = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> None:
        """Change some columns of rows that are named by their primary keys; each must be there.

        All rows with one of the `keys` get the same values, or `rows` say for each key what it
        gets: dicts, Arrow, pandas or Polars with the key and the columns to be changed, or a dict
        by key.

            tx.update("orders", keys=[2, 3], set={"amount": "5.00"})
            tx.update("orders", [{"id": 2, "amount": "6.00"}, {"id": 3, "amount": "7.00"}])
            tx.update("orders", {3: {"amount": "8.00"}})
        """
        self.gather(lambda: self._update(self._table(table), rows, keys, set))

    def apply(
        self, table: str, *, deleted: Any = (), inserted: Any = (), minimal: bool = False
    ) -> None:
        """Delete rows and insert others, as one change: inserts win.

        With `minimal=True`, rows to be deleted may be absent and rows to be inserted may be there
        already: those change nothing. So a change that comes from outside may say too much.

            tx.apply("orders", deleted=[(1, 7, "10.00")], inserted=[(4, 7, "2.00")], minimal=True)
        """
        arguments.flag("minimal", minimal)

        def work() -> None:
            found = self._table(table)
            if found.collections:
                must_be_whole(found, minimal=minimal)
                self.add_deep(self.deep.deleted(found, deleted))
                self.add_deep(self.deep.inserted(found, inserted))
                return
            gone, fresh = self._read(found, deleted, -1)[0], self.taken(found, inserted)
            self._add(
                _Change(found.name, gone, removes=True, minimal=minimal),
                _Change(found.name, fresh, removes=False, minimal=minimal),
            )

        self.gather(work)

    def update_inner(
        self, table: str, key: Any, path: Any, *, insert: Any = (), delete: Any = ()
    ) -> None:
        """Add elements to a collection inside one row, and remove others; each must be there.

        `key` is the primary key of the row, `path` the name of the collection. Several levels down
        it is a list of names, with the element that leads on between two of them. What is read and
        written follows the elements given, not the size of the collection.

            showtimes = "BAG<STRUCT<cinema: STRING, seats: BAG<INT>>>"
            db.sql(f"CREATE TABLE movies (name STRING PRIMARY KEY, showtimes {showtimes})")
            db.insert("movies", [("Drive", [])])
            with db.transaction() as tx:
                tx.update_inner("movies", "Drive", "showtimes", insert=[("Rex", [7])])
                tx.update_inner("movies", "Drive", ["showtimes", ("Rex",), "seats"], insert=[8])
        """

        def work() -> None:
            found = self._table(table)
            must_have_collections(found)
            self.add_deep(self.deep.updated(found, key, path, insert, delete))

        self.gather(work)

    @property
    def deep(self) -> DeepChanges:
        """What computes changes of tables with collections, over what the transaction sees."""
        return DeepChanges(self.engine, self.snapshot, self.catalog, self.pending, self._labels)

    def add_deep(self, changes: DeepChange) -> None:
        """Add changes of a table with collections, all of them in one step."""
        self._add(*(_Change(each.relation, each.rows, each.removes) for each in changes))

    def _upsert(self, found: TableDefinition, rows: Any) -> None:
        if found.collections:
            self.add_deep(self.deep.upserted(found, rows))
            return
        if not found.key:
            raise UserError(
                "T004",
                f"{found.name} has no primary key, so no row can be replaced",
                remedy="declare a PRIMARY KEY, or delete and insert",
            )
        fresh, absent = self._read(found, rows, 1)
        if isinstance(fresh, pa.Table):
            fresh = last_of_each_key(fresh, found.key)
        else:
            must_have_each_key_once(fresh, found)
        fresh = self._completed(found, fresh, absent)
        old = self._removal(found, fresh)
        self._add(_Change(found.name, old, removes=True), _Change(found.name, fresh, removes=False))

    def _delete_keys(self, found: TableDefinition, keys: Any) -> None:
        if found.collections:
            self.add_deep(self.deep.deleted_keys(found, keys))
            return
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
            must_all_be_there(wanted, old, found)
        self._add(_Change(found.name, old, removes=True))

    def _update(self, found: TableDefinition, rows: Any, keys: Any, set_: Any) -> None:
        change = KeyedUpdate.read(found, rows, keys, set_)
        if change.is_of_collections:
            self.add_deep(self.deep.updated_rows(found, change.values, self))
            return
        old = self._removal(found, change.keys)
        must_all_be_there(change.keys, old, found)
        fresh = change.replaced(old, self)
        self._add(_Change(found.name, old, removes=True), _Change(found.name, fresh, removes=False))

    def _removal(self, table: TableDefinition, by: Any) -> Part:
        """Minus the rows with the keys of `by`, stored or pending in this transaction."""
        return removal(self.engine, table, by, self.snapshot, self.pending.get(table.name, []))

    def add_weighted(self, table: str, *parts: Part, removes: bool) -> int:
        """Add rows that carry their weights, all of them in one step; how many have an effect."""
        self._must_be_open()
        return self._add(*(_Change(table, rows, removes) for rows in parts))

    def _add(self, *changes: _Change) -> int:
        """Add changes, all of them in one step; how many rows they have when they are minimized."""
        gathered, known = self._changes, len(self._changes)
        for change in changes:
            if not change.is_empty:
                filled = self._minimized(self._checked(change), gathered)
                gathered = (*gathered, filled) if not filled.is_empty else gathered
        self._gathered = gathered, ()
        return sum(row_count(each.rows) for each in gathered[known:])

    def _minimized(self, change: _Change, before: tuple[_Change, ...]) -> _Change:
        """Of a change that need not be minimal, what has an effect after those before it."""
        table = self.catalog.tables[change.table]
        if not change.minimal and not table.is_set:
            return change
        pending = [each.rows for each in before if each.table == change.table]
        rows = minimized(self.engine, table, change.rows, self.snapshot, pending)
        return replace(change, rows=rows)

    def _checked(self, change: _Change) -> _Change:
        if not isinstance(change.rows, pa.Table):
            return change
        table = self.catalog.tables[change.table]
        return replace(change, rows=given.storable(change.rows, table.name, table.lengths))

    def commit(self) -> int:
        """Make all changes one epoch, and return its number.

        If the transaction is `repeated`, nothing changes. The number is then that of the epoch it
        was committed in; for a writer who has gone on since, the epoch of his last number.
        """

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
        self._open, self._gathered = False, ((), ())
        self._previewed = None, {}
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

    def taken(self, table: TableDefinition, rows: Any) -> Part:
        """Rows to be inserted, checked and with weights, but not added yet."""
        part, absent = self._read(table, rows, 1)
        return self._completed(table, part, absent)

    def _change(self, table: TableDefinition, rows: Any, weight: int) -> None:
        if table.collections:
            deep = self.deep.inserted if weight > 0 else self.deep.deleted
            self.add_deep(deep(table, rows))
            return
        if given.is_frame(rows) and _may_wait(table, rows, weight):
            self._must_be_open()
            arrival = _Arrival(table.name, self._weighted(table, rows, weight), weight < 0)
            changes, arrivals = self._gathered
            self._gathered = changes, (*arrivals, arrival)
            return
        part = self.taken(table, rows) if weight > 0 else self._read(table, rows, weight)[0]
        self.add_weighted(table.name, part, removes=weight < 0)

    def _weighted(self, table: TableDefinition, rows: Any, weight: int) -> Any:
        """A DataFrame of the user's with weights, not computed yet."""
        frames = self.engine.frames
        return frames.weighted(rows, table.name, weight, table.lengths, self.snapshot)

    def _completed(self, table: TableDefinition, part: Part, absent: Collection[str]) -> Part:
        """Rows that come, with what they leave out of computed columns."""
        if not absent and not table.generated:
            return part
        return computed_columns.completed(part, table, self.engine, self.snapshot, absent)

    def _read(self, table: TableDefinition, rows: Any, weight: int) -> tuple[Part, Collection[str]]:
        """Rows with weights, and the columns with defaults that are still to be computed."""
        if isinstance(rows, Path):
            rows = given.files(rows, table.columns)
        if given.is_files(rows) and self.engine.frames.files is not None:
            with self.engine.frames.files.explained(rows):
                return self._read(table, self.engine.frames.files.read(rows), weight)
        if given.is_frame(rows):
            frame = self._weighted(table, rows, weight)
            part = self.engine.frames.stage([frame], table.name, self.snapshot)
            return part, _unnamed_defaults(table, rows)
        absent = given.NOTHING
        if weight > 0:
            absent = computed_columns.given_if_absent(table, self.engine, self.snapshot)
        read = given.weighted(rows, table.name, table.columns, weight, absent)
        return given.limited(read, table.name, table.lengths), ()

    def _must_be_open(self) -> None:
        if not self._open:
            raise UserError(
                "T003",
                "this transaction has ended",
                remedy="begin another with db.transaction() or BEGIN",
            )


def _may_wait(table: TableDefinition, frame: Any, weight: int) -> bool:
    """Whether nothing needs the rows of a DataFrame before something asks for the changes."""
    if table.is_set:
        return False
    return weight < 0 or not (table.generated or _unnamed_defaults(table, frame))


def _unnamed_defaults(table: TableDefinition, frame: Any) -> list[str]:
    """The columns with defaults that a DataFrame leaves out."""
    there = {name.lower() for name in frame.columns}
    return [name for name, _ in table.defaults if name.lower() not in there]
