"""Commits the next epoch: of a transaction, or of declarations."""

from __future__ import annotations

from everview.database.backfill import backfill, stale_relations
from everview.database.compaction import compact_if_due
from everview.database.ddl import CatalogChange
from everview.database.error_context import report_damage, with_span
from everview.database.handle import Handle
from everview.database.introspect.epoch_notes import declaration_note, timestamp
from everview.database.recording import record
from everview.database.replace_views import find_faulty
from everview.database.transaction import Transaction
from everview.database.validate import validate
from everview.errors import Span, UserError
from everview.plan.nodes import Plan
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Clock


def commit_transaction(db: Handle, tx: Transaction) -> int:
    """Commit the changes of a transaction with all that follows from them; the newest epoch.

    A transaction with an id makes an epoch even if it changes nothing: the id has to be kept, since
    the same statements might change something later.
    """
    snapshot = tx.snapshot
    if tx.committed_in is not None:
        return tx.committed_in
    if not tx.pending and tx.id is None:
        return snapshot.manifest.epoch
    if db.store.latest().epoch != snapshot.manifest.epoch:
        raise UserError(
            "T007",
            "the store has moved on since this transaction began",
            remedy="begin the transaction again",
        )
    with report_damage(snapshot):
        refreshed = db.maintainer.refresh(tx.pending, tx.removes, snapshot, tx.id is not None)
    if refreshed is None:
        return snapshot.manifest.epoch
    following = refreshed.writes.advance(snapshot.manifest, db.now(), note=refreshed.note)
    following = following.of_transaction(tx.id)
    record(db.store, following, refreshed.clock)
    compact_if_due(db, refreshed.writes.changes, following)
    return following.epoch


def install_plan(db: Handle, name: str, plan: Plan) -> None:
    """Commit a view by a plan that was built in Python."""
    install(db, CatalogChange(db.catalog.with_plan(name, plan)))


def install_relalg(db: Handle, name: str, text: Span) -> None:
    """Commit a view by an expression of relational algebra."""
    db.catalog.must_be_free(name)  # what is wrong with the name has no place in the text
    with with_span(text):
        install(db, CatalogChange(db.catalog.with_relalg(name, text.text)))


def install(db: Handle, change: CatalogChange) -> None:
    """Commit another catalog: build what it needs, drop what nothing needs any more."""
    manifest, catalog = change.relations_of(db.store.latest()), change.catalog.compile()
    before = db.loaded(db.store.latest())
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
            change.alteration.same if change.alteration else (),
        )
        writes.bases |= change.initial_rows
        after = Snapshot(db.store, writes.advance(manifest), catalog.stored())
        stale = stale_relations(before.catalog, catalog, faulty.relations)
        with report_damage(after):
            validate(before.catalog, catalog, stale, db.engine, after, change.at_statement)
    note = declaration_note(writes, manifest, catalog)
    record(db.store, writes.advance(manifest, timestamp(), catalog.to_json(), note), clock)
    db.keep_catalog(before, catalog)
    db.engine.local.on_compacted(db.snapshot(), db.store.latest())
