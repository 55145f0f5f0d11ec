"""Incremental recursion: follows a change through the iterations of a loop.

Iterations are taken in order. At each, the rows that changed there are re-evaluated, and those that
changed before and whose old history has an entry there (dbsp §6: a change at one iteration changes
the answer at every later one at which the row was derived again).
"""

from __future__ import annotations

import pyarrow as pa

from everview.expr.types import ITERATION, Column, Schema
from everview.program.steps import Compute, Fetch, Loop, Looped, refs
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Gear, Snapshot
from everview.runtime.recursion.narrowed_body import NarrowedBodies
from everview.runtime.recursion.seminaive import endless
from everview.runtime.recursion.slice_cache import SliceCache
from everview.runtime.recursion.worklist import Worklist
from everview.runtime.report import RunReport
from everview.runtime.vector.batches import VECTOR_MAX_ROWS
from everview.runtime.vector.chunks import RowChunks
from everview.runtime.vector.int_encoding import Ints
from everview.runtime.workspace import Evaluator, Workspace

INDEXED_AT_ONCE_ROWS = 100_000
"""Where more rows have to be indexed for one iteration, SQL scans them."""


class _Relation:
    """One relation of a running loop."""

    def __init__(self, step: Looped) -> None:
        self.step = step
        self.lifted: Schema = (*step.schema, Column(ITERATION, "int"))
        self.worklist = Worklist(step.schema, step.history.by if step.history else None)
        self.changes = RowChunks(arrow_schema(self.lifted))


class _Run:
    """One run of a loop."""

    def __init__(
        self, loop: Loop, gear: Gear, workspace: Workspace, snapshot: Snapshot, report: RunReport
    ) -> None:
        self._loop, self._gear, self._workspace = loop, gear, workspace
        self._snapshot, self._outcome = snapshot, report
        self._relations = [_Relation(step) for step in loop.relations]
        self._body = [
            SliceCache(step, workspace) if isinstance(step, Fetch) else step for step in loop.body
        ]
        self._growing = {each.step.before: each.changes for each in self._relations}
        self._small = [each.now for each in loop.relations] + [step.result for step in loop.body]
        self._bodies = NarrowedBodies(workspace, self._small, self._growing)
        self._narrow: dict[str, bool] = {}

    def run(self) -> None:
        """From the first iteration that is touched until the worklists are empty."""
        for each in self._relations:
            self._receive(each, each.step.start)
        count = 0
        while due := [at for each in self._relations if (at := each.worklist.next) is not None]:
            count += 1
            self._iterate(min(due))
        for each in self._relations:
            self._finish(each)
        self._outcome.iterations[self._loop.name] = count

    def _receive(self, each: _Relation, name: str) -> None:
        if name:
            each.worklist.receive(self._workspace.batch(name, each.lifted))

    def _iterate(self, iteration: int) -> None:
        changes = [self._change(each, iteration) for each in self._relations]
        for each, change in zip(self._relations, changes, strict=True):
            if change is None:
                self._workspace.register_empty(each.step.now, each.lifted)
            else:
                self._workspace.register(each.step.now, change)
        if all(change is None for change in changes):
            return
        for step in self._body:
            if isinstance(step, SliceCache):
                step.fetch(self._gear, self._snapshot, self._outcome)
            else:
                self._outcome.computed_by(self._compute(step))
        for each, change in zip(self._relations, changes, strict=True):
            self._receive(each, each.step.later)
            if change is None:
                continue
            each.changes.append(change)

    def _compute(self, step: Compute) -> Evaluator:
        """Name the result of a step; earlier changes are looked up, or read whole by SQL."""
        grown = self._growing.keys() & {*refs(step.plan)}
        if not grown:
            return self._workspace.compute(step)
        rows = self._by_index(step)
        if rows is not None:
            self._workspace.register(step.result, rows)
            return Evaluator.VECTOR
        for name in grown:
            self._workspace.register(name, self._growing[name].table())
        return self._workspace.compute(step)

    def _by_index(self, step: Compute) -> pa.RecordBatch | None:
        """The rows of a step over few rows, None where SQL has to compute them."""
        if step.result not in self._narrow:
            self._narrow[step.result] = self._bodies.prepare(step.plan)
        small = [name for name in self._small if name in refs(step.plan)]
        rows = self._workspace.count_rows(small)
        if not self._narrow[step.result] or rows > VECTOR_MAX_ROWS:
            return None
        if self._bodies.backlog > INDEXED_AT_ONCE_ROWS:
            return None
        given = {name: self._workspace.batch(name) for name in small}
        return self._bodies.rows(step.plan, given, consolidated=step.consolidated)

    def _change(self, each: _Relation, iteration: int) -> pa.RecordBatch | None:
        """What the iteration adds to a relation, minus what it added before the transaction."""
        worklist = each.worklist
        changes = worklist.changes(iteration)
        if each.step.history is None:
            numbers, weights = worklist.pass_on(iteration, changes)
        else:
            fresh = worklist.unseen(changes[0])
            self._learn(each, fresh)
            worklist.begin(fresh, iteration)
            numbers, weights = worklist.advance(iteration, changes)
        if not len(numbers):
            return None
        if iteration > self._loop.most and (weights > 0).any():
            raise endless(each.step.name, self._loop.limit)
        return worklist.at(iteration, (numbers, weights))

    def _learn(self, each: _Relation, numbers: Ints) -> None:
        """Fetch the old histories of rows, once for each."""
        step, rows = each.step.history, each.worklist.unfetched(numbers)
        if rows is None or step is None:
            return
        self._workspace.register(each.step.touched, rows)
        self._gear.fetch((step,), self._snapshot, self._outcome)
        each.worklist.learn(self._workspace.batch(step.result, each.lifted))

    def _finish(self, each: _Relation) -> None:
        """Name how the relation has changed, and the sum it depends on."""
        changes = each.changes.table()
        self._workspace.register(each.step.changes, changes)
        bag = each.step.history is None
        self._workspace.register(each.step.sums, changes if bag else each.worklist.received())


def run_loop(
    loop: Loop, gear: Gear, workspace: Workspace, snapshot: Snapshot, report: RunReport
) -> None:
    """Follow a change through the iterations of a loop."""
    _Run(loop, gear, workspace, snapshot, report).run()
