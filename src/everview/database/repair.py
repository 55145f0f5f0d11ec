"""Repair: builds damaged views and states of the newest epoch again, from undamaged tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from everview.database.backfill import backfill
from everview.database.catalog.catalog import Catalog
from everview.database.handle import Handle
from everview.database.introspect.epoch_notes import declaration_note, timestamp
from everview.database.recording import record
from everview.database.verify import Damaged, Verification
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.plan.traverse import sources
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Clock
from everview.store.manifest import Manifest


@dataclass(frozen=True, slots=True)
class LostRows:
    """A table with damaged files: their paths, how many rows they held, and who wrote them.

    `epochs` are those that wrote the files. Restore the files from a backup.
    """

    table: str
    rows: int
    epochs: tuple[int, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """What was damaged, what was built again, and what could not be.

    `found` is the verification before the repair, and `epoch` the epoch that the repair made, if
    it built anything. `rebuilt` are the views and states that were built again, `lost` the tables
    with damaged files. `waiting` are damaged views and states that read such a table.
    """

    found: Verification
    epoch: int | None = None
    rebuilt: tuple[str, ...] = ()
    lost: tuple[LostRows, ...] = ()
    waiting: tuple[str, ...] = ()
    """Damaged views and states that read a damaged table."""

    @property
    def ok(self) -> bool:
        """Whether the newest epoch is whole now."""
        left = self.lost or self.waiting
        return not left and (self.epoch is not None or not self._damaged)

    @property
    def _damaged(self) -> tuple[Damaged, ...]:
        return self.found.of_epoch(self.found.newest)


def repair(db: Handle, found: Verification) -> Repair:
    """Build the damaged views and states of the newest epoch again, in a new epoch."""
    manifest, catalog = db.store.latest(), db.catalog
    here = found.of_epoch(found.newest)
    damaged = {name for each in here for name in each.relations} & manifest.relations.keys()
    tables = damaged & catalog.tables.keys()
    blocked = _reading(catalog, tables)
    buildable = sorted(damaged - tables - blocked)
    lost = tuple(_lost_rows(name, manifest, here) for name in sorted(tables))
    waiting = tuple(sorted(damaged & blocked))
    epoch = _rebuild(db, manifest, buildable) if buildable else None
    return Repair(found, epoch, tuple(buildable), lost, waiting)


def _rebuild(db: Handle, manifest: Manifest, names: Collection[str]) -> int:
    """Commit an epoch in which relations are built as if they had never been stored."""
    clock, catalog = Clock(), db.catalog
    kept = {name: each for name, each in manifest.relations.items() if name not in names}
    pruned = replace(manifest, relations=kept)
    with clock.phase("compute"):
        snapshot = Snapshot(db.store, pruned, catalog.stored())
        writes = backfill(catalog, catalog, db.engine, snapshot)
    note = {**declaration_note(writes, manifest, catalog), "kind": "repair"}
    record(db.store, writes.advance(pruned, timestamp(), note=note), clock)
    return db.store.latest().epoch


def _lost_rows(name: str, manifest: Manifest, damaged: Sequence[Damaged]) -> LostRows:
    paths = {each.path for each in damaged if name in each.relations}
    segments = manifest.relations[name].segments
    files = [(s.epoch, f) for s in segments for f in s.files if f.path in paths]
    epochs = tuple(sorted({epoch for epoch, _ in files}))
    return LostRows(name, sum(f.rows for _, f in files), epochs, tuple(f.path for _, f in files))


def _reading(catalog: Catalog, tables: Collection[str]) -> set[str]:
    """The views and states that read one of some tables, themselves or through others."""
    plans = {s.name: s.plan for s in catalog.maintenance.states.stored.values()}
    plans |= {name: catalog.compiled(name).plan for name in catalog.views}
    readers = {*tables}
    while True:
        more = {n for n, plan in plans.items() if readers & {each.name for each in sources(plan)}}
        more |= {n for n, part in catalog.parts.items() if readers & {*_reads(part, catalog)}}
        if more <= readers:
            return readers - {*tables}
        readers |= more


def _reads(part: RecomputedBlock, catalog: Catalog) -> Iterator[str]:
    for name in part.reads:
        yield catalog.find(name) or name
