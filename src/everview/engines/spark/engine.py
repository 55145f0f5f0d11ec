"""The Spark engine: two gears over one program, chosen by size and never by meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.engines.duckdb.scan import stored_items, stream_relation
from everview.engines.duckdb.scan_evaluator import ScanEvaluator
from everview.engines.spark import actions, compaction, door, queries
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained, retry_as_written
from everview.engines.spark.frames import SparkFrames
from everview.engines.spark.large import LargeGear
from everview.engines.spark.relations import Relations, as_frame
from everview.engines.spark.session import session_for
from everview.engines.spark.slices import DRIVER_BYTES, Slices
from everview.engines.spark.text import SparkText
from everview.errors import Span, UserError
from everview.expr.types import Schema, Type, names
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.plan.nodes import Negate, Plan, Ref, Source
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import schema_of, sources, walk
from everview.program.steps import Fetch, Loop, Program
from everview.runtime.arrow_types import conform
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.consolidate import repeated
from everview.runtime.interpreter import InProcess
from everview.runtime.memory_budget import BESIDE_SPARK, memory_budget
from everview.runtime.protocol import (
    Changes,
    Part,
    Snapshot,
    Staged,
    TextEvaluator,
    TooLarge,
    Violation,
    in_memory,
    row_count,
)
from everview.runtime.report import RunReport
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError, retry_consolidated
from everview.runtime.workspace import Workspace
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, SPARK, emit_consolidated
from everview.store.manifest import DataFile, Run, Segment

LARGE_ROWS = 2_000_000
"""A change of more rows runs as Spark SQL end to end."""

BUILT_BYTES = 192
BUILT_ROWS = 16
"""So does a backfill from more: of rows by so many times, of files by so many bytes a row.

