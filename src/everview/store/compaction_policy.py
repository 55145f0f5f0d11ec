"""Which segments of a relation are folded, and which files of its base stay as they are.

Levels: changes are merged with those of similar size, and go into the base once they have grown to
a part of what they meet there. So each row is rewritten a logarithmic number of times. A fold into
the base takes the files whose keys the changes may have; equal rows have equal keys, so no other
file has a row to add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from everview.store.bounds import decode
from everview.store.manifest import DataFile, Relation, Run, Segment

FILE_ROWS = 1_000_000
"""A file that compaction writes has about so many rows at the most: the range of its keys is what
a later fold can leave out."""
FILE_MEMORY_BYTES = 256 << 20
"""And about so many bytes in memory, which are a quarter as Parquet."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Compact beyond `changes` change segments, or `fraction` of the base in changed rows.

    Of the base only files count whose keys the changes may have.
    """

    changes: int = 8
    fraction: float = 1.0
    least_rows: int = 100_000
    """Fewer changed rows than this never trigger by fraction: to read them costs less."""
    growth: float = 2.0
    """An older change is folded in when it has at most this many times the rows folded so far."""
    file_rows: int = FILE_ROWS


DEFAULT = Policy()

WHOLE = Policy(changes=0, fraction=0.0, least_rows=0, growth=float("inf"))
"""Fold everything into one base."""


def next_run(relation: Relation, policy: Policy, after: str | None = None) -> Run | None:
    """The segments to be folded next, the newest among them; None if none are to be.

    Segments up to the one with the id `after` are left alone: somebody else is folding them.
    """
    segments, alone = relation.segments, 1
    if after is not None:
        alone += next((at for at, each in enumerate(segments) if each.id == after), 0)
    first, kept = _fold_from(segments, policy, alone, whole=after is None)
    if first == len(segments):
        return None
    return Run(relation.name, segments[first:], policy.file_rows, kept, first == 0)


def _fold_from(
    segments: Sequence[Segment], policy: Policy, alone: int, *, whole: bool
) -> tuple[int, tuple[DataFile, ...]]:
    """Where the suffix to be folded begins, and the files that it leaves alone.

    The first segment is the base, however it came. The suffix is empty if nothing is to be folded.
    """
    sizes = [segment.rows for segment in segments]
    alone = min(alone, len(sizes))
    changed = sum(sizes[alone:])
    if whole and alone < len(sizes) and changed >= policy.least_rows:
        kept = _untouched(segments[0], segments[1:], policy)
        if changed >= policy.fraction * (sizes[0] - _rows(kept)):
            return 0, kept
    if len(sizes) - alone <= policy.changes:
        return len(sizes), ()
    first, folded = max(len(sizes) - 2, 0), sum(sizes[-2:])
    while first > alone and sizes[first - 1] <= policy.growth * folded:
        first -= 1
        folded += sizes[first]
    return first, ()


def in_key_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Files by their low bounds, those without one first; as they are if bounds do not compare."""
    every = tuple(files)
    if len({file.low[0] for file in every if file.low}) > 1:
        return every
    unbounded = tuple(file for file in every if file.low is None)
    bounded = [(decode(file.low), at) for at, file in enumerate(every) if file.low]
    return unbounded + tuple(every[at] for _, at in sorted(bounded))


@dataclass(frozen=True, slots=True)
class _Span:
    """Which keys a file may have: values between two bounds, where None is no bound, and NULL."""

    low: Any
    high: Any
    has_null: bool
    has_value: bool = True

    def meets(self, other: _Span) -> bool:
        if self.has_null and other.has_null:
            return True
        return (
            self.has_value
            and other.has_value
            and (self.low is None or other.high is None or self.low <= other.high)
            and (self.high is None or other.low is None or other.low <= self.high)
        )


def _untouched(base: Segment, changes: Sequence[Segment], policy: Policy) -> tuple[DataFile, ...]:
    """The files of a base that hold no key of the changes.

    Files that a fold left small are taken with it, if they are next to what it writes and not much
    larger than the changes: else many folds of recent keys would make many files.
    """
    files = in_key_order(base.files)
    changed = tuple(file for each in changes for file in each.files)
    tags = {bound[0] for file in files + changed for bound in (file.low, file.high) if bound}
    alike = all(each.sort_by[:1] == base.sort_by[:1] for each in changes)
    if not base.sort_by or not alike or len(tags) != 1:
        return ()
    (tag,) = tags
    spans = [_span(file, tag) for file in files]
    theirs = [_span(file, tag) for file in changed]
    taken = [
        file.start is not None or any(span.meets(other) for other in theirs)
        for file, span in zip(files, spans, strict=True)
    ]
    most = min(policy.file_rows / 2, policy.growth * _rows(changed))
    beside = taken.copy()
    for at in range(len(files)):
        if files[at].rows <= most and (any(taken[max(0, at - 1) : at + 2])):
            beside[at] = True
    for other in theirs:
        for at in _neighbours(spans, other):
            beside[at] = beside[at] or files[at].rows <= most
    return tuple(file for file, is_taken in zip(files, beside, strict=True) if not is_taken)


def _neighbours(spans: Sequence[_Span], other: _Span) -> list[int]:
    """The files just below and just above a span that may lie between files."""
    if other.low is None or other.high is None:
        return []
    below = [at for at, each in enumerate(spans) if each.high is not None and each.high < other.low]
    above = [at for at, each in enumerate(spans) if each.low is not None and each.low > other.high]
    return below[-1:] + above[:1]


def _span(file: DataFile, tag: str) -> _Span:
    """The keys of a file; without bounds it may have any, unless it has NULL alone.

    A file that was written here, and not by executors, has bounds for values of such a type; but a
    string may not be valid and so have none.
    """
    low, high = (None if bound is None else decode(bound) for bound in (file.low, file.high))
    ours = file.checksum is not None and tag != "string"
    only_null = low is None and high is None and file.has_null and ours
    return _Span(low, high, file.has_null, not only_null)


def _rows(files: Iterable[DataFile]) -> int:
    return sum(file.rows for file in files)
