"""How a transaction moves the views with the tables: by its program, or by building them anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from everview.database.backfill import Built, rebuild, rows_read
from everview.database.catalog.catalog import Catalog
from everview.database.cost.choose import LEAST_ROWS, Choice, Question, choose, is_exact
from everview.database.cost.measurements import SEPARATOR, Sample, Samples
from everview.database.error_context import in_views
from everview.database.introspect import statistics
from everview.database.introspect.epoch_notes import note_of
from everview.database.reach import must_be_in_reach
from everview.database.recompute_blocks import with_parts
from everview.database.violations import violation
from everview.errors import UserError
from everview.plan.nodes import Plan
from everview.program.dependencies import Share, shares, together
from everview.program.steps import Fetch, Loop, Program, fetch_mark
from everview.runtime.protocol import Changes, Engine, Snapshot
from everview.runtime.report import Clock, RunReport
from everview.runtime.retry import CalculationError
from everview.store.manifest import Segment

NOT_KNOWN = "E011"
Chooser = Callable[[Question, Samples], Choice]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a change of some tables does, and which share of it each view and state has.

    It is `exact` when none of them depends on the order of addition; `fetches` are those that no
    check of the tables makes anyhow.
    """

    touched: Mapping[str, bool]
    program: Program
    shares: Mapping[str, Share]
    fetches: frozenset[str]
    exact: bool


@dataclass(frozen=True, slots=True)
class Task:
    """Changes of tables, parts included, over an epoch."""

    compiled: Compiled
    changes: Changes
    snapshot: Snapshot

    @property
    def tables(self) -> str:
        """The tables that are touched, as samples know them."""
        return SEPARATOR.join(self.compiled.program.inputs)

    @property
    def epoch(self) -> int:
        """The epoch that the changes make."""
        return self.snapshot.manifest.epoch + 1

    @property
    def samples(self) -> Samples:
        """What was measured before."""
        return Samples.of(note_of(self.snapshot.manifest))


@dataclass(frozen=True, slots=True)
class Done:
    """What one way wrote and cost, and the milliseconds of it that views and states took."""

    built: Built
    outcome: RunReport
    samples: Samples
    for_views: float


@dataclass(frozen=True, slots=True)
class Moved:
    """What a transaction writes, what it is remembered by, and the time it took."""

    built: Built
    note: Mapping[str, Any]
    clock: Clock


