"""The large gear: every step as Spark SQL, results written by executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained
from everview.engines.spark.recursion import without_loops
from everview.engines.spark.relations import (
    Relations,
    as_frame,
    files_frame,
    stored_frame,
    weighted_ddl,
)
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.expr.types import WEIGHT, names
from everview.plan.nodes import Plan, Ref
from everview.plan.traverse import walk
from everview.program.steps import Add, Check, Compute, Fetch, Loop, Program, Publish, change_name
from everview.runtime.calendar import outside_calendar, outside_on_spark
from everview.runtime.protocol import Changes, Snapshot, Stored, Violation
from everview.runtime.report import LARGE, RunReport
from everview.sqlgen.sql import SPARK, consolidate, emit, emit_consolidated, emit_step
from everview.store.manifest import Kind, Segment

SHOWN_ROWS = 10


@dataclass(slots=True)
class LargeGear:
    """One run of a program, or one backfill, as Spark SQL end to end."""

    session: SparkSession
    snapshot: Snapshot
    epoch: int
    violation: Violation | None

    @explained()
    def run(self, program: Program, changes: Changes, consolidated: bool = False) -> RunReport:
        """The same steps as in the small gear, lazily; jobs run for checks and writes only."""
        report = RunReport(gear="large")
        uses = _uses(program)
        checks = [step for step in program.steps if isinstance(step, Check)]
        with Relations(self.session) as relations, ExitStack() as held:
            started = held.enter_context(actions.counted(self.session))
            with report.clock.phase("write"):
                for table, parts in changes.items():
                    self._take_in(table, parts, table in program.removing, relations, report)
            with report.clock.phase("compute"):
                for step in program.steps:
                    if isinstance(step, Fetch):
                        relations.give(step.result, self._fetch(step, relations))
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
                        raise UserError(
                            "E013",
                            "the change is too large to be followed through a recursion",
                            remedy="send it in smaller transactions",
                        )
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
        """The value of `plan`, as the base of a relation."""
        with Relations(self.session) as relations:
            relations.give_stored(plan, self.snapshot, consolidated=consolidated)
            with without_loops(plan, self.session, relations) as left:
                frame = ask(self.session, emit_consolidated(left, SPARK, relations.names))
                return self._write(name, frame, base=True)

    def pin(self, table: str, frame: DataFrame) -> DataFrame:
        """Rows written to files, so that they are read again as they are now."""
        return self._frame_of(table, self._write(table, frame))

    def _take_in(
        self,
        table: str,
        parts: Sequence[Any],
        removes: bool,
        relations: Relations,
        report: RunReport,
    ) -> None:
        """Write the change of a table; what is computed from it reads what was written.

        Rows that cancel are taken out first. Rows that are only inserted need not be added up.
        """
        stored = self.snapshot.stored[table]
        frames = [as_frame(self.session, rows) for rows in parts]
        relations.give(f"given {table}", reduce(DataFrame.unionByName, frames))
        rows = f"SELECT * FROM {relations.names[f'given {table}']}"
        if removes:
            rows = consolidate(rows, stored.schema, stored.rings, SPARK)
        segment = self._write(table, ask(self.session, rows))
        report.segments[table] = segment
        relations.give(change_name(table), self._frame_of(table, segment))

    def _frame_of(self, name: str, segment: Segment) -> DataFrame:
        schema = self.snapshot.stored[name].schema
        if not segment.files:
            return self.session.createDataFrame([], weighted_ddl(schema))
        return files_frame(self.session, segment.files, self.snapshot.store, schema)

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
        store, stored = self.snapshot.store, self.snapshot.stored[name]
        sort = stored.sort
        directory = store.segment_directory(name, self.epoch)
        rows = actions.write_sorted(_in_calendar(frame, stored), store.absolute(directory), sort)
        kind: Kind = "base" if base else "change"
        return store.adopt_segment(name, self.epoch, directory, sort, kind=kind, rows=rows)


def _in_calendar(frame: DataFrame, stored: Stored) -> DataFrame:
    """The rows, or an error where one that comes holds a moment that no one could read."""
    for column in stored.schema:
        name = spark_name(column.name)
        test = outside_on_spark(name, column.type)
        if test is not None:
            problem = functions.raise_error(
                functions.lit(outside_calendar("a value computed here").problem)
            )
            outside = functions.expr(f"{WEIGHT} > 0 AND ({test})")
            kept = functions.when(outside, problem).otherwise(functions.col(name))
            frame = frame.withColumn(column.name, kept)
    return frame


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
