"""Commits the next epoch: of a transaction, of declarations, or of a compaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview.database.backfill import backfill
from everview.database.ddl import CatalogChange
from everview.database.error_context import report_damage
from everview.database.handle import Handle
from everview.database.introspect.epoch_notes import (
    declaration_note,
    read_note,
    time_note,
    timestamp,
)
from everview.database.replace_views import find_faulty
from everview.database.transaction import Transaction
from everview.errors import UserError
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Clock
from everview.store.compaction import Policy, compact, compactable
from everview.store.errors import best_effort
from everview.store.manifest import Manifest
from everview.store.store import Store

COMPACTION = Policy(changes=16)
"""When the segments of a relation that changed are compacted after a commit."""
COMPACT_ALL = Policy(0, 0.0, 0, float("inf"))


def commit_transaction(db: Handle, tx: Transaction) -> int:
    """Commit the changes of a transaction with all that follows from them; the newest epoch."""
    snapshot = tx.snapshot
    if not tx.pending:
        return snapshot.manifest.epoch
    if db.store.latest().epoch != snapshot.manifest.epoch:
        raise UserError(
            "T007",
            "the store has moved on since this transaction began",
            remedy="begin the transaction again",
        )
    with report_damage(snapshot):
        refreshed = db.maintainer.refresh(tx.pending, tx.removes, snapshot)
    if refreshed is None:
        return snapshot.manifest.epoch
    following = refreshed.writes.advance(snapshot.manifest, timestamp(), note=refreshed.note)
    record(db.store, following, refreshed.clock)
    _compact_if_due(db, refreshed.writes.changes, following)
    return following.epoch


def install(db: Handle, change: CatalogChange) -> None:
    """Commit another catalog: build what it needs, drop what nothing needs any more."""
    manifest, catalog = db.store.latest(), change.catalog.compile()
    before = db.loaded(manifest)
    clock = Clock()
    snapshot = Snapshot(db.store, manifest, catalog.stored())
    with clock.phase("compute"):
        faulty = find_faulty(change, before.catalog, db.engine, db.snapshot())
        writes = backfill(
            before.catalog,
            catalog,
            db.engine,
            snapshot,
            change.around_build(db.on_progress),
            faulty.relations,
            faulty.unreadable,
        )
    writes.bases |= change.initial_rows
    note = declaration_note(writes, manifest, catalog)
    record(db.store, writes.advance(manifest, timestamp(), catalog.to_json(), note), clock)
    db.keep_catalog(before, catalog)
    db.engine.local.on_compacted(db.snapshot(), db.store.latest())


def compact_all(db: Handle) -> int:
    """Consolidate the segments of every relation; the new epoch."""
    return compact_relations(db, tuple(db.snapshot().stored), COMPACT_ALL)


def compact_relations(db: Handle, due: Iterable[str], policy: Policy) -> int:
    """Consolidate segments of the relations that are due, as the policy says; the new epoch."""
    clock, snapshot = Clock(), db.snapshot()
    stored = {n: s for n, s in snapshot.stored.items() if n in snapshot.manifest.relations}
    with clock.phase("compute"), report_damage(snapshot):
        following = compact(
            db.store,
            snapshot.manifest,
            [name for name in due if name in stored],
            {name: arrow_schema(each.schema) for name, each in stored.items()},
            lambda name, rows: db.engine.local.consolidate(rows, stored[name]),
            created=timestamp(),
            policy=policy,
        )
    record(db.store, following, clock)
    db.engine.local.on_compacted(snapshot, following)
    return following.epoch


def _compact_if_due(db: Handle, changed: Iterable[str], newest: Manifest) -> None:
    due = tuple(n for n in changed if compactable(newest.relations[n], COMPACTION))
    if due:
        with best_effort():
            compact_relations(db, due, COMPACTION)


def record(store: Store, manifest: Manifest, clock: Clock) -> None:
    """Commit an epoch, its note with the time it took: all but writing the note itself."""
    assert manifest.parent is not None
    began = clock.total
    measured = read_note(store.read(manifest.parent)).get("samples", {})

    def note() -> dict[str, Any]:
        clock.add("commit", clock.total - began)
        return {"samples": measured, **manifest.note, **time_note(clock)}

    store.commit(manifest, note)
