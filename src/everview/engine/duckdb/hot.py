"""Stored relations kept in memory between transactions.

A hot relation is a table that holds the weighted rows of all its segments. It is loaded from them
when it is first read, and each transaction adds its change. It need only have the same sum as the
segments: compaction changes neither the sum nor the hot copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from everview.emit.sql import DUCKDB, consolidate
from everview.engine.duckdb.calculator import Calculator, Files
from everview.engine.protocol import Snapshot
from everview.plan.types import WEIGHT, Schema, names
from everview.store.manifest import Manifest, Segment

_SPACE = "hot"


@dataclass(slots=True)
class _Held:
    """What a hot table stands for, and how many rows were added since it was last added up."""

    ids: tuple[str, ...]
    rows: int
    schema: Schema
    added: int = 0


@dataclass(slots=True)
class Hot:
    """The relations in memory, each as of the segments it was made from."""

    calculator: Calculator
    _held: dict[str, _Held] = field(default_factory=dict)
    _staged: dict[str, tuple[Segment, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calculator.execute(f"CREATE SCHEMA {_SPACE}")

    def stage(self, relation: str, segment: Segment, result: str) -> None:
        """Remember which known result is the change that a segment holds."""
        if relation in self._held and segment.rows:
            self._staged[relation] = (segment, result)

    def settle(self, snapshot: Snapshot) -> None:
        """Add the staged changes that were committed, and forget the others."""
        for name, (segment, result) in self._staged.items():
            held = self._held[name]
            if _ids(snapshot.relation(name).segments) == (*held.ids, segment.id):
                self._append(name, f'SELECT {_columns(name, snapshot)} FROM "{result}"', snapshot)
        self._staged.clear()
        for name in [name for name in self._held if name not in snapshot.stored]:
            self._drop(name)

    def holds(self, name: str, snapshot: Snapshot) -> bool:
        """Whether the relation is in memory as it stands in this epoch."""
        held = self._held.get(name)
        return (
            held is not None
            and held.schema == snapshot.stored[name].schema
            and held.ids == _ids(snapshot.relation(name).segments)
        )

    def table(self, name: str, snapshot: Snapshot) -> str:
        """The SQL name of a relation in memory, brought up to the epoch of the snapshot."""
        wanted, held = snapshot.relation(name).segments, self._held.get(name)
        # A relation without segments may have been dropped and declared anew with other columns.
        schema = snapshot.stored[name].schema
        if held is None or held.schema != schema or held.ids != _ids(wanted)[: len(held.ids)]:
            self._load(name, snapshot)
        elif len(held.ids) != len(wanted):
            fresh = files_of(wanted[len(held.ids) :], snapshot)
            self._append(name, fresh.rows(schema), snapshot)
        return _table(name)

    def moved(self, before: Snapshot, after: Manifest) -> None:
        """Relations have other segments now, with the same sum."""
        self.settle(before)
        for name, held in self._held.items():
            if self.holds(name, before) and name in after.relations:
                held.ids = _ids(after.relations[name].segments)

    def _load(self, name: str, snapshot: Snapshot) -> None:
        self._drop(name)
        segments = snapshot.relation(name).segments
        schema = snapshot.stored[name].schema
        rows = files_of(segments, snapshot).rows(schema)
        self.calculator.execute(f"CREATE TABLE {_table(name)} AS {rows}")
        later = sum(segment.rows for segment in segments[1:])
        self._held[name] = _Held(_ids(segments), snapshot.relation(name).rows, schema, later)

    def _append(self, name: str, rows: str, snapshot: Snapshot) -> None:
        segments, held = snapshot.relation(name).segments, self._held[name]
        self.calculator.execute(f"INSERT INTO {_table(name)} {rows}")
        held.added += sum(segment.rows for segment in segments[len(held.ids) :])
        held.ids = _ids(segments)
        if held.added > max(10_000, held.rows // 2):
            self._add_up(name, snapshot)

    def _add_up(self, name: str, snapshot: Snapshot) -> None:
        """Rows that cancel leave; the order that lookups profit from comes back."""
        stored = snapshot.stored[name]
        summed = consolidate(f"SELECT * FROM {_table(name)}", stored.schema, stored.rings, DUCKDB)
        order = ", ".join(f'"{column}"' for column in stored.sort) or WEIGHT
        made = self.calculator.execute(
            f'CREATE OR REPLACE TABLE {_SPACE}."summed up" AS '
            f"SELECT {_columns(name, snapshot)} FROM ({summed}) ORDER BY {order}"
        )
        self.calculator.execute(
            f'DROP TABLE {_table(name)}; ALTER TABLE {_SPACE}."summed up" RENAME TO "{name}"'
        )
        held = self._held[name]
        held.rows, held.added = int(str(made[0][0])), 0

    def _drop(self, name: str) -> None:
        if self._held.pop(name, None) is not None:
            self.calculator.execute(f"DROP TABLE {_table(name)}")


def files_of(segments: tuple[Segment, ...], snapshot: Snapshot) -> Files:
    """The files of some segments of a relation."""
    files = (file for segment in segments for file in segment.files)
    return Files(tuple(snapshot.store.absolute(file.path) for file in files))


def _ids(segments: tuple[Segment, ...]) -> tuple[str, ...]:
    return tuple(segment.id for segment in segments)


def _table(name: str) -> str:
    return f'{_SPACE}."{name}"'


def _columns(name: str, snapshot: Snapshot) -> str:
    return ", ".join(f'"{column}"' for column in (*names(snapshot.stored[name].schema), WEIGHT))
