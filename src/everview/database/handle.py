"""A store and an engine as one open handle: what both know of an epoch, until it is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import local
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.load import load
from everview.database.concurrency import Sharing, closed
from everview.database.error_context import in_time, sound
from everview.database.maintain import Mover
from everview.database.transaction import Transaction
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.results import Result
from everview.store.lock import WriterLock
from everview.store.manifest import Manifest, Opaque
from everview.store.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known:
    """What is declared, as manifests have it and as it was read; replaced in one step."""

    declared: Opaque
    catalog: Catalog
    mover: Mover

    def after(self, declared: Opaque, catalog: Catalog) -> Known:
        """The same with other declarations."""
        return Known(declared, catalog, replace(self.mover, catalog=catalog, _compiled={}))


class _Begun(local):
    """The transaction that a thread has begun with BEGIN."""

    transaction: Transaction | None = None


class Handle:
    """A store that is open, for any number of threads of one process."""

    def __init__(
        self, store: Store, engine: Engine, lock: WriterLock | None, *, read_only: bool = False
    ) -> None:
        self._store = store
        self._engine = engine
        engine.confine(store)
        self._lock = lock
        self._read_only = read_only
        self._sharing = Sharing(self._recover)
        self._begun = _Begun()
        manifest = store.latest()
        catalog = self._load(manifest)
        self._kept = Known(manifest.catalog, catalog, Mover(catalog, engine))

    @property
    def store(self) -> Store:
        """Where it lies; a database that is closed has none."""
        self._sharing.check()
        return self._store

    @property
    def engine(self) -> Engine:
        """What computes; a database that is closed has none."""
        self._sharing.check()
        return self._engine

    @property
    def epoch(self) -> int:
        """The number of the newest epoch."""
        return self.store.latest().epoch

    @property
    def catalog(self) -> Catalog:
        """What is declared at the newest epoch."""
        return self._known(self.store.latest()).catalog

    @property
    def _mover(self) -> Mover:
        return self._known(self.store.latest()).mover

    def _known(self, manifest: Manifest) -> Known:
        """What is known of the newest epoch; another writer may have declared more since."""
        known = self._kept
        if manifest.catalog is known.declared:
            return known
        if manifest.catalog == known.declared:
            fresh = replace(known, declared=manifest.catalog)
        else:
            fresh = known.after(manifest.catalog, self._load(manifest))
        self._kept = fresh
        return fresh

    def _load(self, manifest: Manifest) -> Catalog:
        return load(manifest, self.engine, self.store.folder.shown)

    def _snapshot(self, epoch: int | None = None) -> Snapshot:
        return self._epoch(epoch)[0]

    def _epoch(self, epoch: int | None = None) -> tuple[Snapshot, Catalog]:
        """One epoch and what it declares."""
        if epoch is None:
            manifest = self.store.latest()
            catalog = self._known(manifest).catalog
        else:
            manifest = self.store.read(epoch)
            catalog = self._load(manifest)
        return Snapshot(self.store, manifest, catalog.stored()), catalog

    def _alone(self, work: Callable[[], T], turn: Transaction | None = None) -> T:
        """Write, after all others who do."""
        return self._sharing.exclusively(work, turn)

    def _recover(self) -> None:
        """Load again what is in memory: an exception may have left it as no commit does."""
        self._engine.forget()
        self._store.forget()

    def _lazy(self, result: Result, snapshot: Snapshot) -> Result:
        """Rows that are read when they are asked for, if they can be had then."""

        def arrow() -> pa.Table:
            with self._readable(snapshot):
                return result.arrow()

        def frame() -> Any:
            with self._readable(snapshot):
                return result.to_spark()

        return Result(arrow, frame if result.frame else None)

    @contextmanager
    def _readable(self, snapshot: Snapshot) -> Iterator[None]:
        self._sharing.check()
        try:
            with in_time(snapshot), sound(snapshot):
                yield
        except Exception as problem:
            if self._sharing.is_closed:
                raise closed() from problem
            raise

    def close(self) -> None:
        """Release the store and the engine, when who writes now is done; again does nothing."""
        self._sharing.close(self._release)

    def _release(self) -> None:
        try:
            self._engine.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        self._sharing.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
