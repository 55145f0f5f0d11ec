"""The database a user opens: the public methods, each checked and handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from everview import arguments
from everview.database import datalog
from everview.database.audit import Audit, audit_all, audit_view
from everview.database.catalog.catalog import Catalog
from everview.database.change_feed import change_feed
from everview.database.commit import compact_all, install
from everview.database.ddl import CatalogChange
from everview.database.error_context import in_original_text, rows_in_original_text
from everview.database.execute import begin, change_alone, execute_all, explain
from everview.database.handle import Handle
from everview.database.introspect.history import MAX_EPOCHS, Entry, history
from everview.database.introspect.status import RelationStatus, status
from everview.database.python_functions import checked_function
from everview.database.transaction import Transaction
from everview.errors import Span
from everview.lang.sql.parse.statement import parse_statements
from everview.lang.sql.parse.statements import Statement
from everview.plan.nodes import Plan, Source
from everview.runtime.protocol import Engine
from everview.runtime.results import Result
from everview.store.retention import retire
from everview.store.store import Store

GRACE_SECONDS, GRACE_MAX_SECONDS = 3_600, 10**9
"""How long an epoch that is no longer the newest stays readable: by default, and at the most."""


class Database:
    """Tables and views that stay fresh, in one store."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        """What the methods work on; for Everview's own use."""

    @property
    def store(self) -> Store:
        """Where it lies; a database that is closed has none."""
        return self.handle.store

    @property
    def engine(self) -> Engine:
        """What computes; a database that is closed has none."""
        return self.handle.engine

    @property
    def epoch(self) -> int:
        """The number of the newest epoch."""
        return self.handle.store.latest().epoch

    @property
    def catalog(self) -> Catalog:
        """What is declared at the newest epoch."""
        return self.handle.catalog

    def close(self) -> None:
        """Release the store and the engine, after the current writer; again does nothing."""
        self.handle.close()

    def __enter__(self) -> Self:
        self.handle.must_be_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Reading

    def read(self, name: str, *, epoch: int | None = None) -> Result:
        """The rows of a table or view, now or at an earlier epoch."""
        arguments.text("name", name)
        if epoch is not None:
            epoch = arguments.count("epoch", epoch)
        snapshot, catalog = self.handle.at(epoch)
        return self.handle.lazy(self.engine.read(catalog.relation(name), snapshot), snapshot)

    def changes(self, name: str, *, after: int = 0) -> Result:
        """The change feed of a table or view: rows with `_w` and `_epoch`, oldest first."""
        after = arguments.count("after", after)
        snapshot, catalog = self.handle.at()
        relation = catalog.relation(arguments.text("name", name))
        feed = change_feed(self.store, relation, catalog.schema(relation), after)
        return self.handle.lazy(feed, snapshot)

    # Changing

    def transaction(self) -> Transaction:
        """Begin a transaction; as a context manager it commits, or rolls back on an error."""
        return begin(self.handle)

    def insert(self, table: str, rows: Any) -> int:
        """Insert rows in a transaction of their own; the new epoch."""
        return change_alone(self.handle, lambda tx: tx.insert(table, rows))

    def delete(self, table: str, rows: Any) -> int:
        """Delete rows in a transaction of their own; the new epoch."""
        return change_alone(self.handle, lambda tx: tx.delete(table, rows))

    def upsert(self, table: str, rows: Any) -> int:
        """Upsert rows in a transaction of their own; the new epoch."""
        return change_alone(self.handle, lambda tx: tx.upsert(table, rows))

    def compact(self) -> int:
        """Consolidate the segments of every relation; answers and older epochs stay the same."""
        self.handle.must_write()
        return self.handle.exclusively(lambda: compact_all(self.handle))

    def retain(self, epochs: int, *, grace: int = GRACE_SECONDS) -> list[str]:
        """Keep the newest `epochs` epochs readable and delete what only older ones need.

        An epoch that was the newest less than `grace` seconds ago is kept for those who read it.
        The files that were deleted.
        """
        self.handle.must_write()
        kept = arguments.count("epochs", epochs, least=1)
        readers = timedelta(seconds=min(arguments.count("grace", grace), GRACE_MAX_SECONDS))
        return self.handle.exclusively(lambda: retire(self.store, kept, readers))

    # Declaring and running SQL

    def sql(self, text: str, *, dialect: str | None = None) -> Result | None:
        """Run one or more statements; the rows of the last one, if it has any.

        Neighbouring declarations are one step: all of them are made, in one epoch, or none.
        """
        arguments.text("text", text)
        if dialect is not None:
            arguments.text("dialect", dialect)
        with in_original_text(text, dialect):
            *_, last = (None, *self.run(parse_statements(text, dialect, self.catalog.schemas)))
        return last if last is None else rows_in_original_text(last, text, dialect)

    def run(self, statements: Iterable[Statement]) -> Iterator[Result | None]:
        """Run parsed statements in order; the rows of each step, as it is done."""
        return execute_all(self.handle, statements)

    def datalog(self, text: str, facts: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Declare the relations of a Datalog program; the names of those it puts out.

        What is given becomes tables, what is derived views. `facts` are rows by relation.
        """
        arguments.text("text", text)
        rows = {} if facts is None else arguments.mapping("facts", facts)
        self.handle.must_declare(Span(text, 0, len(text)))
        program = self.handle.exclusively(lambda: datalog.declare(self.handle, text, rows))
        return program.outputs

    def view(self, name: str, plan: Plan) -> None:
        """Declare a view by a plan that was built in Python, over what `source` gives."""
        arguments.text("name", name)
        self.handle.must_declare()

        def work() -> None:
            install(self.handle, CatalogChange(self.catalog.with_plan(name, plan)))

        self.handle.exclusively(work)

    def source(self, name: str) -> Source:
        """A table or view as plans read it."""
        return self.catalog.source(arguments.text("name", name))

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
            self.handle.reload_catalog()

    # Looking inside

    def explain(self, view: str, stage: str = "operators") -> str:
        """How a view is kept fresh: by operator, or as plan, derivative, program or sql."""
        arguments.text("view", view)
        arguments.text("stage", stage)
        return explain(self.handle, view, stage)

    def audit(self, view: str | None = None) -> Audit:
        """Compare views with their queries, evaluated from scratch, as bags and both ways.

        One view is evaluated from the tables alone. Where all are audited, each is evaluated from
        what it reads: if every view equals its query over those, it does over the tables too.
        """
        if view is not None:
            arguments.text("view", view)
        snapshot, catalog = self.handle.at()
        with self.handle.reading(snapshot):
            if view is None:
                return audit_all(catalog, self.engine, snapshot)
            found = audit_view(
                catalog.relation(view), catalog, self.engine, snapshot, from_tables=True
            )
        return Audit(snapshot.manifest.epoch, (found,))

    def status(self) -> list[RelationStatus]:
        """Every table, view and state: rows, bytes, segments."""
        snapshot, catalog = self.handle.at()
        return status(catalog, snapshot.manifest)

    def history(self, epochs: int = MAX_EPOCHS) -> list[Entry]:
        """What the newest epochs cost, oldest first: each as a whole, and each view it changed."""
        return history(self.store, self.catalog, arguments.count("epochs", epochs, least=1))
