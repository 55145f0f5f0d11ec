"""The system tables there are: history, constraints and violations."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.constraints import constraint_tables
from everview.database.introspect.history import COLUMNS, history, history_rows
from everview.database.introspect.system_tables import PendingOf, SystemTable
from everview.runtime.protocol import Engine, Snapshot


def system_tables(
    catalog: Catalog, engine: Engine, snapshot: Snapshot, pending: PendingOf
) -> dict[str, SystemTable]:
    """Every table of the namespace `everview`, by name."""
    epochs = SystemTable(COLUMNS, lambda: history_rows(history(snapshot.store, catalog)))
    return {"history": epochs, **constraint_tables(catalog, engine, snapshot, pending)}
