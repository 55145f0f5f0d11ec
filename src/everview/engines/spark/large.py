"""The large gear: every step as Spark SQL, results written by executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained
from everview.engines.spark.loop_following import FollowLoop, follow_loop
from everview.engines.spark.recursion import without_loops
from everview.engines.spark.relations import Relations, part_frame, segment_frame, stored_frame
from everview.engines.spark.writing import write_segment
from everview.expr.quoting import spark_name
from everview.expr.types import WEIGHT, names
from everview.plan.nodes import Plan, Ref
from everview.plan.traverse import sources, walk
from everview.program.steps import Add, Check, Compute, Fetch, Loop, Program, Publish, change_name
from everview.runtime.protocol import Changes, Part, Snapshot, Staged, Violation, row_count
from everview.runtime.report import LARGE, RunReport
from everview.sqlgen.sql import SPARK, consolidate, emit, emit_consolidated, emit_step
from everview.store.manifest import Kind, Segment, joined

SHOWN_ROWS = 20


@dataclass(slots=True)
class LargeGear:
    """One run of a program, or one backfill, as Spark SQL end to end."""

    session: SparkSession
    snapshot: Snapshot
    epoch: int
    violation: Violation | None
    follow: FollowLoop | None = None

    @explained()
    def run(self, program: Program, changes: Changes, consolidated: bool = False) -> RunReport:
        """The same steps as in the small gear, lazily; jobs run for checks and writes only."""
        report = RunReport(gear="large")
        uses = _uses(program)
        checks = [step for step in program.steps if isinstance(step, Check)]
        with Relations(self.session) as relations, ExitStack() as held:
            started = held.enter_context(actions.counted(self.session))
            written = (row_count(part) for parts in changes.values() for part in parts)
            held.enter_context(actions.planned_for(self.session, sum(written)))
            with report.clock.phase("write"):
                for table, parts in changes.items():
                    self._take_in(table, parts, table in program.removing, relations, report)
            with report.clock.phase("compute"):
                for step in program.steps:
                    if isinstance(step, Fetch):
                        frame = self._fetch(step, relations)
                        if uses[step.result] > 1 and step.by is not None:
                            frame = held.enter_context(actions.kept(frame))
                        relations.give(step.result, frame)
                        report.took(step, LARGE)
                    elif isinstance(step, Compute):
                        frame = ask(
                            self.session,
                            emit_step(step, SPARK, relations.names, careful=consolidated),
                        )
                        if uses[step.result] > 1:
                            frame = held.enter_context(actions.kept(frame))
                        relations.give(step.result, frame)
                    elif isinstance(step, Loop):
                        follow_loop(step, self.session, relations, self.follow, report)
                self._check(checks, relations)
            with report.clock.phase("write"):
                for step in program.steps:
                    if isinstance(step, Add | Publish):
                        self._finish(step, relations, report)
            report.jobs = started()
        return report

    def _finish(self, step: Add | Publish, relations: Relations, report: RunReport) -> None:
        """Write the change of a state or view."""
        name = step.state if isinstance(step, Add) else step.view
        with report.step(name):
            rows = self.session.table(relations.names[step.change])
            report.segments[name] = self._write(name, rows)
        if isinstance(step, Publish):
            report.published[name] = report.segments[name].rows

    @explained()
    def build(self, name: str, plan: Plan, consolidated: bool = False) -> Segment:
        """The value of `plan`, as the base of a relation.

        It is computed once, and kept while its keys are sampled and it is written.
        """
        read = sum(self.snapshot.relation(source.name).rows for source in sources(plan))
        with actions.planned_for(self.session, read), Relations(self.session) as relations:
            relations.give_stored(plan, self.snapshot, consolidated=consolidated)
            within = self.snapshot.store, self.epoch
            with without_loops(plan, self.session, relations, within) as left:
                frame = ask(self.session, emit_consolidated(left, SPARK, relations.names))
                with actions.kept(frame) as rows:
                    return self._write(name, rows, base=True)

    def _take_in(
        self,
        table: str,
        parts: Sequence[Part],
        removes: bool,
        relations: Relations,
        report: RunReport,
    ) -> None:
        """Name the change of a table in files, which is what everything is computed from.

        Rows that are only inserted, and are written already, stay as they are. Rows that may cancel
        are consolidated first.
        """
        stored = self.snapshot.stored[table]
        staged = [part.segment for part in parts if isinstance(part, Staged)]
        if removes or len(staged) < len(parts):
            frames = [part_frame(self.session, part, table, self.snapshot) for part in parts]
            relations.give(f"given {table}", reduce(DataFrame.unionByName, frames))
            rows = f"SELECT * FROM {relations.names[f'given {table}']}"
            if removes:
                rows = consolidate(rows, stored.schema, stored.rings, SPARK)
            staged = [self._write(table, ask(self.session, rows))]
        segment = joined(staged)
        report.segments[table] = segment
        frame = segment_frame(self.session, segment, table, self.snapshot)
        relations.give(change_name(table), frame)

    def _fetch(self, step: Fetch, relations: Relations) -> DataFrame:
        frame = stored_frame(self.session, step.relation, self.snapshot)
        columns = [spark_name(column) for column in (*names(step.schema), WEIGHT)]
        frame = frame.select(*columns)
        if step.by is None:
            return frame
        relations.give(f"stored {step.result}", frame)
        keys = " UNION ".join(
            f"SELECT {spark_name(key.column)} AS k FROM {relations.names[key.relation]}"
            for key in step.keys
        )
        return ask(
            self.session,
            f"SELECT r.* FROM {relations.names[f'stored {step.result}']} AS r "
            f"LEFT SEMI JOIN ({keys}) AS k ON r.{spark_name(step.by)} <=> k.k",
        )

    def _check(self, steps: Sequence[Check], relations: Relations) -> None:
        """All checks are evaluated by one query; the first with rows is run again for them."""
        if not steps:
            return
        assert self.violation is not None
        texts = [emit(step.plan, SPARK, relations.names) for step in steps]
        first_rows = (
            f"(SELECT {number} AS step FROM ({text}) AS q LIMIT 1)"
            for number, text in enumerate(texts)
        )
        violated = actions.collect(ask(self.session, " UNION ALL ".join(first_rows)))
        broken = sorted(violated.column("step").to_pylist())
        if broken:
            rows = actions.collect_some(ask(self.session, texts[broken[0]]), SHOWN_ROWS)
            raise self.violation(steps[broken[0]], rows)

    def _write(self, name: str, frame: DataFrame, *, base: bool = False) -> Segment:
        kind: Kind = "base" if base else "change"
        return write_segment(frame, name, self.snapshot, self.epoch, kind=kind, ranged=base)


def _uses(program: Program) -> Counter[str]:
    """How many steps read each result."""
    found: Counter[str] = Counter()
    for step in program.steps:
        match step:
            case Fetch(_, _, _, _, keys):
                found.update({key.relation for key in keys})
            case Compute(_, plan) | Check(_, _, _, plan):
                found.update({node.name for node in walk(plan) if isinstance(node, Ref)})
            case Add(_, change) | Publish(_, change):
                found[change] += 1
    return found
