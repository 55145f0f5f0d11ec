"""Refreshes the views for one transaction: runs its program, or recomputes what it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from everview.compiler import compile_checks, compile_program
from everview.database.backfill import EpochWrites, rebuild, rows_read
from everview.database.catalog.catalog import Catalog
from everview.database.cost.choose import WEIGHED_MIN_ROWS, Choice, Workload, choose, is_exact
from everview.database.cost.measurements import SAMPLES, SEPARATOR, Measurement, Measurements
from everview.database.error_context import name_views
from everview.database.following_changes import following_changes
from everview.database.introspect.epoch_notes import choice_note, read_note, transaction_note
from everview.database.violations import must_hold, violation
from everview.errors import UserError
from everview.plan.nodes import Plan
from everview.program.dependencies import Share, results_under, shares, union_of_shares
from everview.program.steps import Fetch, Program, fetch_mark, violations_name
from everview.runtime.protocol import (
    Changes,
    Engine,
    LoopNotFollowedError,
    Part,
    Snapshot,
    row_count,
)
from everview.runtime.report import Clock, RunReport
from everview.runtime.retry import CalculationError
from everview.store.manifest import Segment

UNKNOWN_TO_ENGINE = "E011"

Chooser = Callable[[Workload, Measurements], Choice]


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """The program for a change of some tables, and the share that each view and state has of it.

    `touched` says of each table whether rows are removed. `view_fetches` are the fetches that no
    check of a table needs anyway. `exact`: no value depends on the order of addition.
    """

    touched: Mapping[str, bool]
    program: Program
    shares: Mapping[str, Share]
    view_fetches: frozenset[str]
    exact: bool

    @property
    def tables(self) -> str:
        """The touched tables, as measurements are kept by."""
        return SEPARATOR.join(self.program.inputs)


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a transaction writes, the note of its epoch, and the time it took."""

    writes: EpochWrites
    note: Mapping[str, Any]
    clock: Clock


