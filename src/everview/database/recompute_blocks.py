"""The change of a recomputed block: its query after a transaction, minus what is stored."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.database.queries import recompute
from everview.plan.traverse import sources
from everview.runtime.protocol import Changes, Engine, Part, Snapshot, row_count


def with_recomputed_blocks(
    catalog: Catalog, engine: Engine, changes: Changes, snapshot: Snapshot
) -> dict[str, list[Part]]:
    """The changes of tables, and of every block (`part`) that reads a changed table.

    The program then treats a block like a table: the views over it follow its change. A block may
    read views; since their new rows are not known before the program has run, they are evaluated
    from their plans, over the tables and blocks as they are after the changes.
    """
    found = {name: list(rows) for name, rows in changes.items()}
    if not any(_is_changed(catalog, part, changes) for part in catalog.parts):
        return found
    for name, part in catalog.parts.items():
        if _is_changed(catalog, name, changes):
            views = {v: catalog.compiled(v).plan for v in _changed_views(catalog, name, changes)}
            rows = recompute(engine, name, part.as_query, views, snapshot, found)
            if row_count(rows):
                found[name] = [rows]
    return found


def _is_changed(catalog: Catalog, name: str, changes: Changes) -> bool:
    """Whether a relation reads a changed table, itself or through others."""
    return name in changes or any(
        _is_changed(catalog, read, changes) for read in _reads(catalog, name)
    )


def _changed_views(catalog: Catalog, part: str, changes: Changes) -> list[str]:
    """The changed views that a block reads, in order of declaration."""
    needed = [read for read in catalog.parts[part].reads if read in catalog.views]
    for view in needed:
        needed += (read for read in _reads(catalog, view) if read in catalog.views)
    return [
        view for view in catalog.views if view in needed and _is_changed(catalog, view, changes)
    ]


def _reads(catalog: Catalog, name: str) -> tuple[str, ...]:
    """What a relation is computed from: tables, views, and the blocks of a view."""
    if name in catalog.tables:
        return ()
    if name in catalog.parts:
        return catalog.parts[name].reads
    if name in catalog.beyond_reach:
        return catalog.reads(name)
    return tuple(source.name for source in sources(catalog.compiled(name).plan))
