"""Queries over all system tables: those of `everview`, and those of `information_schema`."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.declared import NAMESPACE, information_schema
from everview.database.introspect.system_tables import (
    BoundQuery,
    PendingOf,
    bind_system_tables,
)
from everview.database.introspect.tables import system_tables
from everview.runtime.protocol import Engine, Snapshot


def bind_query(
    query: BoundQuery,
    catalog: Catalog,
    engine: Engine,
    snapshot: Snapshot,
    pending: PendingOf = lambda _: {},
) -> BoundQuery:
    """A query with each system table that it names bound to its rows, after pending changes."""
    bound = bind_system_tables(query, system_tables(catalog, engine, snapshot, pending))
    return bind_system_tables(bound, information_schema(catalog), NAMESPACE)
