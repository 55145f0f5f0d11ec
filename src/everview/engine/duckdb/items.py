"""Stored relations as FROM items of DuckDB, read from their segments and copied nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from everview.emit.sql import DUCKDB, consolidate
from everview.engine.duckdb.hot import files_of
from everview.engine.protocol import Snapshot


def stored_item(name: str, snapshot: Snapshot) -> str:
    """The weighted rows of all segments of a relation, not added up."""
    segments, schema = snapshot.relation(name).segments, snapshot.stored[name].schema
    return f"({files_of(segments, snapshot).rows(schema)})"


def added_up(name: str, item: str, snapshot: Snapshot) -> str:
    """An item without rows that cancel."""
    stored = snapshot.stored[name]
    return f"({consolidate(f'SELECT * FROM {item}', stored.schema, stored.rings, DUCKDB)})"


def stored_items(names: Iterable[str], snapshot: Snapshot, *, careful: bool) -> dict[str, str]:
    """Relations by name; added up when that is asked for."""
    found = {name: stored_item(name, snapshot) for name in names}
    return {n: added_up(n, item, snapshot) for n, item in found.items()} if careful else found
