"""The database a user opens: declarations, transactions, reads, and the law on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa

from everview import arguments
from everview.database import datalog, dml, error_context
from everview.database.audit import Audit, audit_all, audit_view
from everview.database.backfill import build
from everview.database.catalog.catalog import Catalog
from everview.database.ddl import Declaration, Declared, declared, in_steps
from everview.database.error_context import in_text, placed_in, placed_rows, sound
from everview.database.feed import feed
from everview.database.handle import Handle
from everview.database.introspect import statistics
from everview.database.introspect.epoch_notes import note_of
from everview.database.introspect.explain import explain_query, explain_view
from everview.database.introspect.history import COLUMNS, SHOWN, Entry, history, history_rows
from everview.database.introspect.system_tables import Asked, Told, with_told
from everview.database.python_functions import checked_function
from everview.database.repair_views import faulty
from everview.database.transaction import Transaction
from everview.errors import Span, UserError
from everview.lang.sql.bind.inline_functions import written_out
from everview.lang.sql.parse.statement import parse_statements
from everview.lang.sql.parse.statements import (
    Delete,
    Explain,
    Insert,
    Merge,
    Query,
    Statement,
    Update,
)
from everview.lang.sql.parse.statements import Transaction as Bracket
from everview.plan.nodes import Plan, Source
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.report import Clock
from everview.runtime.results import Result
from everview.store.compaction import Policy, compact, compactable
from everview.store.errors import best_effort
from everview.store.manifest import Manifest
from everview.store.retention import retire

T = TypeVar("T")

COMPACTION = Policy(changes=16)
GRACE, GRACE_MOST = 3_600, 10**9
"""Seconds for which an epoch that is no longer the newest can be read, and the most of them."""


class Database(Handle):
    """Tables and views that stay fresh, in one store."""

    tell: Callable[[str], None] = staticmethod(lambda _: None)
    """Is told what a declaration builds, as it does; nothing when it is done."""

    # Reading

    def read(self, name: str, *, epoch: int | None = None) -> Result:
        """The rows of a table or view, now or at an earlier epoch."""
        arguments.text("name", name)
        if epoch is not None:
            epoch = arguments.count("epoch", epoch)
        snapshot, catalog = self._epoch(epoch)
        return self._lazy(self.engine.read(catalog.relation(name), snapshot), snapshot)

    def changes(self, name: str, *, after: int = 0) -> Result:
        """The change feed of a table or view: rows with `_w` and `_epoch`, oldest first."""
        after = arguments.count("after", after)
        snapshot, catalog = self._epoch()
        found = catalog.relation(arguments.text("name", name))
        return self._lazy(feed(self.store, found, catalog.schema(found), after), snapshot)

    # Changing

    def transaction(self) -> Transaction:
        """Begin a transaction; as a context manager it commits, or rolls back on an error."""
        self._must_write()

        def begun() -> Transaction:
            made = Transaction(*self._now(), self._commit, self._alone)
            self._sharing.begins(made)
            return made

        return self._alone(begun)

    def insert(self, table: str, rows: Any) -> int:
        """Insert rows in a transaction of their own; the new epoch."""
        return self._once(lambda tx: tx.insert(table, rows))

    def delete(self, table: str, rows: Any) -> int:
        """Delete rows in a transaction of their own; the new epoch."""
        return self._once(lambda tx: tx.delete(table, rows))

    def upsert(self, table: str, rows: Any) -> int:
        """Upsert rows in a transaction of their own; the new epoch."""
        return self._once(lambda tx: tx.upsert(table, rows))

    def _once(self, change: Callable[[Transaction], None]) -> int:
        """One change as a transaction of its own; the epoch after it."""
        self._must_write()

        def work() -> int:
            tx = Transaction(*self._now(), self._commit)
            change(tx)
            return tx.commit()

        return self._alone(work)

    @property
    def _writer(self) -> datalog.Writer:
        """This database for one who writes to it alone."""

        def begin() -> Transaction:
            return Transaction(*self._now(), self._commit)

        return datalog.Writer(lambda: self.catalog, begin, self._install, self._recover)

    def _now(self) -> tuple[Engine, Snapshot, Catalog]:
        """What a transaction that begins now is based on."""
        return self.engine, *self._epoch()

    def _commit(self, tx: Transaction) -> int:
        snapshot = tx.snapshot
        if not tx.pending:
            return snapshot.manifest.epoch
        if self.store.latest().epoch != snapshot.manifest.epoch:
            raise UserError(
                "T007",
                "the store has moved on since this transaction began",
                remedy="begin the transaction again",
            )
        with sound(snapshot):
            moved = self._mover.move(tx.pending, tx.removes, snapshot)
        if moved is None:
            return snapshot.manifest.epoch
        following = moved.built.on(snapshot.manifest, statistics.now(), note=moved.note)
        self._record(following, moved.clock)
        self._compact_if_due(moved.built.changes, following)
        return following.epoch

    def _record(self, manifest: Manifest, clock: Clock) -> None:
        """Commit an epoch, its note with the time it took: all but writing the note itself."""
        assert manifest.parent is not None
        began, known = clock.total, note_of(self.store.read(manifest.parent)).get("samples", {})

        def note() -> dict[str, Any]:
            clock.add("commit", clock.total - began)
            return {"samples": known, **manifest.note, **statistics.times(clock)}

        self.store.commit(manifest, note)

    def compact(self) -> int:
        """Add up the segments of every relation now; answers and older epochs stay the same."""
        self._must_write()
        every = Policy(0, 0.0, 0, float("inf"))
        return self._alone(lambda: self._compact(tuple(self._snapshot().stored), every))

    def _compact_if_due(self, changed: Iterable[str], newest: Manifest) -> None:
        due = tuple(n for n in changed if compactable(newest.relations[n], COMPACTION))
        if due:
            with best_effort():
                self._compact(due, COMPACTION)

    def _compact(self, due: tuple[str, ...], policy: Policy) -> int:
        clock, snapshot = Clock(), self._snapshot()
        stored = {n: s for n, s in snapshot.stored.items() if n in snapshot.manifest.relations}
        with clock.phase("compute"), sound(snapshot):
            following = compact(
                self.store,
                snapshot.manifest,
                [name for name in due if name in stored],
                {name: arrow_schema(each.schema) for name, each in stored.items()},
                lambda name, rows: self.engine.add_up(rows, stored[name]),
                created=statistics.now(),
                policy=policy,
            )
        self._record(following, clock)
        self.engine.moved(snapshot, following)
        return following.epoch

    def retain(self, epochs: int, *, grace: int = GRACE) -> list[str]:
        """Keep the newest `epochs` epochs readable and delete what only older ones need.

        An epoch that was the newest less than `grace` seconds ago is kept for those who read it.
        """
        self._must_write()
        kept = arguments.count("epochs", epochs, least=1)
        readers = timedelta(seconds=min(arguments.count("grace", grace), GRACE_MOST))
        return self._alone(lambda: retire(self.store, kept, readers))

    def function(
        self, name: str, function: Callable[..., Any], gives: str, *, deterministic: bool = False
    ) -> None:
        """Let queries call a function in Python, on Spark, until the database is closed.

        A view that calls it needs it again whenever the store is opened. It must give the same
        answer for the same values, and its caller says so.
        """
        arguments.flag("deterministic", deterministic)
        type_ = checked_function(name, function, gives, deterministic=deterministic)
        self.engine.register(name, function, type_)
        if self.catalog.beyond_reach:  # it may be what one of them waits for
            manifest = self.store.latest()
            self._kept = self._kept.after(manifest.catalog, self._load(manifest))

    # Declaring and running SQL

    def sql(self, text: str, *, dialect: str | None = None) -> Result | None:
        """Run one or more statements; the rows of the last one, if it has any.

        Neighbouring declarations are one step: all of them are made, in one epoch, or none.
        """
        arguments.text("text", text)
        if dialect is not None:
            arguments.text("dialect", dialect)
        with error_context.as_written(text, dialect):
            *_, last = (None, *self.run(parse_statements(text, dialect, self.catalog.schemas)))
        return last if last is None else error_context.written_rows(last, text, dialect)

    def run(self, statements: Iterable[Statement]) -> Iterator[Result | None]:
        """Run statements in order, with errors placed in their text; the rows of each step."""
        for step in in_steps(statements):
            result = None
            if isinstance(step[0], Declaration):
                self._declare([each for each in step if isinstance(each, Declaration)])
            else:
                with placed_in(step[0].span), in_text(step[0].span):
                    result = self._execute(written_out(step[0], self.catalog.functions))
            yield result if result is None else placed_rows(result, step[0].span)

    def datalog(self, text: str, facts: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Declare the relations of a Datalog program; the names of those it puts out.

        What is given becomes tables, what is derived views. `facts` are rows by relation.
        """
        arguments.text("text", text)
        given = {} if facts is None else arguments.mapping("facts", facts)
        self._must_declare(Span(text, 0, len(text)))
        program = self._alone(lambda: datalog.declare(self._writer, text, given))
        return program.outputs

    def view(self, name: str, plan: Plan) -> None:
        """Declare a view by a plan that was built in Python, over what `source` gives."""
        arguments.text("name", name)
        self._must_declare()
        self._alone(lambda: self._install(Declared(self.catalog.with_plan(name, plan))))

    def source(self, name: str) -> Source:
        """A table or view as plans read it."""
        return self.catalog.source(arguments.text("name", name))

    def _execute(self, statement: Statement) -> Result | None:
        match statement:
            case Query(text, reads, _):
                return self._select(text, reads)
            case Explain(what, _):
                lines = self._explained(what).splitlines()
                return Result(lambda: pa.table({"plan": lines}))
            case Bracket(action, span):
                self._bracket(action, span)
            case Insert() | Delete() | Update() | Merge():
                self._change(statement)
        return None

    def _select(self, text: str, reads: tuple[str, ...]) -> Result:
        tx = self._begun.transaction
        snapshot, catalog = (tx.snapshot, tx.catalog) if tx else self._epoch()
        pending = tx.pending if tx else {}
        found = tuple(name for each in reads if (name := catalog.find(each)) is not None)
        told = {"history": Told(COLUMNS, lambda: history_rows(self.history()))}
        asked = with_told(Asked(text, found, snapshot, pending), told)
        with self._readable(snapshot):
            result = self.engine.query(asked.text, asked.reads, asked.snapshot, asked.pending)
        return self._lazy(result, snapshot)

    def _bracket(self, action: str, span: Any) -> None:
        if action == "begin":
            if self._begun.transaction is not None:
                raise UserError(
                    "T008", "a transaction is open already", span=span, remedy="COMMIT it first"
                )
            self._begun.transaction = self.transaction()
            return
        self._sharing.check()
        if self._begun.transaction is None:
            raise UserError("T008", "no transaction is open", span=span, remedy="BEGIN one first")
        open_, self._begun.transaction = self._begun.transaction, None
        if action == "commit":
            open_.commit()
        else:
            open_.rollback()

    def _change(self, statement: Insert | Delete | Update | Merge) -> None:
        tx = self._begun.transaction
        if tx is not None:
            tx.run(lambda: dml.apply(tx, statement))
        else:
            self._once(lambda alone: dml.apply(alone, statement))

    def _declare(self, statements: Sequence[Declaration]) -> None:
        """Make declarations, all or none, in one epoch."""
        self._must_declare(statements[0].span)

        def work() -> None:
            snapshot, catalog = self._epoch()
            made = declared(statements, catalog, self.engine, snapshot)
            if made is not None:
                self._install(made)

        self._alone(work)

    def install(self, made: Declared) -> None:
        """Commit new declarations: build what they need, drop what nothing needs any more."""
        self._alone(lambda: self._install(made))

    def _install(self, made: Declared) -> None:
        manifest, catalog = self.store.latest(), made.catalog
        before = self._known(manifest)
        clock = Clock()
        snapshot = Snapshot(self.store, manifest, catalog.stored())
        with clock.phase("compute"):
            bad = faulty(made, before.catalog, self.engine, self._snapshot())
            around = made.building(self.tell)
            built = build(
                before.catalog,
                catalog,
                self.engine,
                snapshot,
                around,
                bad.relations,
                bad.unreadable,
            )
        built.bases |= made.filled
        note = statistics.built(built, manifest, catalog)
        self._record(built.on(manifest, statistics.now(), catalog.to_json(), note), clock)
        self._kept = before.after(self.store.latest().catalog, catalog)
        self.engine.moved(self._snapshot(), self.store.latest())

    def _must_declare(self, span: Span | None = None) -> None:
        if self._begun.transaction is not None:
            raise UserError(
                "T008",
                "tables and views cannot be created or dropped inside a transaction",
                span=span,
                remedy="COMMIT or ROLLBACK first",
            )
        self._must_write()

    def _must_write(self) -> None:
        self._sharing.check()
        if self._read_only:
            raise UserError(
                "T009", "this database is open for reading only", remedy="open it without read_only"
            )

    # Looking inside

    def explain(self, view: str, stage: str = "operators") -> str:
        """How a view is kept fresh: by operator, or as plan, derivative, program or sql."""
        arguments.text("view", view)
        arguments.text("stage", stage)
        catalog, known = self.catalog, statistics.known(self.store, self.catalog)
        return explain_view(catalog, catalog.relation(view), stage, known)

    def _explained(self, what: str) -> str:
        """EXPLAIN of a view, or of a query as if it were one."""
        if self.catalog.find(what) is not None or what.isidentifier():
            return self.explain(what)
        return explain_query(self.catalog, what)

    def audit(self, view: str | None = None) -> Audit:
        """Compare views with their queries, evaluated from scratch, as bags and both ways.

        One view is evaluated from the tables alone. Where all are audited, each is evaluated from
        what it reads: if every view equals its query over those, it does over the tables too.
        """
        if view is not None:
            arguments.text("view", view)
        snapshot, catalog = self._epoch()
        with self._readable(snapshot):
            if view is None:
                return audit_all(catalog, self.engine, snapshot)
            found = audit_view(catalog.relation(view), catalog, self.engine, snapshot, whole=True)
        return Audit(snapshot.manifest.epoch, (found,))

    def status(self) -> list[statistics.RelationStatus]:
        """Every table, view and state: rows, bytes, segments."""
        snapshot, catalog = self._epoch()
        return statistics.status(catalog, snapshot.manifest)

    def history(self, epochs: int = SHOWN) -> list[Entry]:
        """What the newest epochs cost, oldest first: each as a whole, and each view it changed."""
        return history(self.store, self.catalog, arguments.count("epochs", epochs, least=1))
