"""Audits of a store: every view against its query, and the labels of tables with collections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.database.audit import audit_view
from everview.database.catalog.catalog import BEYOND_REACH, Catalog
from everview.database.collections.consistency import audit_labels
from everview.database.error_context import report_damage
from everview.database.verdict import ViewAudit
from everview.errors import UserError
from everview.runtime.protocol import Engine, Snapshot


@dataclass(frozen=True, slots=True)
class Audit:
    """The views that were audited, at one epoch; iterate over it to get each.

    The collections of tables are among them: their labels are compared with those above them.

    For example:

        [(each.view, each.missing, each.surplus) for each in db.audit() if not each.ok]
    """

    epoch: int
    views: tuple[ViewAudit, ...]

    @property
    def ok(self) -> bool:
        """Whether every view equals its query."""
        return all(view.ok for view in self.views)

    def __iter__(self) -> Iterator[ViewAudit]:
        return iter(self.views)


def audit_whole(
    name: str, catalog: Catalog, engine: Engine, snapshot: Snapshot
) -> tuple[ViewAudit, ...]:
    """A view against its query over the tables, and so the collections inside a nested view.

    What is read of a nested view is put together from these, so it equals its query if they do.
    Of a table with collections it is the labels that are audited.
    """
    if name in catalog.tables and catalog.tables[name].collections:
        with report_damage(snapshot):
            return tuple(audit_labels(catalog.tables[name], engine, snapshot))
    return tuple(
        audit_view(each, catalog, engine, snapshot, from_tables=True)
        for each in (name, *catalog.dictionaries(name))
    )


def audit_all(catalog: Catalog, engine: Engine, snapshot: Snapshot) -> Audit:
    """Every view against its query over what it reads, or why this engine cannot evaluate it."""
    audits = []
    for name in catalog.views:
        try:
            audits.append(audit_view(name, catalog, engine, snapshot, from_tables=False))
        except UserError as problem:
            if problem.code not in BEYOND_REACH:
                raise
            audits.append(ViewAudit(name, None, (), (), problem.problem))
    with report_damage(snapshot):
        for table in catalog.tables.values():
            audits += audit_labels(table, engine, snapshot)
    return Audit(snapshot.manifest.epoch, tuple(audits))
