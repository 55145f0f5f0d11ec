"""Compaction of a database: in the turn of a transaction where it is tiny, else beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from everview.database.error_context import report_damage
from everview.database.handle import Handle
from everview.database.introspect.epoch_notes import timestamp
from everview.database.recording import record
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Clock
from everview.store.compaction import (
    Fold,
    files_written,
    fold_all,
    fold_of,
    is_there,
    replace_runs,
)
from everview.store.compaction_policy import Policy, next_run
from everview.store.errors import best_effort
from everview.store.manifest import Manifest, Run

COMPACTION = Policy(changes=16)
"""When the segments of a relation that changed are compacted after a commit."""
INLINE_ROWS = 10_000
"""So few rows are added up at once, in the time of their transaction: that takes a few ms, most of
them for the epoch, which would hold up the next transaction all the same."""
BATCH_ROWS = 500_000
"""Runs of no more rows in all are replaced in one epoch; the files of more count earlier apart."""
BACKLOG = 64
"""With so many segments a relation is compacted at once, however long that takes: transactions come
faster than the background folds, or processes end before it is done."""


def compact_relations(db: Handle, due: Iterable[str], policy: Policy) -> int:
    """Fold segments of the relations that are due, as the policy says; the new epoch."""
    clock, snapshot = Clock(), db.snapshot()
    names = [name for name in due if name in _stored(snapshot)]
    runs = [run for name in names if (run := next_run(snapshot.relation(name), policy))]
    with clock.phase("compute"):
        folds = _fold(db, snapshot, runs, lambda: None)
    return _commit(db, folds, names, clock)


def compact_if_due(db: Handle, changed: Iterable[str], newest: Manifest) -> None:
    """Compact what a transaction has made due: tiny runs now, others in the background.

    With tiny runs go those of relations that would be due soon: each epoch of its own costs as much
    as the files of a transaction.
    """
    names, flying = [*changed], db.folding

    def due(policy: Policy) -> list[Run]:
        relations = (newest.relations[name] for name in names)
        found = (next_run(each, policy, flying.get(each.name)) for each in relations)
        return [run for run in found if run]

    runs = due(COMPACTION)
    now = _urgent(runs, newest)
    if now and len(now) == len(runs):
        soon = due(replace(COMPACTION, changes=COMPACTION.changes // 2))
        now = soon if len(_urgent(soon, newest)) == len(soon) else now
    if now:
        clock = Clock()
        with best_effort():
            with clock.phase("compute"):
                folds = _fold(db, db.snapshot(), now, lambda: None)
            _commit(db, folds, [run.name for run in now], clock)
    if len(now) < len(runs):
        db.background.start(lambda: _compact_in_background(db))


def _urgent(runs: Sequence[Run], newest: Manifest) -> list[Run]:
    """Those runs that are folded at once."""
    tiny = sum(run.rows for run in runs) <= INLINE_ROWS
    return [
        run
        for run in runs
        if tiny
        or run.rows <= INLINE_ROWS // len(runs)
        or len(newest.relations[run.name].segments) > BACKLOG
    ]


def _compact_in_background(db: Handle) -> None:
    """Fold what is due, while transactions go on; each run is tried once, so that this ends."""
    tried: set[tuple[str, ...]] = set()
    while True:
        snapshot = db.snapshot()
        due = (next_run(snapshot.relation(name), COMPACTION) for name in _stored(snapshot))
        runs = _batch([run for run in due if run and run.ids not in tried])
        if not runs:
            return
        tried |= {run.ids for run in runs}
        db.background.check()
        _fold_in_background(db, snapshot, runs)


def _batch(runs: Sequence[Run]) -> list[Run]:
    """The runs that one epoch replaces: short ones together, a long one alone."""
    totals = accumulate(run.rows for run in runs)
    return [run for run, total in zip(runs, totals, strict=True) if total <= BATCH_ROWS] or [
        *runs[:1]
    ]


def _fold_in_background(db: Handle, snapshot: Snapshot, runs: Sequence[Run]) -> None:
    clock, background = Clock(), db.background
    db.folding = {run.name: run.ids[-1] for run in runs}
    try:
        with clock.phase("compute"):
            folds = _fold(db, snapshot, runs, background.check)
        background.finishing()
        db.exclusively(lambda: _commit(db, folds, [run.name for run in runs], clock))
    finally:
        db.folding = {}


def _fold(
    db: Handle, snapshot: Snapshot, runs: Sequence[Run], between: Callable[[], None]
) -> list[Fold]:
    """Write the sums of runs: by the engine where it wants to, else here."""
    epoch, stored = snapshot.manifest.epoch + 1, snapshot.stored
    folds, ours = [], []
    with report_damage(snapshot):
        for run in runs:
            made = db.engine.compact(run, snapshot, epoch)
            if made is None:
                ours.append(run)
            else:
                db.store.sync(made)
                folds.append(fold_of(run, made))
        return folds + fold_all(
            db.store,
            ours,
            {run.name: stored[run.name].arrow() for run in ours},
            lambda name, rows: db.engine.local.consolidate(rows, stored[name]),
            epoch,
            between,
        )


def _commit(db: Handle, folds: Sequence[Fold], names: Sequence[str], clock: Clock) -> int:
    """Commit an epoch in which runs are replaced by their sums; the newest epoch.

    A run may have gone while it was folded: its relation was dropped or rebuilt. Then what was
    written for it goes too.
    """
    snapshot = db.snapshot()
    gone = [fold for fold in folds if not is_there(snapshot.manifest, fold)]
    if gone:
        db.store.discard(files_written(gone))
        if len(gone) == len(folds):
            return snapshot.manifest.epoch
    following = replace_runs(snapshot.manifest, folds, timestamp(), {"compacted": list(names)})
    record(db.store, following, clock)
    db.engine.local.on_compacted(snapshot, following)
    return following.epoch


def _stored(snapshot: Snapshot) -> list[str]:
    """The relations that are declared and there."""
    return [name for name in snapshot.stored if name in snapshot.manifest.relations]
