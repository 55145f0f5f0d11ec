"""Stored relations as FROM items of DuckDB, read from their segments; not added up."""

from __future__ import annotations

from collections.abc import Iterable

from everview.engines.duckdb.calculator import Calculator
from everview.engines.duckdb.files import files_of
from everview.runtime.protocol import Snapshot
from everview.sqlgen.sql import DUCKDB, consolidate


def stored_item(name: str, snapshot: Snapshot, calculator: Calculator) -> str:
    """The weighted rows of all segments of a relation, until the calculator forgets."""
    schema = snapshot.stored[name].schema
    files = files_of(name, snapshot.relation(name).files, snapshot.store, schema)
    return f"({calculator.item(files, schema)})"


def added_up(name: str, item: str, snapshot: Snapshot) -> str:
    """An item without rows that cancel."""
    stored = snapshot.stored[name]
    return f"({consolidate(f'SELECT * FROM {item}', stored.schema, stored.rings, DUCKDB)})"


def stored_items(
    names: Iterable[str], snapshot: Snapshot, calculator: Calculator, *, careful: bool
) -> dict[str, str]:
    """Relations by name; added up when that is asked for."""
    found = {name: stored_item(name, snapshot, calculator) for name in names}
    return {n: added_up(n, item, snapshot) for n, item in found.items()} if careful else found
