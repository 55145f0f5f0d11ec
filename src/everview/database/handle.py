"""An open store with its engine: the catalog of an epoch, exclusive writing, and closing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import local
from typing import TypeVar

from everview.database.background import Background
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.load import load
from everview.database.concurrency import ExclusiveAccess, closed
from everview.database.error_context import report_damage, report_removed_epoch
from everview.database.introspect.epoch_notes import timestamp
from everview.database.maintain import Maintainer
from everview.database.transaction import Commit, Preview, RunSql, Transaction
from everview.errors import Span, UserError
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.results import Result
from everview.store.lock import WriterLock
from everview.store.manifest import Manifest, Opaque
from everview.store.store import Store
from everview.store.transaction_ids import TransactionId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedCatalog:
    """A catalog as its manifest holds it, as it was loaded, and the programs compiled from it."""

    stored: Opaque
    catalog: Catalog
    maintainer: Maintainer

    def replaced_by(self, stored: Opaque, catalog: Catalog) -> LoadedCatalog:
        """Another catalog on the same engine."""
        return LoadedCatalog(stored, catalog, self.maintainer.with_catalog(catalog))


class _ThreadState(local):
    transaction: Transaction | None = None
    """The transaction that this thread has begun with BEGIN, or whose `sql` it runs."""
    inside: bool = False
    """Whether it runs the `sql` of a transaction, which then ends elsewhere."""


class Handle:
    """An open store, for any number of threads of one process."""

    def __init__(
        self, store: Store, engine: Engine, lock: WriterLock | None, *, read_only: bool = False
    ) -> None:
        self._store = store
        self._engine = engine
        engine.local.confine(store)
        store.keep_recent(engine.local.budget.recent)
        self._lock = lock
        self._read_only = read_only
        self._access = ExclusiveAccess(self.recover)
        self.thread = _ThreadState()
        self.background = Background()
        self.folding: Mapping[str, str] = {}
        """By relation, the last segment of the run that is being folded in the background."""
        self.on_progress: Callable[[str], None] = lambda _: None
        """Called with what a declaration builds, as it does; with "" when that is done."""
        self.now: Callable[[], str] = timestamp
        """The time at which the epoch of a transaction is made, for its manifest."""
        manifest = store.latest()
        catalog = self._load(manifest)
        self._loaded = LoadedCatalog(manifest.catalog, catalog, Maintainer(catalog, engine))

    @property
    def store(self) -> Store:
        """Where it lies; refused when the handle is closed."""
        self.must_be_open()
        return self._store

    @property
    def engine(self) -> Engine:
        """What computes; refused when the handle is closed."""
        self.must_be_open()
        return self._engine

    @property
    def catalog(self) -> Catalog:
        """What is declared at the newest epoch."""
        return self.loaded(self.store.latest()).catalog

    @property
    def maintainer(self) -> Maintainer:
        """What refreshes the views of the newest epoch."""
        return self.loaded(self.store.latest()).maintainer

    def loaded(self, manifest: Manifest) -> LoadedCatalog:
        """The catalog of the newest epoch, loaded again if another writer has changed it."""
        loaded = self._loaded
        if manifest.catalog is loaded.stored:
            return loaded
        if manifest.catalog == loaded.stored:
            fresh = replace(loaded, stored=manifest.catalog)
        else:
            fresh = loaded.replaced_by(manifest.catalog, self._load(manifest))
        self._loaded = fresh
        return fresh

    def keep_catalog(self, before: LoadedCatalog, catalog: Catalog) -> None:
        """Use the catalog that the newest epoch was committed with."""
        self._loaded = before.replaced_by(self.store.latest().catalog, catalog)

    def reload_catalog(self) -> None:
        """Load the newest catalog again: what could not be compiled may be possible now."""
        manifest = self.store.latest()
        self._loaded = self._loaded.replaced_by(manifest.catalog, self._load(manifest))

    def _load(self, manifest: Manifest) -> Catalog:
        catalog = load(manifest, self.engine, self.store.folder.shown)
        catalog.row_counts = self._row_counts
        return catalog.compile()

    def _row_counts(self) -> dict[str, int]:
        return {name: each.rows for name, each in self.store.latest().relations.items()}

    def snapshot(self) -> Snapshot:
        """The newest epoch."""
        return self.at()[0]

    def at(self, epoch: int | None = None) -> tuple[Snapshot, Catalog]:
        """An epoch, the newest unless one is named, and what it declares."""
        if epoch is None:
            manifest = self.store.latest()
            catalog = self.loaded(manifest).catalog
        else:
            manifest = self.store.read(epoch)
            catalog = self._load(manifest)
        return Snapshot(self.store, manifest, catalog.stored()), catalog

    def exclusively(self, work: Callable[[], T], turn: Transaction | None = None) -> T:
        """Write, after all other writers."""
        return self._access.run(work, turn)

    def begin(
        self, commit: Commit, preview: Preview, run_sql: RunSql, id_: TransactionId | None = None
    ) -> Transaction:
        """Begin a transaction, which holds up other writers until it ends."""
        self.must_write()

        def begun() -> Transaction:
            tx = Transaction(
                self.engine, *self.at(), commit, self.exclusively, id_, preview, run_sql
            )
            self._access.reserve(tx)
            return tx

        return self.exclusively(begun)

    def begin_alone(self, commit: Commit, preview: Preview = lambda *_: {}) -> Transaction:
        """Begin a transaction for who writes exclusively already."""
        return Transaction(self.engine, *self.at(), commit, preview=preview)

    def recover(self) -> None:
        """Drop what is in memory, to be loaded again: an exception may have left it half done."""
        self._engine.local.forget()
        self._store.forget()

    def must_be_open(self) -> None:
        """Refuse a handle that is closed, or that another process opened."""
        self._access.check()

    def must_write(self) -> None:
        """Refuse a handle that is open for reading only."""
        self.must_be_open()
        if self._read_only:
            raise UserError(
                "T009", "this database is open for reading only", remedy="open it without read_only"
            )

    def must_declare(self, span: Span | None = None) -> None:
        """Refuse a declaration inside a transaction, or on a handle for reading only."""
        if self.thread.transaction is not None:
            raise UserError(
                "T008",
                "tables and views cannot be created or dropped inside a transaction",
                span=span,
                remedy="declare them before it begins, or after COMMIT or ROLLBACK",
            )
        self.must_write()

    def lazy(self, result: Result, snapshot: Snapshot) -> Result:
        """Rows that are read when asked for, with clear errors if they cannot be read then."""
        return result.within(lambda: self.reading(snapshot))

    @contextmanager
    def reading(self, snapshot: Snapshot) -> Iterator[None]:
        """Say why rows could not be read: removed, damaged, or the handle was closed meanwhile."""
        self.must_be_open()
        try:
            with report_removed_epoch(snapshot), report_damage(snapshot):
                yield
        except Exception as problem:
            if self._access.is_closed:
                raise closed() from problem
            raise

    def close(self) -> None:
        """Release the store and the engine, after the current writer; again does nothing."""
        self.background.close()
        self._access.close(self._release)

    def wait(self) -> None:
        """Wait until nothing is done in the background."""
        self.background.wait()

    def _release(self) -> None:
        try:
            self._engine.close()
        finally:
            if self._lock is not None:
                self._lock.release()
