"""Queries over all system tables: `everview.history` and those of `information_schema`."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.declared import NAMESPACE, information_schema
from everview.database.introspect.history import COLUMNS, history, history_rows
from everview.database.introspect.system_tables import BoundQuery, SystemTable, bind_system_tables
from everview.store.store import Store


def bind_query(query: BoundQuery, store: Store, catalog: Catalog) -> BoundQuery:
    """A query with each system table that it names bound to its rows."""
    epochs = SystemTable(COLUMNS, lambda: history_rows(history(store, catalog)))
    bound = bind_system_tables(query, {"history": epochs})
    return bind_system_tables(bound, information_schema(catalog), NAMESPACE)
