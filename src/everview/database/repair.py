"""What is damaged of the newest epoch, built again from the tables as far as they are whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from everview.database.backfill import build
from everview.database.catalog.catalog import Catalog
from everview.database.introspect import statistics
from everview.database.verify import Damaged, Verification
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.plan.traverse import sources
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Clock
from everview.store.manifest import Manifest

if TYPE_CHECKING:
    from everview.database.database import Database


@dataclass(frozen=True, slots=True)
class Lost:
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
    lost: tuple[Lost, ...] = ()
    waiting: tuple[str, ...] = ()
    """Views and states that are damaged and read a table that is."""

    @property
    def ok(self) -> bool:
        """Whether the newest epoch is whole now."""
        left = self.lost or self.waiting
        return not left and (self.epoch is not None or not self._damaged)

    @property
    def _damaged(self) -> tuple[Damaged, ...]:
        return self.found.of_epoch(self.found.newest)


def repair(db: Database, found: Verification) -> Repair:
    """Build what was found damaged of the newest epoch again, in a new epoch."""
    manifest, catalog = db.store.latest(), db.catalog
    here = found.of_epoch(found.newest)
    damaged = {name for each in here for name in each.relations} & manifest.relations.keys()
    tables = damaged & catalog.tables.keys()
    hidden = _reading(catalog, tables)
    anew = sorted(damaged - tables - hidden)
    lost = tuple(_lost(name, manifest, here) for name in sorted(tables))
    waiting = tuple(sorted(damaged & hidden))
    epoch = _rebuilt(db, manifest, anew) if anew else None
    return Repair(found, epoch, tuple(anew), lost, waiting)


def _rebuilt(db: Database, manifest: Manifest, names: Collection[str]) -> int:
    """Commit an epoch in which relations are built as if they had never been."""
    clock, catalog = Clock(), db.catalog
    kept = {name: each for name, each in manifest.relations.items() if name not in names}
    pruned = replace(manifest, relations=kept)
    with clock.phase("compute"):
        built = build(catalog, catalog, db.engine, Snapshot(db.store, pruned, catalog.stored()))
    note = {**statistics.built(built, manifest, catalog), "kind": "repair"}
    db._record(built.on(pruned, statistics.now(), note=note), clock)
    return db.epoch


def _lost(name: str, manifest: Manifest, damaged: Sequence[Damaged]) -> Lost:
    paths = {each.path for each in damaged if name in each.relations}
    segments = manifest.relations[name].segments
    files = [(s.epoch, f) for s in segments for f in s.files if f.path in paths]
    epochs = tuple(sorted({epoch for epoch, _ in files}))
    return Lost(name, sum(f.rows for _, f in files), epochs, tuple(f.path for _, f in files))


def _reading(catalog: Catalog, tables: Collection[str]) -> set[str]:
    """The views and states that read one of some tables, themselves or through others."""
    plans = {s.name: s.plan for s in catalog.maintenance.states.stored.values()}
    plans |= {name: catalog.compiled(name).plan for name in catalog.views}
    found = {*tables}
    while True:
        more = {n for n, plan in plans.items() if found & {each.name for each in sources(plan)}}
        more |= {n for n, part in catalog.parts.items() if found & {*_reads(part, catalog)}}
        if more <= found:
            return found - {*tables}
        found |= more


def _reads(part: RecomputedBlock, catalog: Catalog) -> Iterator[str]:
    for name in part.reads:
        yield catalog.find(name) or name
