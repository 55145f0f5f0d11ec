"""Keeps the slices that a loop reads, so that no iteration fetches a key again."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.program.steps import Fetch, KeySet
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.lookup_keys import key_values
from everview.runtime.protocol import Gear, Snapshot
from everview.runtime.report import RunReport
from everview.runtime.vector.int_encoding import take_values
from everview.runtime.vector.row_ids import identities
from everview.runtime.workspace import Workspace

SLICE_MAX_ROWS = 1_000
"""A slice of more rows is fetched again and not added to: a step reads all rows of its slice."""


class SliceCache:
    """What one fetch brings, through the iterations of a loop.

    Stored relations do not change while a loop runs, and a slice may hold more rows than are asked
    for. So the rows of a key stay in it, and a whole relation is fetched once.
    """

    def __init__(self, step: Fetch, workspace: Workspace) -> None:
        self._step, self._workspace = step, workspace
        self._begun = False
        self._known: set[object] = set()
        self._rows: pa.RecordBatch | None = None

    @cached_property
    def _more(self) -> Fetch:
        """The fetch of keys that are missing."""
        name, by = self._step.result, self._step.by or ""
        return replace(self._step, result=f"{name} more", keys=(KeySet(f"{name} missing", by),))

    @cached_property
    def _has_exact_keys(self) -> bool:
        """Whether a lookup compares keys as we do: not so of floating point and nested types."""
        if self._step.by is None:
            return False
        type_ = arrow_schema(self._step.schema).field(self._step.by).type
        return not (types.is_floating(type_) or types.is_nested(type_))

    def fetch(self, gear: Gear, snapshot: Snapshot, report: RunReport) -> None:
        """Make the slice hold the rows of all keys that are asked for now."""
        step, workspace = self._step, self._workspace
        asked = workspace.nonempty(step.keys)
        if self._begun and (step.by is None or not asked):
            return
        few = workspace.count_rows({key.relation for key in asked}) <= SLICE_MAX_ROWS
        if self._has_exact_keys and asked and few:
            self._add(gear, snapshot, report)
        else:
            self._known, self._rows = set(), None
            gear.fetch((step,), snapshot, report)
        self._begun = step.by is not None or bool(asked) or not step.keys

    def _add(self, gear: Gear, snapshot: Snapshot, report: RunReport) -> None:
        """Fetch the keys that are asked for and not there yet.

        Keys are compared as values of the column that is looked up: two that differ before the cast
        may be one after it, whose rows must not come twice.
        """
        keys = key_values(self._step, self._workspace).combine_chunks()
        identity = list(identities([keys], len(keys)))
        fresh = [place for place, key in enumerate(identity) if key not in self._known]
        if not fresh:
            return
        if self._rows is not None and self._rows.num_rows > SLICE_MAX_ROWS:
            self._known, self._rows = set(), None
        if self._rows is not None:
            keys = take_values(keys, np.array(fresh))
        self._known.update(identity)
        [missing] = self._more.keys
        self._workspace.register(missing.relation, pa.record_batch([keys], [missing.column]))
        gear.fetch((self._more,), snapshot, report)
        rows = self._workspace.batch(self._more.result, self._step.schema)
        self._rows = rows if self._rows is None else pa.concat_batches([self._rows, rows])
        self._workspace.register(self._step.result, self._rows)
