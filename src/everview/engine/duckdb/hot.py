"""Stored relations kept in memory between transactions.

A hot relation is runs of weighted rows, each in the order of the relation's key. It is loaded from
its segments when it is first read, and each transaction adds its change as a run. It need only have
the same sum as the segments: compaction changes neither the sum nor the hot copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from everview.engine.arrow import arrow_schema
from everview.engine.duckdb.calculator import Calculator, Files
from everview.engine.duckdb.runs import Run
from everview.engine.protocol import Snapshot, Stored
from everview.plan.types import Schema
from everview.store.manifest import Manifest, Segment

RUNS = 16
"""To look into so many runs costs less than to make them one."""


@dataclass(slots=True)
class _Held:
    """The runs of a relation, the largest first, and the segments that they stand for."""

    ids: tuple[str, ...]
    stored: Stored
    runs: list[Run] = field(default_factory=list)

    @property
    def by(self) -> str | None:
        return self.stored.sort[0] if self.stored.sort else None


@dataclass(slots=True)
class Hot:
    """The relations in memory, each as of the segments it was made from."""

    calculator: Calculator
    _held: dict[str, _Held] = field(default_factory=dict)
    _staged: dict[str, tuple[Segment, str]] = field(default_factory=dict)

    def stage(self, relation: str, segment: Segment, result: str) -> None:
        """Remember which known result is the change that a segment holds."""
        if relation in self._held and segment.rows:
            self._staged[relation] = (segment, result)

    def settle(self, snapshot: Snapshot) -> None:
        """Add the staged changes that were committed, and forget the others."""
        for name, (segment, result) in self._staged.items():
            held = self._held[name]
            if _ids(snapshot.relation(name).segments) == (*held.ids, segment.id):
                self._append(held, self.calculator.result(result, held.stored.schema))
                held.ids = (*held.ids, segment.id)
        self._staged.clear()
        for name in [name for name in self._held if name not in snapshot.stored]:
            del self._held[name]

    def holds(self, name: str, snapshot: Snapshot) -> bool:
        """Whether the relation is in memory as it stands in this epoch."""
        held = self._held.get(name)
        return (
            held is not None
            and held.stored == snapshot.stored[name]
            and held.ids == _ids(snapshot.relation(name).segments)
        )

    def among(
        self, name: str, by: str, keys: pa.ChunkedArray, schema: Schema, snapshot: Snapshot
    ) -> pa.Table:
        """The rows of a relation whose column `by` is one of the keys."""
        columns = arrow_schema(schema).names
        found = [run.among(by, keys, columns) for run in self._current(name, snapshot).runs]
        return pa.concat_tables(found or [arrow_schema(schema).empty_table()])

    def rows(self, name: str, snapshot: Snapshot) -> pa.Table:
        """All rows of a relation."""
        empty = arrow_schema(snapshot.stored[name].schema).empty_table()
        return pa.concat_tables([run.rows for run in self._current(name, snapshot).runs] or [empty])

    def table(self, name: str, snapshot: Snapshot) -> str:
        """The SQL name of a relation, for the time until all that is known is forgotten."""
        known = f"hot {name}"
        self.calculator.give(known, self.rows(name, snapshot))
        return f'"{known}"'

    def moved(self, before: Snapshot, after: Manifest) -> None:
        """Relations have other segments now, with the same sum."""
        self.settle(before)
        for name, held in self._held.items():
            if self.holds(name, before) and name in after.relations:
                held.ids = _ids(after.relations[name].segments)

    def _current(self, name: str, snapshot: Snapshot) -> _Held:
        """A relation as it stands in this epoch: what it has not yet is read from its segments."""
        segments, stored = snapshot.relation(name).segments, snapshot.stored[name]
        held = self._held.get(name)
        # A relation without segments may have been dropped and declared anew with other columns.
        if held is None or held.stored != stored or held.ids != _ids(segments)[: len(held.ids)]:
            held = self._held[name] = _Held((), stored)
        relation, schema = snapshot.relation(name), arrow_schema(stored.schema)
        for segment in segments[len(held.ids) :]:
            fresh = replace(relation, segments=(segment,))
            self._append(held, snapshot.store.read_segments(fresh, schema=schema))
            held.ids = (*held.ids, segment.id)
        return held

    def _append(self, held: _Held, rows: pa.Table) -> None:
        """Add a run; when there are too many, those that are not much larger become one with it.

        So there are few runs, and a row is moved a logarithmic number of times.
        """
        if not rows.num_rows:
            return
        held.runs.append(Run(rows, held.by))
        if len(held.runs) <= RUNS:
            return
        last, size = [held.runs.pop()], rows.num_rows
        while held.runs and len(held.runs[-1]) <= 2 * size:
            last.append(held.runs.pop())
            size += len(last[-1])
        every = pa.concat_tables([run.rows for run in last])
        summed = self.calculator.add_up(every, held.stored.schema, held.stored.rings)
        held.runs.append(Run(summed, held.by))


def files_of(segments: tuple[Segment, ...], snapshot: Snapshot) -> Files:
    """The files of some segments of a relation."""
    files = (file for segment in segments for file in segment.files)
    return Files(tuple(snapshot.store.absolute(file.path) for file in files))


def _ids(segments: tuple[Segment, ...]) -> tuple[str, ...]:
    return tuple(segment.id for segment in segments)
