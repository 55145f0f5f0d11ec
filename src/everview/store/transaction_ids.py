"""Which transactions a store has committed: the last number of each writer, and recent ids.

The numbers of a writer ascend, so its last one says of every number whether it was committed, and
one entry per writer is kept for ever. An id that is a text says nothing of others, so each is kept
for a time, `ID_SECONDS` at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

TransactionId: TypeAlias = str | tuple[str, int]
"""A text, or the name of a writer with a number."""

ID_SECONDS = 7 * 24 * 3600
"""How long an id is kept at least."""


@dataclass(frozen=True, slots=True)
class CommittedIds:
    """By writer its last number with the epoch; by id its epoch, with seconds since 1970."""

    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recent: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def epoch_of(self, id_: TransactionId) -> int | None:
        """An epoch in which a transaction has been committed; None if it has not.

        It is the one it was committed in, or, for a writer who has gone on since, the one that his
        last number was committed in.
        """
        if isinstance(id_, str):
            return self.recent[id_][0] if id_ in self.recent else None
        writer, number = id_
        last, epoch = self.writers.get(writer, (-1, 0))
        return epoch if number <= last else None

    def after(self, id_: TransactionId, epoch: int, created: str) -> CommittedIds:
        """With one more, committed at a time; ids that are older than they need be are left out."""
        if not isinstance(id_, str):
            return CommittedIds({**self.writers, id_[0]: (id_[1], epoch)}, self.recent)
        now = int(datetime.fromisoformat(created).timestamp())
        kept = {each: at for each, at in self.recent.items() if at[1] > now - ID_SECONDS}
        return CommittedIds(self.writers, {**kept, id_: (epoch, now)})


@dataclass(frozen=True, slots=True)
class IdsDelta:
    """What an epoch changes of the ids: those it adds or replaces, and those it forgets."""

    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    recent: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


NO_IDS = CommittedIds()
SAME_IDS = IdsDelta()


def ids_difference(before: CommittedIds, after: CommittedIds) -> IdsDelta:
    """What turns the ids of one epoch into those of the next; writers are never forgotten."""
    if before is after:
        return SAME_IDS
    return IdsDelta(
        {name: at for name, at in after.writers.items() if before.writers.get(name) != at},
        {name: at for name, at in after.recent.items() if before.recent.get(name) != at},
        tuple(sorted(before.recent.keys() - after.recent.keys())),
    )


def follow_ids(before: CommittedIds, delta: IdsDelta) -> CommittedIds:
    """The ids of the next epoch: follow_ids(b, ids_difference(b, a)) = a."""
    if delta == SAME_IDS:
        return before
    forgotten = {*delta.forgotten}
    kept = {each: at for each, at in before.recent.items() if each not in forgotten}
    return CommittedIds({**before.writers, **delta.writers}, {**kept, **delta.recent})
