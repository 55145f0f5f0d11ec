"""In-memory copies of stored relations, kept between transactions.

A copy is sorted runs of weighted rows. It is loaded from the relation's segments when it is first
read, and each transaction adds its change as a run. Condition of correctness: the runs have the
same sum as the segments that the copy stands for. Compaction changes neither.

What is held stays within a budget: the least recently used copies leave, and a relation that does
not fit is not loaded, but fetched from its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from time import perf_counter

import pyarrow as pa

from everview.expr.types import Schema
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.cache.footprint import footprint
from everview.runtime.cache.probe_keys import ProbeKeys
from everview.runtime.cache.sorted_run import (
    BUDGET_MIN_ROWS,
    PackedRun,
    SortedRun,
    concatenate_adjacent,
    lookup,
    runs_of_change,
)
from everview.runtime.memory_budget import MemoryBudget
from everview.runtime.protocol import Snapshot, Stored
from everview.runtime.workspace import Workspace
from everview.store.change_file import is_piece
from everview.store.manifest import Manifest, Segment
from everview.store.ranges import Ranges

MAX_CHANGE_RUNS = 8
"""More changes than this are merged: searching so many runs costs less than merging them."""
PACK_MIN_SHARE = 1 / 6
"""A relation that would take more than this share of the memory budget is packed."""
IN_USE_EPOCHS = 8
"""A relation that was looked up in one of so many epochs leaves for no other one."""
ADMIT_SHARE = 7 / 8
"""What is loaded may fill the budget up to this share: the rest is for the changes to come."""
CONSOLIDATE_MIN_ROWS, CONSOLIDATE_MIN_SHARE = 1_000, 1 / 8
"""Merged changes of fewer rows, or of a smaller share of what was loaded, are consolidated only if
rows of one key come and go: otherwise each change of a row would be fetched by every later one.
Totals are always consolidated."""


@dataclass(frozen=True)
class _Copy:
    """A relation's loaded rows, its later changes, and the segments that both stand for.

    A change is one run, or where it is large several that follow each other. A copy is immutable: a
    later version replaces it in one step, so an exception at any moment leaves one or the other.
    """

    stored: Stored
    ids: tuple[str, ...] = ()
    loaded: tuple[SortedRun, ...] = ()
    later: tuple[tuple[SortedRun, ...], ...] = ()
    seen: Snapshot | None = None
    """The epoch that it was last brought up to."""
    used: int = 0
    """The number of the epoch at which it was last looked up."""

    @cached_property
    def bytes(self) -> int:
        """How much it takes, in memory or mapped."""
        return sum(run.size for run in self.runs)

    @property
    def by(self) -> str | None:
        return self.stored.sort[0] if self.stored.sort else None

    @property
    def runs(self) -> list[SortedRun]:
        return [*self.loaded, *chain.from_iterable(self.later)]


@dataclass(frozen=True, slots=True)
class _Staged:
    """Rows that a transaction wrote, and how many bytes they take."""

    rows: pa.Table
    bytes: int


@dataclass(slots=True)
class RelationCache:
    """The relations in memory, each as of the segments it was made from."""

    workspace: Workspace
    budget: MemoryBudget
    """What may be held; large runs beyond what of it may be in memory lie in mapped files."""
    load_ms: float = 0.0
    """Milliseconds spent so far on loading relations, each for the first time."""
    taken: int = 0
    """What another cache holds of the same budget."""
    before_reading: Callable[[], None] | None = None
    """Called before each file that is loaded; what it raises ends the loading."""
    _held: dict[str, _Copy] = field(default_factory=dict)
    _staged: dict[str, _Staged] = field(default_factory=dict)
    _row_bytes: dict[str, float] = field(default_factory=dict)
    """What a row of each relation that was loaded takes."""

    @property
    def held_bytes(self) -> int:
        """How much is held, in memory or mapped; any thread may ask."""
        copies = sum(held.bytes for held in tuple(self._held.values()))
        return copies + sum(each.bytes for each in tuple(self._staged.values()))

    def bytes_of(self, name: str) -> int:
        """How much of one relation is held; any thread may ask."""
        held = self._held.get(name)
        return held.bytes if held is not None else 0

    def stage(self, segments: Mapping[str, Segment], rows: Mapping[str, pa.Table]) -> None:
        """Remember the rows that a transaction wrote: if it commits, they need not be read back.

        The segment of a transaction that did not commit is never looked up. Rows that do not fit
        beside what is held are read back, or fetched.
        """
        self._staged = {}
        kept = {
            segments[name].id: _Staged(each, each.nbytes)
            for name, each in rows.items()
            if name in self._held
        }
        size = sum(each.bytes for each in kept.values())
        if kept and self.held_bytes + size <= self.budget.cached:
            self._staged = kept

    def admits(self, name: str, snapshot: Snapshot) -> bool:
        """Whether a relation is held, or would fit once others that are not in use have left.

        What is in use does not leave for another relation. Otherwise relations that exceed the
        budget together would take turns, and each be loaded again by every transaction.
        """
        held, most = self._held.get(name), self.budget.cached
        if held is not None and held.seen is snapshot:
            return True
        wanted = self._estimated_bytes(name, snapshot)
        if most <= 0 or wanted > most:
            return False
        if held is not None and held.ids and self.holds(name, snapshot):
            return True
        most = int(most * ADMIT_SHARE)
        since = snapshot.manifest.epoch - IN_USE_EPOCHS
        others = (each.bytes for other, each in self._held.items() if other != name)
        if wanted + sum(others) <= most:
            return True
        in_use = (c.bytes for n, c in self._held.items() if n != name and c.used > since)
        return wanted + sum(in_use) <= most

    def holds(self, name: str, snapshot: Snapshot) -> bool:
        """Whether the copy of a relation has a prefix of the segments of this epoch."""
        held, ids = self._held.get(name), _ids(snapshot.relation(name).segments)
        return held is not None and held.stored == snapshot.stored[name] and _starts(ids, held.ids)

    def missing(self, name: str, snapshot: Snapshot) -> tuple[Segment, ...]:
        """The segments of a relation whose rows would have to be read for its copy."""
        segments, held = snapshot.relation(name).segments, self._held.get(name)
        if held is not None and self.holds(name, snapshot):
            segments = segments[len(held.ids) :]
        return tuple(segment for segment in segments if segment.id not in self._staged)

    def for_loader(self, workspace: Workspace, before_reading: Callable[[], None]) -> RelationCache:
        """An empty cache for another thread, which loads relations that this one takes over."""
        taken = self.budget.resident - self._room()
        return RelationCache(workspace, self.budget, 0.0, taken, before_reading)

    def load(self, name: str, snapshot: Snapshot) -> None:
        """Hold a relation."""
        self._current(name, snapshot)

    def take_over(self, name: str, other: RelationCache) -> None:
        """Hold the copy of a relation that another cache has loaded, in one step."""
        copy = other._held.get(name)
        if copy is not None:
            self._row_bytes |= other._row_bytes
            self._keep(name, copy)

    def lookup(
        self, name: str, by: str, keys: ProbeKeys, schema: Schema, snapshot: Snapshot
    ) -> pa.Table | pa.RecordBatch:
        """The rows of a relation whose column `by` is one of the keys."""
        return lookup(self._current(name, snapshot).runs, by, keys, arrow_schema(schema))

    def lookup_ranges(
        self, name: str, by: str, ranges: Ranges, schema: Schema, snapshot: Snapshot
    ) -> pa.Table:
        """The rows of a relation whose column `by` is in one of the ranges; others may come too."""
        wanted = arrow_schema(schema)
        runs = self._current(name, snapshot).runs
        parts = [run.in_ranges(by, ranges, wanted.names) for run in runs]
        return pa.concat_tables(parts or [wanted.empty_table()]).cast(wanted)

    def rows_if_held(self, name: str, snapshot: Snapshot) -> pa.Table | None:
        """All rows of a relation in memory, None if reading its segments is better.

        The cache does not change, so any thread may call this beside the one that writes.
        """
        held, stored = self._held.get(name), snapshot.stored[name]
        segments = snapshot.relation(name).segments
        if held is None or held.stored != stored or not _starts(_ids(segments), held.ids):
            return None
        if any(isinstance(run, PackedRun) for run in held.loaded):
            return None
        schema = stored.arrow()
        parts = [run.all_rows(schema.names) for run in held.runs]
        parts += (snapshot.store.rows_of(each, schema) for each in segments[len(held.ids) :])
        return pa.concat_tables(parts or [schema.empty_table()])

    def rows(self, name: str, schema: Schema, snapshot: Snapshot) -> pa.Table:
        """All rows of a relation, some of its columns."""
        wanted = arrow_schema(schema)
        parts = [run.all_rows(wanted.names) for run in self._current(name, snapshot).runs]
        return pa.concat_tables(parts or [wanted.empty_table()])

    def on_compacted(self, before: Snapshot, after: Manifest) -> None:
        """Take over the segments of `after`, which have the same sums as those of `before`."""
        for name in [name for name in self._row_bytes if name not in before.stored]:
            del self._row_bytes[name]
        for name, used in [(name, held.used) for name, held in self._held.items()]:
            keeps = name in before.stored and name in after.relations and self.holds(name, before)
            if keeps and self.admits(name, before):
                copy = self._current(name, before)
                ids = _ids(after.relations[name].segments)
                self._keep(name, replace(copy, ids=ids, used=used))
            else:
                self._held.pop(name, None)

    def _current(self, name: str, snapshot: Snapshot) -> _Copy:
        """The copy of a relation at this epoch; segments that it lacks are read and added."""
        copy = self._held.get(name)
        if copy is not None and copy.seen is snapshot:
            return copy
        # A copy of no segments has the sum zero. It is dropped: the relation may have been dropped
        # and declared again with other columns.
        if copy is None or not copy.ids or not self.holds(name, snapshot):
            self._held.pop(name, None)
            self._make_room(name, self._estimated_bytes(name, snapshot))
            copy = _Copy(snapshot.stored[name])
        fresh = snapshot.relation(name).segments[len(copy.ids) :]
        if not copy.ids and fresh:
            copy = self._load(copy, fresh[0], snapshot)
            self._row_bytes[name] = copy.bytes / max(1, fresh[0].rows)
            fresh = fresh[1:]
        for segment in fresh:
            copy = self._append(copy, segment, snapshot)
        copy = replace(copy, seen=snapshot, used=snapshot.manifest.epoch)
        self._keep(name, copy)
        return copy

    def _keep(self, name: str, copy: _Copy) -> None:
        """Hold a copy, and let go of others that do not fit beside it; a large one is not held."""
        if self.budget.cached > 0 and copy.bytes <= self.budget.cached:
            self._held[name] = copy
            self._make_room(name, copy.bytes)
        else:
            self._held.pop(name, None)

    def _make_room(self, name: str, wanted: int) -> None:
        """Let go of the least recently used other relations until so many bytes fit, if they do."""
        left = self.budget.cached - wanted
        others = {other: copy for other, copy in self._held.items() if other != name}
        size = sum(copy.bytes for copy in others.values())
        if size + sum(each.bytes for each in self._staged.values()) <= left or left < 0:
            return
        self._staged = {}
        for other in sorted(others, key=lambda each: others[each].used):
            if size <= left:
                break
            del self._held[other]
            size -= others[other].bytes

    def _estimated_bytes(self, name: str, snapshot: Snapshot) -> int:
        """About how many bytes a relation takes when it is brought up to an epoch."""
        held, schema = self._held.get(name), snapshot.stored[name].schema
        relation = snapshot.relation(name)
        if held is not None and self.holds(name, snapshot):
            return held.bytes + footprint(relation.segments[len(held.ids) :], schema)
        if name in self._row_bytes:
            return int(relation.rows * self._row_bytes[name])
        size = footprint(relation.segments, schema)
        if size > self.budget.resident * PACK_MIN_SHARE:
            return footprint(relation.segments, schema, packed=True)
        return size

    def _room(self, loaded: Iterable[SortedRun] = ()) -> int:
        """What may still be in memory, beside runs that have just been loaded."""
        held = (run for each in tuple(self._held.values()) for run in each.runs)
        every = {id(run): run.resident for run in chain(held, loaded)}
        return self.budget.resident - self.taken - sum(every.values())

    def _load(self, copy: _Copy, segment: Segment, snapshot: Snapshot) -> _Copy:
        """Add the first segment, as one run if it can be; a large one is packed part by part."""
        began, schema = perf_counter(), copy.stored.arrow()
        limit, packed = self.budget.resident * PACK_MIN_SHARE, False
        files: list[pa.Table] = []
        loaded: list[SortedRun] = []
        for file in segment.files:
            if self.before_reading is not None:
                self.before_reading()
            rows = snapshot.store.read_files((file,), schema=schema)
            packed = rows.nbytes / file.rows * segment.rows > limit
            if packed and files and _bytes(files) + rows.nbytes > limit / 2:
                loaded.append(self._run(pa.concat_tables(files), copy.by, loaded, packed=True))
                files.clear()
            files.append(rows)
        if files:
            loaded.append(self._run(pa.concat_tables(files), copy.by, loaded, packed=packed))
            loaded = concatenate_adjacent(loaded)
        self.load_ms += (perf_counter() - began) * 1000
        return replace(copy, ids=(segment.id,), loaded=tuple(loaded))

    def _run(
        self, rows: pa.Table, by: str | None, loaded: Sequence[SortedRun], *, packed: bool
    ) -> SortedRun:
        """A run of loaded rows, `packed` if the budget has room for it then."""
        if packed and by is not None:
            before = loaded[-1] if loaded else None
            like = before.packed.layout if isinstance(before, PackedRun) else None
            run = PackedRun.pack(rows, by, like)
            if run.resident <= self._room(loaded):
                return run
        return SortedRun(rows, by, room=self._room(loaded))

    def _append(self, copy: _Copy, segment: Segment, snapshot: Snapshot) -> _Copy:
        """Add a change; when there are too many, merge it with those not much larger.

        So there are few runs, and a row is copied a logarithmic number of times.
        """
        staged = self._staged.pop(segment.id, None)
        rows = None if staged is None else staged.rows
        ordered = rows is None and is_piece(segment) and segment.sort_by == copy.stored.sort
        if rows is None:
            rows = snapshot.store.rows_of(segment, copy.stored.arrow())
        later = copy.later
        if rows.num_rows > BUDGET_MIN_ROWS:
            later = (*later, tuple(runs_of_change(rows, copy.by, self._room(copy.runs))))
        elif rows.num_rows:
            size = segment.bytes if is_piece(segment) else None
            later = (*later, (SortedRun(rows, copy.by, ordered=ordered, size=size),))
        grown = replace(copy, ids=(*copy.ids, segment.id), later=later)
        return self._merge(grown) if len(later) > MAX_CHANGE_RUNS else grown

    def _merge(self, copy: _Copy) -> _Copy:
        """Make one run of the last change and those before it that are not much larger."""
        later = list(copy.later)
        last, size = [later.pop()], 0
        while True:
            size += sum(map(len, last[-1]))
            if not later or sum(map(len, later[-1])) > 2 * size:
                break
            last.append(later.pop())
        # In the order in which they came, which the stable sort by key keeps.
        rows = (run.rows for runs in reversed(last) for run in runs)
        merged = SortedRun(pa.concat_tables(rows), copy.by)
        share = CONSOLIDATE_MIN_SHARE * sum(map(len, copy.loaded))
        many = size > max(CONSOLIDATE_MIN_ROWS, share)
        if copy.stored.rings or many or merged.has_mixed_signs:
            summed = self.workspace.consolidate(merged.rows, copy.stored.schema, copy.stored.rings)
            merged = SortedRun(summed, copy.by)
        return replace(copy, later=(*later, (merged,)))


def _bytes(parts: Iterable[pa.Table]) -> int:
    return sum(part.nbytes for part in parts)


def _ids(segments: tuple[Segment, ...]) -> tuple[str, ...]:
    return tuple(segment.id for segment in segments)


def _starts(ids: tuple[str, ...], first: tuple[str, ...]) -> bool:
    return ids[: len(first)] == first
