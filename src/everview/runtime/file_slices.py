"""Slices read from files by this process: only the row groups that may hold a wanted key."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pyarrow as pa
from pyarrow import types

from everview.program.steps import Fetch
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.lookup_keys import distinct_key_values, key_ranges, key_rows
from everview.runtime.protocol import Snapshot
from everview.runtime.workspace import Workspace
from everview.store.change_file import is_piece
from everview.store.group_reader import KeyTest
from everview.store.manifest import Segment
from everview.store.pruning import Probe, RangeProbe
from everview.store.reader import FileGroups
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Where the rows of a slice are: in row groups of Parquet files, and in small changes.

    `keys` are what the rows are looked up by, in the types of their columns; the whole relation is
    wanted without them.
    """

    step: Fetch
    store: Store
    schema: pa.Schema
    keys: pa.Table | None
    parquet: tuple[FileGroups, ...]
    pieces: tuple[Segment, ...]

    @property
    def bytes(self) -> int:
        """How much there is to read of Parquet files."""
        return sum(found.bytes for found in self.parquet)

    def read(self, most: float = inf, most_bytes: float = inf) -> pa.Table:
        """The rows, not added up; more than that in Parquet files raise `TooManyRows`."""
        test = None if self.keys is None else KeyTest(self.keys)
        rows = self.store.read_groups(self.parquet, self.schema, test, most, most_bytes)
        return pa.concat_tables([rows, self.small_rows(test)])

    def small_rows(self, test: KeyTest | None = None) -> pa.Table:
        """The rows that are in no Parquet file."""
        if not self.pieces:
            return self.schema.empty_table()
        parts = [self.store.rows_of(segment, self.schema) for segment in self.pieces]
        rows = pa.concat_tables(parts).combine_chunks()
        if self.keys is None:
            return rows
        places = (test or KeyTest(self.keys)).positions(rows)
        return rows.take(pa.array(places))


def file_slice(step: Fetch, snapshot: Snapshot, workspace: Workspace) -> FileSlice:
    """Find out where the rows of a slice are; of Parquet files no more than footers is read."""
    store, schema = snapshot.store, snapshot.stored[step.relation].arrow(step.schema)
    segments = snapshot.relation(step.relation).segments
    keys = _keys(step, schema, workspace)
    probe = _probe(step, keys, workspace)
    pieces = [segment for segment in segments if is_piece(segment)]
    if probe is not None:
        pieces = [segment for segment in pieces if probe.files_of(segment)]
    files = [
        file
        for segment in segments
        if not is_piece(segment)
        for file in (probe.files_of(segment) if probe is not None else segment.files)
    ]
    found = store.row_groups(files, schema, probe)
    return FileSlice(step, store, schema, keys, tuple(found), tuple(pieces))


def _probe(step: Fetch, keys: pa.Table | None, workspace: Workspace) -> Probe | RangeProbe | None:
    """What says which files may hold wanted rows; None if all of them may."""
    if keys is not None:
        return Probe(keys.column_names[0], keys.column(0))
    ranges, column = key_ranges(step, workspace), step.ranged_by
    if ranges is None or column is None:
        return None
    return RangeProbe(column, arrow_schema(step.schema).field(column).type, ranges)


def _keys(step: Fetch, schema: pa.Schema, workspace: Workspace) -> pa.Table | None:
    """The keys that a slice is looked up by, with all columns that can be compared.

    Floats that are equal can differ in their bits: they are compared by whoever reads the slice. A
    value outside the range of its column turns into another, which brings rows too many.
    """
    if step.by is None or not _is_comparable(schema.field(step.by).type):
        return None
    columns = {step.by: distinct_key_values(step, workspace)}
    wide = key_rows(step, workspace)
    if wide is not None:
        columns = {step.by: wide[step.by].cast(schema.field(step.by).type, safe=False)}
        columns |= {
            name: wide[name].cast(schema.field(name).type, safe=False)
            for name in wide.column_names[1:]
            if name in schema.names and _is_exact(wide[name].type, schema.field(name).type)
        }
    return pa.table(columns)


def _is_comparable(type_: pa.DataType) -> bool:
    return not types.is_floating(type_) and not types.is_nested(type_)


def _is_exact(key: pa.DataType, column: pa.DataType) -> bool:
    """Whether a key equals a value of the column exactly where it does so after a cast."""
    both_integers = types.is_integer(key) and types.is_integer(column)
    return _is_comparable(column) and (key == column or both_integers)
