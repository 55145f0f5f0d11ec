"""A query by the user: what each name in it is, and who answers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from everview.database import queries
from everview.database.error_context import report_removed_epoch
from everview.database.handle import Handle
from everview.database.introspect.bound_query import bind_query
from everview.database.introspect.system_tables import BoundQuery
from everview.database.time_travel import bind_versions
from everview.runtime.protocol import Changes
from everview.runtime.results import Result


def select_rows(db: Handle, text: str, reads: tuple[str, ...]) -> Result:
    """The rows of a query by the open transaction, or at the newest epoch; read when asked for."""
    tx = db.thread.transaction
    snapshot, catalog = (tx.snapshot, tx.catalog) if tx else db.at()
    found = catalog.read_by(reads)

    def pending_of(names: Iterable[str]) -> Changes:
        return tx.run(lambda: tx.pending_of(names)) if tx else {}

    pending = pending_of(found)
    asked, travelled = bind_versions(BoundQuery(text, found, snapshot, pending), db.engine)
    asked = bind_query(asked, catalog, db.engine, snapshot, pending_of)
    with db.reading(snapshot):
        result = queries.select(db.engine, asked.text, asked.reads, asked.snapshot, asked.pending)
    for then in travelled:
        result = result.within(partial(report_removed_epoch, then))
    return db.lazy(queries.within_budget(result, db.engine), snapshot)
