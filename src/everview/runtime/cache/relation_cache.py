"""Stored relations kept in memory between transactions.

A hot relation is runs of weighted rows, each in the order of the relation's key. It is loaded from
its segments when it is first read, and each transaction adds its change as a run. It need only have
the same sum as the segments: compaction changes neither the sum nor the hot copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter

import pyarrow as pa

from everview.expr.types import Schema
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.cache.key_set import Keys
from everview.runtime.cache.sorted_run import Run, Tight, among, in_pieces, joined
from everview.runtime.parallel import PARALLEL_ROWS
from everview.runtime.protocol import Snapshot, Stored
from everview.runtime.workspace import Workspace
from everview.store.change_file import is_piece
from everview.store.manifest import Manifest, Segment

RUNS = 8
"""To look into so many runs costs less than to make them one."""
LARGE = 6
"""A relation that takes more than such a part of what may be held is packed."""
ROOMY = 0.8
"""Texts lie with the rest of a row if all rows take no more than this part of the room there is."""
SUMMED, PART = 1_000, 8
"""To add up fewer rows than this, or than such a part of the relation, is not worth while unless
some with one key come and others go: each change of a row would be brought by every later one.
Totals are always added up."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What a relation was loaded as, its later changes, and the segments that both stand for.

    A change is in one run, or where it is large in runs that follow each other. It is immutable: a
    later version replaces it in one step, so an exception at any moment leaves one or the other.
    """

    stored: Stored
    ids: tuple[str, ...] = ()
    loaded: tuple[Run, ...] = ()
    later: tuple[tuple[Run, ...], ...] = ()
    seen: Snapshot | None = None
    """The epoch that it was last brought up to."""

    @property
    def by(self) -> str | None:
        return self.stored.sort[0] if self.stored.sort else None

    @property
    def runs(self) -> list[Run]:
        return [*self.loaded, *chain.from_iterable(self.later)]


@dataclass(slots=True)
class Hot:
    """The relations in memory, each as of the segments it was made from."""

    workspace: Workspace
    most: int
    """So many bytes may be held; what is beyond them lies in files that are mapped into memory."""
    loading: float = 0.0
    """Milliseconds that it took so far to bring relations into memory, each for the first time."""
    _held: dict[str, _Held] = field(default_factory=dict)
    _staged: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How much is held."""
        runs = (run for held in self._held.values() for run in held.runs)
        return sum(run.resident or run.rows.nbytes for run in runs)

    def stage(self, segments: Mapping[str, Segment], rows: Mapping[str, pa.Table]) -> None:
        """Remember the many rows that a transaction wrote: if it commits, nobody has to read them.

        A segment of a transaction that did not commit is never asked for.
        """
        kept = (name for name in rows if name in self._held)
        self._staged = {segments[name].id: rows[name] for name in kept}

    def holds(self, name: str, snapshot: Snapshot) -> bool:
        """Whether the relation is in memory as it stands in this epoch, or nearly."""
        held, ids = self._held.get(name), _ids(snapshot.relation(name).segments)
        return held is not None and held.stored == snapshot.stored[name] and _starts(ids, held.ids)

    def among(
        self, name: str, by: str, keys: Keys, schema: Schema, snapshot: Snapshot
    ) -> pa.Table | pa.RecordBatch:
        """The rows of a relation whose column `by` is one of the keys."""
        return among(self._current(name, snapshot).runs, by, keys, arrow_schema(schema))

    def at_hand(self, name: str, snapshot: Snapshot) -> pa.Table | None:
        """All rows of a relation in memory, None if they had better be read from its segments.

        Nothing is kept, so that any thread may ask beside the one that writes.
        """
        held, stored = self._held.get(name), snapshot.stored[name]
        segments = snapshot.relation(name).segments
        if held is None or held.stored != stored or not _starts(_ids(segments), held.ids):
            return None
        if any(isinstance(run, Tight) for run in held.loaded):
            return None
        schema = arrow_schema(stored.schema)
        parts = [run.every(schema.names) for run in held.runs]
        parts += (snapshot.store.rows_of(each, schema) for each in segments[len(held.ids) :])
        return pa.concat_tables(parts or [schema.empty_table()])

    def rows(self, name: str, schema: Schema, snapshot: Snapshot) -> pa.Table:
        """All rows of a relation, some of its columns."""
        wanted = arrow_schema(schema)
        parts = [run.every(wanted.names) for run in self._current(name, snapshot).runs]
        return pa.concat_tables(parts or [wanted.empty_table()])

    def moved(self, before: Snapshot, after: Manifest) -> None:
        """Relations have other segments now, with the same sum."""
        for name in [name for name in self._held if name not in before.stored]:
            del self._held[name]
        for name in tuple(self._held):
            if self.holds(name, before) and name in after.relations:
                ids = _ids(after.relations[name].segments)
                self._held[name] = replace(self._current(name, before), ids=ids)

    def _current(self, name: str, snapshot: Snapshot) -> _Held:
        """A relation as it stands in this epoch: what it has not yet comes from its segments."""
        known = self._held.get(name)
        if known is not None and known.seen is snapshot:
            return known
        # Without segments the sum is zero: runs that add up to it are no part of what comes next,
        # and the relation may have been dropped and declared again with other columns.
        if known is None or not known.ids or not self.holds(name, snapshot):
            self._held.pop(name, None)  # its room is free for what is loaded now
            known = _Held(snapshot.stored[name])
        fresh = snapshot.relation(name).segments[len(known.ids) :]
        if not known.ids and fresh:
            known = self._load(known, fresh[0], snapshot)
            fresh = fresh[1:]
        for segment in fresh:
            known = self._append(known, segment, snapshot)
        self._held[name] = held = replace(known, seen=snapshot)
        return held

    def _room(self, loaded: Iterable[Run] = ()) -> int:
        """How much more may be held, beside runs that have just been loaded."""
        held = (run for each in self._held.values() for run in each.runs)
        every = {id(run): run.resident for run in chain(held, loaded)}
        return self.most - sum(every.values())

    def _load(self, held: _Held, segment: Segment, snapshot: Snapshot) -> _Held:
        """The first segment, as one run; a large one as few that can be made one by one."""
        began, schema = perf_counter(), arrow_schema(held.stored.schema)
        each, together = ROOMY * self._room() / max(1, segment.rows), list[pa.Table]()
        loaded: list[Run] = []
        for file in segment.files:
            rows = snapshot.store.read_files((file,), schema=schema)
            large = rows.nbytes / file.rows * segment.rows > self.most / LARGE
            if large and together and _bytes(together) + rows.nbytes > self.most / LARGE / 2:
                loaded.append(self._run(pa.concat_tables(together), held.by, loaded, each))
                together.clear()
            together.append(rows)
        if together:
            whole = pa.concat_tables(together)
            loaded.append(self._run(whole, held.by, loaded, each if large else None))
            loaded = joined(loaded)
        self.loading += (perf_counter() - began) * 1000
        return replace(held, ids=(segment.id,), loaded=tuple(loaded))

    def _run(
        self, rows: pa.Table, by: str | None, loaded: Sequence[Run], each: float | None
    ) -> Run:
        """More rows; they stay in memory if there is room, packed where `each` is told.

        So many bytes a row may take then if its texts lie with it.
        """
        if each is not None and by is not None:
            before = loaded[-1] if loaded else None
            like = before.packed.layout if isinstance(before, Tight) else None
            packed = Tight.of(rows, by, like, each)
            if packed.resident <= self._room(loaded):
                return packed
        return Run(rows, by, room=self._room(loaded))

    def _append(self, held: _Held, segment: Segment, snapshot: Snapshot) -> _Held:
        """Add a change; when there are too many, those not much larger become one run with it.

        So there are few runs, and a row is moved a logarithmic number of times.
        """
        rows = self._staged.pop(segment.id, None)
        ordered = rows is None and is_piece(segment) and segment.sort_by == held.stored.sort
        if rows is None:
            schema = arrow_schema(held.stored.schema)
            rows = snapshot.store.rows_of(segment, schema)
        later = held.later
        if rows.num_rows > PARALLEL_ROWS:
            later = (*later, tuple(in_pieces(rows, held.by, self._room(held.runs))))
        elif rows.num_rows:
            later = (*later, (Run(rows, held.by, ordered=ordered),))
        grown = replace(held, ids=(*held.ids, segment.id), later=later)
        return self._merged(grown) if len(later) > RUNS else grown

    def _merged(self, held: _Held) -> _Held:
        """Make one run of the last change and those before it that are not much larger."""
        later = list(held.later)
        last, size = [later.pop()], 0
        while True:
            size += sum(map(len, last[-1]))
            if not later or sum(map(len, later[-1])) > 2 * size:
                break
            last.append(later.pop())
        # In the order in which they came, which sorting by a key keeps.
        rows = (run.rows for runs in reversed(last) for run in runs)
        merged = Run(pa.concat_tables(rows), held.by)
        many = size > max(SUMMED, sum(map(len, held.loaded)) // PART)
        if held.stored.rings or many or merged.comes_and_goes:
            every = self.workspace.consolidate(merged.rows, held.stored.schema, held.stored.rings)
            merged = Run(every, held.by)
        return replace(held, later=(*later, (merged,)))


def _bytes(parts: Iterable[pa.Table]) -> int:
    return sum(part.nbytes for part in parts)


def _ids(segments: tuple[Segment, ...]) -> tuple[str, ...]:
    return tuple(segment.id for segment in segments)


def _starts(ids: tuple[str, ...], first: tuple[str, ...]) -> bool:
    return ids[: len(first)] == first
