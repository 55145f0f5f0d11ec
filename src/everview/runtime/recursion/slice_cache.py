"""The slices that a loop reads: what one iteration has fetched, later ones do not fetch again."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.engines.duckdb.calculator import Calculator
from everview.program.steps import Fetch, KeySet
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Gear, Snapshot
from everview.runtime.report import Outcome
from everview.runtime.vector.int_encoding import take_values
from everview.runtime.vector.row_ids import identities

KEPT = 1_000
"""A slice of more rows is not added to: whoever reads it would pass over too many."""


class Slice:
    """What one fetch brings, through the iterations of a loop.

    What is stored does not change while a loop runs, and a slice may hold more rows than asked for.
    So the rows of a key stay where they are, and a whole relation is brought once.
    """

    def __init__(self, step: Fetch, calculator: Calculator) -> None:
        self._step, self._calculator = step, calculator
        self._begun = False
        self._known: set[object] = set()
        self._rows: pa.RecordBatch | None = None

    @cached_property
    def _more(self) -> Fetch:
        """The fetch of keys that are missing."""
        name, by = self._step.result, self._step.by or ""
        return replace(self._step, result=f"{name} more", keys=(KeySet(f"{name} missing", by),))

    @cached_property
    def _stays(self) -> bool:
        """Whether rows are brought by keys that can be told apart.

        Whether two fractions, or two nested values, are equal may be seen otherwise in a lookup.
        """
        if self._step.by is None:
            return False
        type_ = arrow_schema(self._step.schema).field(self._step.by).type
        return not (types.is_floating(type_) or types.is_nested(type_))

    def bring(self, gear: Gear, snapshot: Snapshot, outcome: Outcome) -> None:
        """Make the slice hold the rows of all keys that are asked for now."""
        step, calculator = self._step, self._calculator
        asked = calculator.asked(step.keys)
        if self._begun and (step.by is None or not asked):
            return
        few = calculator.rows_of({key.relation for key in asked}) <= KEPT
        if self._stays and asked and few:
            self._add(gear, snapshot, outcome)
        else:
            self._known, self._rows = set(), None
            gear.fetch((step,), snapshot, outcome)
        self._begun = step.by is not None or bool(asked) or not step.keys

    def _add(self, gear: Gear, snapshot: Snapshot, outcome: Outcome) -> None:
        """Bring what is asked for and not there yet.

        Keys are told apart as values of the column that is looked at: two that differ may be one
        there, whose rows must not come twice.
        """
        keys = gear.values(self._step).combine_chunks()
        told = list(identities([keys], len(keys)))
        fresh = [place for place, key in enumerate(told) if key not in self._known]
        if not fresh:
            return
        if self._rows is not None and self._rows.num_rows > KEPT:
            self._known, self._rows = set(), None
        if self._rows is not None:
            keys = take_values(keys, np.array(fresh))
        self._known.update(told)
        [missing] = self._more.keys
        self._calculator.give(missing.relation, pa.record_batch([keys], [missing.column]))
        gear.fetch((self._more,), snapshot, outcome)
        found = self._calculator.batch(self._more.result, self._step.schema)
        self._rows = found if self._rows is None else pa.concat_batches([self._rows, found])
        self._calculator.give(self._step.result, self._rows)
