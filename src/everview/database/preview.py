"""What a transaction would change of views: its program is run, and nothing is committed."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from everview.database.backfill import EpochWrites
from everview.database.cost.measurements import SAMPLES, Measurements
from everview.database.introspect.epoch_notes import read_note
from everview.database.maintain import Maintainer
from everview.database.referential_actions import with_referential_actions
from everview.database.violations import violation
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Changes, LoopNotFollowedError, Part, Snapshot, Staged


def preview(
    maintainer: Maintainer,
    pending: Changes,
    removes: frozenset[str],
    snapshot: Snapshot,
    wanted: Collection[str],
) -> dict[str, list[Part]]:
    """The changes of the relations `wanted` that follow from pending ones, by one run of a program.

    Those of tables are what is pending, with what foreign keys add: they need no program.
    It goes the way that the commit would go, and raises what that would raise. A program that runs
    in process writes nothing. Where views are rebuilt, or executors compute, files are written that
    no epoch names.
    """
    if not pending:
        return {}
    engine, tables = maintainer.engine, maintainer.catalog.tables
    if not any(name not in tables for name in wanted):
        catalog = maintainer.catalog
        grown, _ = with_referential_actions(catalog, engine, pending, removes, snapshot)
        return {name: grown[name] for name in wanted if name in grown}
    changes, compiled = maintainer.prepare(pending, removes, snapshot)
    measured = Measurements.of(read_note(snapshot.manifest, SAMPLES))
    choice = maintainer.choose_way(compiled, changes, snapshot, measured)
    given = {name: changes[name] for name in wanted if name in tables and name in changes}
    views = [name for name in wanted if name not in tables]
    with maintainer.explained(compiled):
        if choice.way == "incremental":
            program = compiled.program.publishing(views)
            with suppress(LoopNotFollowedError):
                found = engine.preview(program, changes, snapshot, violation, views)
                return given | {name: [part] for name, part in found.items()}
        writes, _ = maintainer.recompute(compiled, changes, snapshot)
    return given | _taken(writes, views, snapshot, engine.large_rows)


def _taken(
    writes: EpochWrites, wanted: Collection[str], snapshot: Snapshot, most: float
) -> dict[str, list[Part]]:
    """Changes that were written, read back if they are small; other files are not needed."""
    kept = {name: each for name, each in writes.changes.items() if name in wanted}
    large = {name: [Staged(each)] for name, each in kept.items() if each.rows > most}
    small = {
        name: [snapshot.store.rows_of(each, arrow_schema(snapshot.stored[name].schema))]
        for name, each in kept.items()
        if name not in large
    }
    for written in (writes.bases, writes.changes):
        for name, segment in written.items():
            if name not in large:
                snapshot.store.discard(segment.files)
    return {**large, **small}
