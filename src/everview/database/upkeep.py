"""Upkeep that a user asks for: everything compacted, and old epochs removed."""

from __future__ import annotations

from datetime import timedelta

from everview.database.compaction import compact_relations
from everview.database.handle import Handle
from everview.store.compaction_policy import WHOLE
from everview.store.retention import retire


def compact_all(db: Handle) -> int:
    """Fold all changes of every relation into its base; the new epoch."""
    return db.exclusively(lambda: compact_relations(db, tuple(db.snapshot().stored), WHOLE))


def retain(db: Handle, epochs: int, grace: timedelta) -> list[str]:
    """Keep the newest epochs; the paths that were deleted.

    What is written in the background is named by no epoch yet, so that comes first.
    """
    db.wait()
    return db.exclusively(lambda: retire(db.store, epochs, grace))