@dataclass(slots=True)
class Maintainer:
    """Refreshes the views of one catalog on one engine, transaction by transaction."""

    catalog: Catalog
    engine: Engine
    chooser: Chooser = choose
    weighed_min_rows: int = WEIGHED_MIN_ROWS
    """A smaller change is maintained without weighing the two ways."""
    _programs: dict[tuple[tuple[str, bool], ...], CompiledProgram] = field(default_factory=dict)

    def with_catalog(self, catalog: Catalog) -> Maintainer:
        """The same for another catalog, whose programs are not compiled yet."""
        return Maintainer(catalog, self.engine, self.chooser, self.weighed_min_rows)

    def refresh(
        self,
        pending: Changes,
        removes: frozenset[str],
        snapshot: Snapshot,
        has_id: bool = False,
    ) -> Refresh | None:
        """Everything that the pending changes write.

        Where they cancel, or there are none, that is nothing at all for a transaction that
        `has_id`, whose epoch keeps the id, and None for any other.
        """
        nothing = Refresh(EpochWrites(), {"kind": "transaction"}, Clock()) if has_id else None
        if not pending:
            return nothing
        clock = Clock()
        changes, compiled = self.prepare(pending, removes, snapshot, clock)
        measured = Measurements.of(read_note(snapshot.manifest, SAMPLES))
        choice = self.choose_way(compiled, changes, snapshot, measured)
        with self.explained(compiled):
            if choice.way == "incremental":
                try:
                    writes, outcome = self._run_program(compiled, changes, snapshot)
                except LoopNotFollowedError:
                    choice = Choice("recompute")
            if choice.way == "recompute":
                writes, outcome = self.recompute(compiled, changes, snapshot)
        rows = sum(outcome.segments[name].rows for name in changes)
        if choice.way == "recompute":
            views_ms = sum(each.milliseconds for each in writes.build_times.values())
            measured = measured.after_builds(writes.build_times)
            if choice.incremental is not None:
                expected = Measurement(rows, choice.incremental)
                measured = measured.after_recompute(compiled.tables, expected)
        else:
            views_ms = _views_ms(compiled, outcome)
            measured = measured.after_change(compiled.tables, Measurement(rows, views_ms))
        if not writes.changes:
            return nothing
        for phase, spent in outcome.clock.phases.items():
            clock.add(phase, spent)
        views = {name: s for name, s in compiled.shares.items() if name in self.catalog.views}
        note = {
            **transaction_note(outcome, views),
            **choice_note(choice, views_ms),
            "samples": measured.to_note(snapshot.stored),
        }
        return Refresh(writes, note, clock)

    def prepare(
        self,
        pending: Changes,
        removes: frozenset[str],
        snapshot: Snapshot,
        clock: Clock | None = None,
    ) -> tuple[dict[str, list[Part]], CompiledProgram]:
        """The changes of tables and recomputed blocks, and the program for them."""
        clock = clock or Clock()
        with clock.phase("compute"):
            changes, losing = following_changes(
                self.catalog, self.engine, pending, removes, snapshot
            )
        shrinking = {*losing, *self.catalog.parts}
        with clock.phase("compile"):
            return changes, self._compile({name: name in shrinking for name in changes})

    @contextmanager
    def explained(self, compiled: CompiledProgram) -> Iterator[None]:
        """Name the views in errors of a run."""
        try:
            yield
        except CalculationError as problem:
            raise self._naming_views(problem, compiled) from problem
        except UserError as problem:
            if problem.code != UNKNOWN_TO_ENGINE:
                raise
            raise self._not_maintained(problem, compiled) from problem

    def _compile(self, touched: Mapping[str, bool]) -> CompiledProgram:
        key = tuple(sorted(touched.items()))
        if key not in self._programs:
            program = compile_program(self.catalog.maintenance, dict(key))
            moved = shares(program)
            exact = all(is_exact(self._plan(name)) for name in moved)
            checked = compile_checks(self.catalog.maintenance, dict(key)).steps
            for_checks = {
                fetch_mark(s.relation, s.reads_by) for s in checked if isinstance(s, Fetch)
            }
            view_fetches = union_of_shares(moved.values()).fetches - for_checks
            self._programs[key] = CompiledProgram(dict(key), program, moved, view_fetches, exact)
        return self._programs[key]

    def _plan(self, name: str) -> Plan:
        state = self.catalog.maintenance.states.stored.get(name)
        return self.catalog.compiled(name).plan if state is None else state.plan

    def choose_way(
        self,
        compiled: CompiledProgram,
        changes: Changes,
        snapshot: Snapshot,
        measured: Measurements,
    ) -> Choice:
        """The way to refresh: a change that is small, on Spark, or not exact is maintained.

        A recursion is followed in process; one whose change turns out to move too much of it is
        recomputed.
        """
        if not compiled.shares:
            return Choice()
        counts = {name: sum(map(row_count, parts)) for name, parts in changes.items()}
        rows = sum(counts.values())
        large = rows > self.engine.large_rows
        if rows < self.weighed_min_rows or not compiled.exact:
            return Choice()
        builds = rows_read(self.catalog, compiled.shares, snapshot, counts)
        work = Workload(compiled.tables, rows, len(compiled.view_fetches), builds, large)
        return self.chooser(work, measured)

    def _run_program(
        self, compiled: CompiledProgram, changes: Changes, snapshot: Snapshot
    ) -> tuple[EpochWrites, RunReport]:
        epoch = snapshot.manifest.epoch + 1
        outcome = self.engine.run(compiled.program, changes, snapshot, epoch, violation)
        return EpochWrites(changes=_not_empty(outcome.segments)), outcome

    def recompute(
        self, compiled: CompiledProgram, changes: Changes, snapshot: Snapshot
    ) -> tuple[EpochWrites, RunReport]:
        """Take the changes of tables in and check them, then rebuild what they move."""
        epoch, maintenance = snapshot.manifest.epoch + 1, self.catalog.maintenance
        checked, left = compile_checks(maintenance, compiled.touched), False
        try:
            outcome = self.engine.run(checked, changes, snapshot, epoch, violation)
        except LoopNotFollowedError:
            left = True
            checked = compile_checks(maintenance, compiled.touched, assertions=False)
            outcome = self.engine.run(checked, changes, snapshot, epoch, violation)
        with outcome.clock.phase("compute"):
            writes = rebuild(self.catalog, compiled.shares, outcome.segments, self.engine, snapshot)
            after = replace(snapshot, manifest=writes.advance(snapshot.manifest))
            for assertion in maintenance.assertions if left else ():
                must_hold(assertion, self.engine, after)
        written = writes.changes | writes.bases
        outcome.segments |= {name: written[name] for name in compiled.shares}
        outcome.published = {n: written[n].rows for n in compiled.shares if n in self.catalog.views}
        writes.changes = _not_empty(writes.changes)
        return writes, outcome

    def _naming_views(
        self, problem: CalculationError, compiled: CompiledProgram
    ) -> CalculationError:
        """The error with the views, or the constraint, that the step which failed is for."""
        views = {n: share for n, share in compiled.shares.items() if n in self.catalog.views}
        failed = [n for n, share in views.items() if problem.step in share.results]
        for assertion in () if failed else self.catalog.maintenance.assertions:
            found = violations_name(assertion.name)
            if problem.step in {found, *results_under(compiled.program, found)}:
                return problem.located(f"the constraint {assertion.name}: {assertion.text}")
        return name_views(problem, {n: self.catalog.views[n].query for n in failed or views})

    def _not_maintained(self, problem: UserError, compiled: CompiledProgram) -> UserError:
        """The error with the views that the engine does not know how to keep fresh."""
        moved = [name for name in compiled.shares if name in self.catalog.views]
        unknown = [n for n in moved if self.engine.refusal(self.catalog.compiled(n).plan)]
        message = f"{', '.join(unknown or moved)} cannot follow this change: {problem.problem}"
        return UserError("E015", message, remedy=problem.remedy)


def _not_empty(segments: Mapping[str, Segment]) -> dict[str, Segment]:
    return {name: segment for name, segment in segments.items() if segment.rows}


def _views_ms(compiled: CompiledProgram, outcome: RunReport) -> float:
    """Milliseconds that went into views and states, and not into tables and their checks.

    Fetch time is shared out by rows; fetches that the checks need anyway are not charged to views.
    """
    own = union_of_shares(compiled.shares.values()).results | compiled.shares.keys()
    steps = sum(spent for name, spent in outcome.steps.items() if name in own)
    rows = sum(outcome.fetched.values())
    for_views = sum(n for mark, n in outcome.fetched.items() if mark in compiled.view_fetches)
    return steps + outcome.clock.phases.get("fetch", 0.0) * for_views / max(rows, 1)