A backfill reads files as they are, and of what it reads only what it makes is held.
"""


class SparkEngine:
    """Programs on Apache Spark: slices and arithmetic in process, or Spark SQL throughout."""

    name = "spark"

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        large_rows: int = LARGE_ROWS,
        driver_bytes: int = DRIVER_BYTES,
        memory: int | None = None,
        allow: Allow = NOTHING,
    ) -> None:
        self.large_rows: float = large_rows
        budget = memory_budget(memory, BESIDE_SPARK)
        self.local = InProcess(
            duckdb_workspace(budget.calculating, spark=self._evaluate_step), budget
        )
        self.frames = SparkFrames(lambda: self.session, large_rows)
        self.allow = allow
        self.text: TextEvaluator | None = SparkText(
            lambda: self.session, allow, self.frames, self._shown_frame
        )
        self._given = spark
        self._owns = False
        self._slices = Slices(self.local, lambda: self.session, driver_bytes)

    @cached_property
    def session(self) -> SparkSession:
        """Spark, started when something first needs it."""
        session, self._owns = session_for(self._given)
        return session

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """The type that Spark's own analyzer gives a scalar."""
        return queries.analyze(self.session, scalar, schema, span)

    def register_function(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Make a function of the user's known to Spark; steps that call it run there."""
        self.session.udf.register(name, function, gives)
        door.register(self.session, name)

    def refusal(self, plan: Plan) -> UserError | None:
        """None: Spark itself says what is right."""
        return None

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> RunReport:
        """Run a transaction's program in the gear that its size asks for.

        The small gear gives up before it holds more than the driver should; then nothing counts.
        """
        with explained():
            if self._fits(changes):
                with suppress(TooLarge):
                    return self.local.run(self, program, changes, snapshot, epoch, violation)
            return self._run_large(program, changes, snapshot, epoch, violation)

    def preview(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        violation: Violation,
        wanted: Collection[str],
    ) -> Mapping[str, Part]:
        """Run a transaction's program; executors write what is large, and it does not count."""
        with explained():
            if self._fits(changes):
                with suppress(TooLarge):
                    return self.local.preview(self, program, changes, snapshot, violation, wanted)
            epoch = snapshot.manifest.epoch + 1
            written = self._run_large(program, changes, snapshot, epoch, violation).segments
            return {name: Staged(each) for name, each in written.items() if name in wanted}

    def _fits(self, changes: Changes) -> bool:
        """Whether a change is here and small enough to be computed in process."""
        parts = [part for each in changes.values() for part in each]
        return in_memory(parts) is not None and sum(map(row_count, parts)) <= self.large_rows

    def _run_large(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> RunReport:
        def follow(
            loop: Loop, given: Mapping[str, pa.Table], report: RunReport
        ) -> Mapping[str, pa.Table]:
            return self.local.follow(self, loop, given, snapshot, report)

        gear = LargeGear(self.session, snapshot, epoch, violation, follow)
        return retry_as_written(self.session, partial(gear.run, program, changes))

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, report: RunReport) -> None:
        """Name the slices of one round in the workspace."""
        self._slices.fetch(steps, snapshot, report)

    def _evaluate_step(self, plan: Plan, workspace: Workspace) -> pa.Table:
        """A plan over relations in memory, where only Spark is known to be right."""

        @explained()
        def evaluate(consolidated: bool) -> pa.Table:
            with Relations(self.session) as relations:
                for node in dict.fromkeys(n for n in walk(plan) if isinstance(n, Ref)):
                    rows = workspace.table(node.name, node.schema)
                    relations.give(node.name, as_frame(self.session, rows))
                sql = emit_consolidated(plan, SPARK, relations.names, careful=consolidated)
                return conform(actions.collect(ask(self.session, sql)), schema_of(plan))

        return retry_as_written(self.session, evaluate)

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of `plan` over the stored relations, as the base of a new relation."""
        stored = snapshot.stored[name]
        with explained():
            try:
                rows = retry_consolidated(
                    lambda consolidated: self._evaluate_in_process(plan, snapshot, consolidated)
                )
            except (TooLarge, NotAtParity, CalculationError):
                gear = LargeGear(self.session, snapshot, epoch, None)
                return retry_as_written(self.session, partial(gear.build, name, plan))
        must_be_in_calendar(rows)
        return snapshot.store.write_segment(name, epoch, rows, stored.sort, kind="base")

    def compact(self, run: Run, snapshot: Snapshot, epoch: int) -> Segment | None:
        """The sum of a long run of segments, by executors; None for others."""
        if run.rows < compaction.EXECUTORS_MIN_ROWS:
            return None
        return compaction.compact(self.session, run, snapshot, epoch)

    def _evaluate_in_process(
        self, plan: Plan, snapshot: Snapshot, consolidated: bool = False
    ) -> pa.Table:
        names = [source.name for source in sources(plan)]
        read = [snapshot.relation(name) for name in names]
        rows, size = sum(each.rows for each in read), sum(_bytes(each.files) for each in read)
        if rows > BUILT_ROWS * self.large_rows or size > BUILT_BYTES * self.large_rows:
            raise TooLarge("a backfill")
        with self.local.reading() as workspace:
            items = stored_items(names, snapshot, workspace, consolidated=consolidated)
            evaluator = ScanEvaluator(workspace, items, _emit, self._bound)
            return evaluator.evaluate(evaluator.without_loops(plan))

    def _bound(self, rows: int) -> None:
        """Leave a recursion that reaches more rows than the driver should hold to executors."""
        if rows > self.large_rows:
            raise TooLarge("a recursion")

    def evaluate(
        self, plan: Plan, snapshot: Snapshot, pending: Changes, *, cached: bool = True
    ) -> pa.Table:
        """The consolidated rows of a plan after pending changes, in process where that can be.

        Nothing is read from the cache.
        """

        @explained()
        def attempt(consolidated: bool) -> pa.Table:
            read = {source.name for source in sources(plan)}
            if not any(parts for name, parts in pending.items() if name in read):
                with suppress(TooLarge, NotAtParity, CalculationError):
                    return self._evaluate_in_process(plan, snapshot, consolidated)
            return queries.evaluate(self.session, plan, snapshot, pending, consolidated)

        return retry_as_written(self.session, attempt)

    def select(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> Result:
        """The rows that a query shows; those of a stored relation are read here if they are few."""
        plan = query.plan
        source = plan.child if isinstance(plan, Negate) else plan
        whole = query == OrderedQuery(plan, names(schema_of(plan)))
        if (
            isinstance(source, Source)
            and whole
            and (source is not plan or pending.get(source.name))
        ):
            sign = -1 if source is not plan else 1
            frame = queries.plain_frame(self.session, source.name, snapshot, pending, sign)
        elif isinstance(plan, Source) and whole:
            return self._read(plan.name, snapshot)
        else:
            frame = self._shown_frame(query, snapshot, pending)
        stream = partial(actions.batches, frame)
        return Result(
            lambda: actions.collect(frame),
            lambda: frame,
            stream,
            lambda: query.columns,
            lambda: actions.count_rows(frame),
            at_most=partial(actions.collect, frame),
        )

    def _read(self, name: str, snapshot: Snapshot) -> Result:
        def arrow() -> pa.Table:
            schema = snapshot.stored[name].schema
            if snapshot.relation(name).rows <= self.large_rows:
                with suppress(TooLarge):
                    return repeated(self._evaluate_in_process(Source(name, schema), snapshot))
            return actions.collect(queries.plain_frame(self.session, name, snapshot, {}))

        return Result(
            arrow,
            lambda: queries.plain_frame(self.session, name, snapshot, {}),
            partial(stream_relation, self.local, name, snapshot),
            lambda: names(snapshot.stored[name].schema),
            lambda: snapshot.relation(name).weight,
        )

    def _shown_frame(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> DataFrame:
        return queries.shown(self.session, query, self.evaluate(query.plan, snapshot, pending))

    def lookup(self, name: str, by: Sequence[str], keys: pa.Table, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation that agree with one of `keys` in the columns `by`.

        More than the driver should hold raise `TooLarge`.
        """
        return self.local.lookup(self, name, by, keys, snapshot)

    def close(self) -> None:
        """Stop the local Spark this engine started; leave a session it was given alone."""
        self.local.close()
        if self._owns:
            self.session.stop()


def _emit(plan: Plan, items: Mapping[str, str]) -> str:
    return emit_consolidated(plan, DUCKDB, items)


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.bytes for file in files)