@dataclass(slots=True)
class Mover:
    """The views of one catalog on one engine, moved by one transaction after another."""

    catalog: Catalog
    engine: Engine
    chooser: Chooser = choose
    least: int = LEAST_ROWS
    """A change of fewer rows is maintained without asking."""
    _compiled: dict[tuple[tuple[str, bool], ...], Compiled] = field(default_factory=dict)

    def move(self, pending: Changes, removes: frozenset[str], snapshot: Snapshot) -> Moved | None:
        """Everything that the pending changes make of the store; None when they cancel."""
        must_be_in_reach(self.catalog, pending)
        clock = Clock()
        with clock.phase("compute"):
            changes = with_parts(self.catalog, self.engine, pending, snapshot)
        ours = {*removes, *self.catalog.parts}
        with clock.phase("compile"):
            compiled = self._compile({name: name in ours for name in changes})
        task = Task(compiled, changes, snapshot)
        choice = self._choice(task)
        try:
            done = self._build(task, choice) if choice.way == "recompute" else self._maintain(task)
        except CalculationError as problem:
            raise self._blamed(problem, compiled) from problem
        except UserError as problem:
            if problem.code != NOT_KNOWN:
                raise
            raise self._beyond(problem, compiled) from problem
        if not done.built.changes:
            return None
        for phase, spent in done.outcome.clock.phases.items():
            clock.add(phase, spent)
        views = {name: s for name, s in compiled.shares.items() if name in self.catalog.views}
        note = {
            **statistics.note(done.outcome, views),
            **statistics.chosen(choice, done.for_views),
            "samples": done.samples.kept(snapshot.stored),
        }
        return Moved(done.built, note, clock)

    def _blamed(self, problem: CalculationError, compiled: Compiled) -> CalculationError:
        """The error with the views that the step which failed is for."""
        views = {n: share for n, share in compiled.shares.items() if n in self.catalog.views}
        failed = [n for n, share in views.items() if problem.step in share.results]
        return in_views(problem, {n: self.catalog.views[n].query for n in failed or views})

    def _beyond(self, problem: UserError, compiled: Compiled) -> UserError:
        """The error with the views that the engine does not know how to keep fresh."""
        moved = [name for name in compiled.shares if name in self.catalog.views]
        unknown = [n for n in moved if self.engine.refusal(self.catalog.compiled(n).plan)]
        told = f"{', '.join(unknown or moved)} cannot follow this change: {problem.problem}"
        return UserError("E015", told, remedy=problem.remedy)

    def _compile(self, touched: Mapping[str, bool]) -> Compiled:
        key = tuple(sorted(touched.items()))
        if key not in self._compiled:
            program = self.catalog.maintenance.program(dict(key))
            moved = shares(program)
            exact = all(is_exact(self._plan(name)) for name in moved)
            checked = self.catalog.maintenance.checked(dict(key)).steps
            anyhow = {fetch_mark(s.relation, s.by) for s in checked if isinstance(s, Fetch)}
            fetches = together(moved.values()).fetches - anyhow
            self._compiled[key] = Compiled(dict(key), program, moved, fetches, exact)
        return self._compiled[key]

    def _plan(self, name: str) -> Plan:
        state = self.catalog.maintenance.states.stored.get(name)
        return self.catalog.compiled(name).plan if state is None else state.plan

    def _choice(self, task: Task) -> Choice:
        """The way to go; what is few, not in memory, or not exact is maintained."""
        shares, changes = task.compiled.shares, task.changes
        few = all(isinstance(r, pa.Table) for each in changes.values() for r in each)
        if not few and any(isinstance(step, Loop) for step in task.compiled.program.steps):
            return Choice("recompute")  # an iteration is followed in process
        if not shares or not few:
            return Choice()
        counts = {name: sum(rows.num_rows for rows in each) for name, each in changes.items()}
        rows = sum(counts.values())
        large = rows > self.engine.large_rows
        if large and any(isinstance(step, Loop) for step in task.compiled.program.steps):
            return Choice("recompute")
        if rows < self.least or not task.compiled.exact:
            return Choice()
        builds = rows_read(self.catalog, shares, task.snapshot, counts)
        fetches = len(task.compiled.fetches)
        return self.chooser(Question(task.tables, rows, fetches, builds, large), task.samples)

    def _maintain(self, task: Task) -> Done:
        """Run the program."""
        compiled = task.compiled
        outcome = self.engine.run(
            compiled.program, task.changes, task.snapshot, task.epoch, violation
        )
        rows = sum(outcome.segments[name].rows for name in task.changes)
        spent = _for_views(compiled, outcome)
        samples = task.samples.after_changing(task.tables, Sample(rows, spent))
        return Done(Built(changes=_filled(outcome.segments)), outcome, samples, spent)

    def _build(self, task: Task, choice: Choice) -> Done:
        """Take the changes in and check them; then build what they move, as it is after them."""
        compiled = task.compiled
        checked = self.catalog.maintenance.checked(compiled.touched)
        outcome = self.engine.run(checked, task.changes, task.snapshot, task.epoch, violation)
        with outcome.clock.phase("compute"):
            built = rebuild(
                self.catalog, compiled.shares, outcome.segments, self.engine, task.snapshot
            )
        written = built.changes | built.bases
        outcome.segments |= {name: written[name] for name in compiled.shares}
        outcome.published = {n: written[n].rows for n in compiled.shares if n in self.catalog.views}
        built.changes = _filled(built.changes)
        spent = sum(sample.milliseconds for sample in built.spent.values())
        samples = task.samples.after_building(built.spent)
        if choice.incremental is not None:
            rows = sum(outcome.segments[name].rows for name in task.changes)
            samples = samples.after_not_changing(task.tables, Sample(rows, choice.incremental))
        return Done(built, outcome, samples, spent)


def _filled(segments: Mapping[str, Segment]) -> dict[str, Segment]:
    return {name: segment for name, segment in segments.items() if segment.rows}


def _for_views(compiled: Compiled, outcome: RunReport) -> float:
    """Milliseconds that went into views and states, and not into tables and their checks.

    Of the time for fetches they have the part that their rows are of all rows fetched; what is
    fetched for checks too would be without them.
    """
    ours = together(compiled.shares.values()).results | compiled.shares.keys()
    steps = sum(spent for name, spent in outcome.steps.items() if name in ours)
    rows = sum(outcome.fetched.values())
    brought = sum(n for mark, n in outcome.fetched.items() if mark in compiled.fetches)
    return steps + outcome.clock.phases.get("fetch", 0.0) * brought / max(rows, 1)
