"""Runs a loop from scratch in memory: iterations over few rows by indexes, others by SQL.

An index costs more to fill than a statement does to scan, and saves every later scan. So it is
filled once the statements that small iterations took have cost as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from everview.expr.types import ITERATION
from everview.plan.nodes import Plan
from everview.plan.traverse import referred
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.recursion.narrowed_body import NarrowedBodies, VectorRows
from everview.runtime.recursion.seminaive import LoopPlans, RelationPlans
from everview.runtime.vector.batches import VECTOR_MAX_ROWS, batch, filter_rows, select_columns
from everview.runtime.vector.chunks import RowChunks
from everview.runtime.vector.int_encoding import int_column
from everview.runtime.vector.row_ids import RowIds

STATEMENT_ROWS, SCANNED_PER_INDEXED = 2_500, 20
"""A statement costs as much as indexing so many rows; scanning so many as much as indexing one."""
MAX_FAILURES = 3
"""After so many iterations that vector operators left to SQL, they are asked no more."""


class LoopEvaluator(VectorRows, Protocol):
    """Plans over relations in memory: by SQL, or over few rows by vector operators."""

    def evaluate(self, plan: Plan) -> pa.Table:
        """The consolidated rows of a plan."""

    def register(self, name: str, rows: pa.Table) -> None:
        """Make weighted rows known under a name."""


Bound = Callable[[int], None]
"""Raises an error if so many rows are more than may be held."""


def reach_in_memory(
    loop: LoopPlans,
    names: Mapping[str, str],
    evaluator: LoopEvaluator,
    bound: Bound = lambda _: None,
) -> None:
    """Run a loop, and register what its relations reach under names."""
    run = _Run(loop, evaluator, bound)
    run.run()
    for name, known in names.items():
        evaluator.register(known, run.reached(name))


@dataclass(slots=True)
class _Relation:
    """One relation of a running loop: `now` is what the last iteration added to it.

    `ids` numbers the first `numbered` rows that were reached, of a set, so that no row comes twice.
    """

    plans: RelationPlans
    before: RowChunks
    now: pa.Table | pa.RecordBatch
    counts: list[int] = field(default_factory=list)
    ids: RowIds = field(default_factory=RowIds)
    numbered: int = 0

    @property
    def rows(self) -> int:
        """How many rows were reached."""
        return len(self.before) + int(self.now.num_rows)

    @property
    def unnumbered(self) -> int:
        """How many rows have to be numbered before new ones can be told."""
        return self.rows - self.numbered if self.plans.is_set else 0

    def advance(self, added: pa.Table | pa.RecordBatch) -> None:
        """Take in what an iteration adds."""
        for rows in _batches(self.now):
            self.before.append(rows)
        self.now = added
        self.counts.append(added.num_rows)

    def fresh(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that were not reached before; they count as reached from now on."""
        if not self.plans.is_set:
            return rows
        if self.unnumbered:
            for each in (*self.before.since(self.numbered), *_batches(self.now)):
                self._number(each)
            self.numbered = self.rows
        known = len(self.ids)
        kept = filter_rows(rows, self._number(rows) >= known)
        self.numbered += kept.num_rows
        return kept

    def _number(self, rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.ids.of(rows.columns[:-1], rows.num_rows)


class _Run:
    """One run of a loop."""

    def __init__(self, loop: LoopPlans, evaluator: LoopEvaluator, bound: Bound) -> None:
        self._loop, self._evaluator, self._bound = loop, evaluator, bound
        self._relations = {each.name: _relation(each) for each in loop.relations}
        growing = {each.plans.before: each.before for each in self._relations.values()}
        small = [each.now for each in loop.relations]
        self._bodies = NarrowedBodies(evaluator, small, growing)
        self._is_narrow = all(self._bodies.prepare(each.later) for each in loop.relations)
        self._credit = VECTOR_MAX_ROWS
        self._failures = 0

    def run(self) -> None:
        """Iterate until nothing is added."""
        iteration = 0
        while True:
            iteration += 1
            added = self._iterate(iteration)
            if not any(rows.num_rows for rows in added.values()):
                return
            self._loop.must_not_go_on(iteration)
            for name, each in self._relations.items():
                each.advance(added[name])
            self._bound(sum(each.rows for each in self._relations.values()))

    def reached(self, name: str) -> pa.Table:
        """All rows of a relation, in the order of iterations; of a traced loop with those."""
        each = self._relations[name]
        each.advance(arrow_schema(each.plans.schema).empty_table())
        rows = each.before.table().combine_chunks()
        if not self._loop.traced:
            return rows
        when = np.repeat(np.arange(1, len(each.counts) + 1, dtype=np.int32), each.counts)
        return rows.add_column(rows.num_columns - 1, ITERATION, int_column(when))

    def _iterate(self, iteration: int) -> Mapping[str, pa.Table | pa.RecordBatch]:
        if iteration == 1:
            relations = self._relations.items()
            return {name: self._evaluator.evaluate(each.plans.first) for name, each in relations}
        if self._is_small():
            added = self._by_index()
            if added is not None:
                return added
            self._failures += 1
        return self._by_sql()

    def _is_small(self) -> bool:
        """Whether an iteration is worth what has to be indexed for it."""
        rows = sum(each.now.num_rows for each in self._relations.values())
        if not self._is_narrow or self._failures > MAX_FAILURES or rows > VECTOR_MAX_ROWS:
            return False
        left = self._bodies.backlog + sum(each.unnumbered for each in self._relations.values())
        if left <= self._credit:
            return True
        self._credit += STATEMENT_ROWS + left // SCANNED_PER_INDEXED
        return False

    def _by_index(self) -> Mapping[str, pa.RecordBatch] | None:
        """What an iteration adds, by vector operators; None where SQL has to compute it."""
        now = {each.plans.now: _batch(each.now) for each in self._relations.values()}
        found: dict[str, pa.RecordBatch] = {}
        for name, each in self._relations.items():
            rows = self._bodies.rows(each.plans.later, now, consolidated=True)
            if rows is None:
                return None
            found[name] = select_columns(rows, arrow_schema(each.plans.schema))
        return {name: self._relations[name].fresh(rows) for name, rows in found.items()}

    def _by_sql(self) -> Mapping[str, pa.Table]:
        """What an iteration adds, by statements over all that was reached."""
        plans = {name: each.plans.fresh for name, each in self._relations.items()}
        read = {ref.name for plan in plans.values() for ref in referred(plan)}
        for each in self._relations.values():
            if each.plans.now in read:
                self._evaluator.register(each.plans.now, _table(each.now))
            if each.plans.before in read:
                self._evaluator.register(each.plans.before, each.before.table())
        return {name: self._evaluator.evaluate(plan) for name, plan in plans.items()}


def _relation(plans: RelationPlans) -> _Relation:
    schema = arrow_schema(plans.schema)
    return _Relation(plans, RowChunks(schema), schema.empty_table())


def _batches(rows: pa.Table | pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    parts = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
    return [each for each in parts if each.num_rows]


def _batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    return rows if isinstance(rows, pa.RecordBatch) else batch(rows)


def _table(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
