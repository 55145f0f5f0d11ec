"""The change of what is recomputed: its query after a transaction, minus what is stored."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from everview.database.catalog.catalog import Catalog
from everview.plan.traverse import sources
from everview.runtime.protocol import Changes, Engine, Snapshot


def with_parts(
    catalog: Catalog, engine: Engine, changes: Changes, snapshot: Snapshot
) -> dict[str, list[Any]]:
    """The changes of tables, and of every part that a changed table is under.

    From then on a part is like a table: the views over it follow its change in the same program.
    A part may read views. Their new rows are not known before the program has run, so they are
    evaluated from their plans, over the tables and the parts as they are after the changes.
    """
    found = {name: list(rows) for name, rows in changes.items()}
    if not any(_moves(catalog, part, changes) for part in catalog.parts):
        return found
    found = {
        name: [engine.fixed(each, name, snapshot) for each in rows] for name, rows in found.items()
    }
    for name, part in catalog.parts.items():
        if _moves(catalog, name, changes):
            views = {v: catalog.compiled(v).plan for v in _moved_views(catalog, name, changes)}
            rows = engine.recompute(name, part.as_query, views, snapshot, found)
            if not isinstance(rows, pa.Table) or rows.num_rows:
                found[name] = [rows]
    return found


def _moves(catalog: Catalog, name: str, changes: Changes) -> bool:
    """Whether a relation has a changed table under it."""
    return name in changes or any(_moves(catalog, read, changes) for read in _reads(catalog, name))


def _moved_views(catalog: Catalog, part: str, changes: Changes) -> list[str]:
    """The views under a part that the changes move, in order of declaration."""
    needed = [read for read in catalog.parts[part].reads if read in catalog.views]
    for view in needed:
        needed += (read for read in _reads(catalog, view) if read in catalog.views)
    return [view for view in catalog.views if view in needed and _moves(catalog, view, changes)]


def _reads(catalog: Catalog, name: str) -> tuple[str, ...]:
    """What a relation is computed from: tables, views, and the parts of a view."""
    if name in catalog.tables:
        return ()
    if name in catalog.parts:
        return catalog.parts[name].reads
    if name in catalog.beyond_reach:
        return catalog.reads(name)
    return tuple(source.name for source in sources(catalog.compiled(name).plan))
