"""Runs the steps of a program in this process, over changes and slices in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import RLock
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from everview.plan.nodes import Plan
from everview.program.steps import (
    Add,
    Check,
    Compute,
    Fetch,
    Loop,
    Program,
    Publish,
    Step,
    change_name,
    lookup_step,
)
from everview.runtime.cache.loader import Loader
from everview.runtime.cache.relation_cache import RelationCache
from everview.runtime.consolidate import consolidate
from everview.runtime.constraints.narrow import CheckNarrowing
from everview.runtime.epoch_writer import EpochWriter, RowCollector
from everview.runtime.memory_budget import MemoryBudget
from everview.runtime.protocol import Changes, Gear, Held, Snapshot, Stored, Violation, in_memory
from everview.runtime.recursion.incremental import run_loop
from everview.runtime.report import RunReport
from everview.runtime.retry import in_step
from everview.runtime.workspace import Workspace
from everview.store.manifest import Manifest
from everview.store.store import Store


class InProcess:
    """The interpreter's memory: a workspace for writers, the relation cache, and readers.

    One thread writes at a time. Each reader has a workspace of its own over the same database, so
    readers wait for nobody.
    """

    def __init__(self, workspace: Workspace, budget: MemoryBudget) -> None:
        self.workspace = workspace
        self.cache = RelationCache(workspace, budget)
        self.loader = Loader(self.cache)
        self._busy = RLock()
        self._idle: list[Workspace] = []
        self._lent: WeakSet[Workspace] = WeakSet()

    @property
    def budget(self) -> MemoryBudget:
        """How much may be held between transactions."""
        return self.cache.budget

    @property
    def held(self) -> Held:
        """How much is held now; any thread may ask."""
        return self.cache

    def run(
        self,
        gear: Gear,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> RunReport:
        """Run a transaction's program; once it has committed, the cache takes what it wrote."""
        with self._busy:
            workspace = self.workspace
            report = RunReport()
            try:
                with EpochWriter(snapshot, epoch, report) as writer:
                    self._run_program(gear, program, changes, snapshot, violation, writer)
            finally:
                workspace.clear()
            self.cache.stage(report.segments, report.written)
            self.loader.start()
        return report

    def preview(
        self,
        gear: Gear,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        violation: Violation,
        wanted: Collection[str],
    ) -> dict[str, pa.Table]:
        """Run a transaction's program without writing; the changes of the relations `wanted`."""
        with self._busy:
            collector = RowCollector(wanted, RunReport())
            try:
                self._run_program(gear, program, changes, snapshot, violation, collector)
            finally:
                self.workspace.clear()
            self.loader.start()
        return collector.rows

    def follow(
        self,
        gear: Gear,
        loop: Loop,
        given: Mapping[str, pa.Table],
        snapshot: Snapshot,
        report: RunReport,
    ) -> dict[str, pa.Table]:
        """Follow a change through one loop; what is known after it, from what is `given` before."""
        with self._busy:
            try:
                for name, rows in given.items():
                    self.workspace.register(name, rows)
                with report.step(loop.name), in_step(loop.name):
                    run_loop(loop, gear, self.workspace, snapshot, report)
                return {
                    name: self.workspace.table(name, each.traced)
                    for each in loop.relations
                    for name in (each.sums, each.changes)
                }
            finally:
                self.workspace.clear()

    def lookup(
        self, gear: Gear, name: str, by: Sequence[str], keys: pa.Table, snapshot: Snapshot
    ) -> pa.Table:
        """The weighted rows of a relation that agree with one of `keys` in the columns `by`.

        There may be more rows, which agree in the first of these columns that is searched by, or
        in none where none is.
        """
        schema = snapshot.stored[name].schema
        wanted = lookup_step("slice", name, schema, by, "wanted")
        with self._busy:
            try:
                self.workspace.register("wanted", keys.select(list(by)))
                gear.fetch((wanted,), snapshot, RunReport())
                return self.workspace.table("slice", schema)
            finally:
                self.workspace.clear()
                self.loader.start()

    def evaluate(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The consolidated rows of a plan over relations in memory."""
        with self._busy:
            return self.workspace.evaluate_over(plan, relations)

    def consolidate(self, rows: pa.Table, stored: Stored) -> pa.Table:
        """Weighted rows of a relation, equal ones added up and those that cancel left out."""
        with self.reading() as workspace:
            return consolidate(rows, stored, workspace)

    @contextmanager
    def reading(self) -> Iterator[Workspace]:
        """A workspace for one reader; it is not used again after an exception."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = self.workspace.sibling()
            self._lent.add(workspace)
        try:
            yield workspace
            workspace.clear()
        except BaseException:
            with suppress(Exception):
                workspace.sql.leave()
            raise
        if workspace.shares_database(self.workspace):
            self._idle.append(workspace)

    def confine(self, store: Store) -> None:
        """Let SQL in this process open the files of a store, and no others."""
        self.workspace.sql.confine(store.absolute(""))

    def on_compacted(self, before: Snapshot, after: Manifest) -> None:
        """Keep relations in memory whose segments were replaced by others with the same sum."""
        with self._busy:
            self.loader.take_over()
            self.cache.on_compacted(before, after)
            self.workspace.clear()

    def interrupt(self) -> None:
        """End the statements that are running, from another thread."""
        for workspace in (self.workspace, *self._lent):
            workspace.sql.interrupt()

    def forget(self) -> None:
        """Drop all that is kept in memory, after an exception at any moment."""
        with self._busy:
            self.loader.stop()
            self._idle = []
            workspace = self.workspace.fresh()
            self.cache = RelationCache(workspace, self.cache.budget)
            self.loader = Loader(self.cache)
            self.workspace = workspace

    def wait(self) -> None:
        """Wait until what transactions have looked up is in memory, as far as it is to be."""
        with self._busy:
            self.loader.wait()

    def close(self) -> None:
        """Give the memory back."""
        self.loader.stop()
        self.workspace.sql.close()

    def _run_program(
        self,
        gear: Gear,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        violation: Violation,
        writer: EpochWriter | RowCollector,
    ) -> None:
        """Write the changes of tables, then run the steps; results stay in the workspace."""
        report, workspace = writer.report, self.workspace
        for table, parts in changes.items():
            with report.clock.phase("compute"):
                stored, rows = snapshot.stored[table], in_memory(parts)
                assert rows is not None, "a change in files alone is for executors"
                change = consolidate(pa.concat_tables(rows), stored, workspace)
                workspace.register(change_name(table), change)
            with report.clock.phase("write"):
                writer.write_change(table, change, parts)
        self._run_steps(gear, program, snapshot, violation, writer)

    def _run_steps(
        self,
        gear: Gear,
        program: Program,
        snapshot: Snapshot,
        violation: Violation,
        writer: EpochWriter | RowCollector,
    ) -> None:
        report, workspace = writer.report, self.workspace
        for kind, group in groupby(program.steps, type):
            steps: Sequence[Any] = tuple(group)
            with report.clock.phase(_PHASES[kind]):
                if kind is Fetch:
                    before = self.cache.load_ms
                    gear.fetch(steps, snapshot, report)
                    report.clock.reattribute("load", self.cache.load_ms - before, "fetch")
                    continue
                if kind is Check:
                    _check(workspace, steps, violation)
                    continue
                for step in steps:
                    match step:
                        case Compute(result):
                            with report.step(result), in_step(result):
                                report.computed_by(workspace.compute(step))
                        case Loop(name):
                            with report.step(name), in_step(name):
                                run_loop(step, gear, workspace, snapshot, report)
                        case Add(name, change) | Publish(name, change):
                            with report.step(name), in_step(change):
                                rows = workspace.table(change, snapshot.stored[name].schema)
                                writer.write(name, rows)
                            if isinstance(step, Publish):
                                report.published[name] = rows.num_rows


_PHASES: dict[type[Step], str] = {
    Fetch: "fetch",
    Compute: "compute",
    Loop: "compute",
    Check: "compute",
    Add: "write",
    Publish: "write",
}


def _check(workspace: Workspace, steps: Sequence[Check], violation: Violation) -> None:
    """All checks are evaluated together, over the keys not proved valid; one with rows raises."""
    narrowing = CheckNarrowing(workspace)
    left = [(step, plan) for step in steps if (plan := narrowing.narrowed(step)) is not None]
    has_rows = workspace.any_rows([plan for _, plan in left])
    for (step, _), violated in zip(left, has_rows, strict=True):
        if violated:
            raise violation(step, workspace.evaluate(step.plan))
