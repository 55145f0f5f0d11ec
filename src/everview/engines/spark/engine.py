"""The Spark engine: two gears over one program, chosen by size and never by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from shutil import disk_usage
from tempfile import gettempdir
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.analysis.tie_sensitive import hangs_on_ties
from everview.database.audit_query import declared, written_minus_stored
from everview.engines.duckdb.calculator import Calculator
from everview.engines.duckdb.files import files_of
from everview.engines.duckdb.scan import stored_items
from everview.engines.duckdb.scan_evaluator import Reading
from everview.engines.spark import actions, audit, door, queries
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained
from everview.engines.spark.fetch import DRIVER_BYTES, TooLarge, Wanted, fetch_by_job
from everview.engines.spark.large import LargeGear
from everview.engines.spark.relations import Relations, as_frame
from everview.engines.spark.session import session_for
from everview.errors import Span, UserError
from everview.expr.types import WEIGHT, Schema, Type
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.lang.sql.lower.top_level_query import lower_recursive
from everview.lang.sql.parse.statements import Query
from everview.plan.nodes import Plan, Ref, Source
from everview.plan.traverse import has_loops, schema_of, sources, walk
from everview.program.steps import Compute, Fetch, Program
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.cache.key_set import Keys
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.interpreter import InProcess, is_idle, run_small
from everview.runtime.memory_budget import BESIDE_SPARK
from everview.runtime.protocol import SIGN, Changes, Difference, Snapshot, Violation, Written
from everview.runtime.recursion.seminaive import Solver
from everview.runtime.report import DRIVER, JOB, MEMORY, Outcome
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError, twice
from everview.sqlgen.parity.table import NotEqual
from everview.sqlgen.sql import DUCKDB, SPARK, emit_consolidated
from everview.store.manifest import DataFile, Segment, parquet_and_pieces
from everview.store.pruning import files_for, may_hold_null
from everview.store.store import Store

LARGE_ROWS = 2_000_000
"""A change of more rows runs as Spark SQL end to end."""

BUILT_BYTES = 192
BUILT_ROWS = 16
"""So does a backfill from more: of rows by so many times, of files by so many bytes a row.

A backfill reads files as they are, and of what it reads only what it makes is held.
"""

UNPACKED = 6
"""How many bytes of memory a byte of a Parquet file becomes, more or less."""

HELD_BYTES = 32 << 30
"""Relations that are looked up by key stay in memory, or in files mapped into it, up to this."""


class SparkEngine(InProcess):
    """Programs on Apache Spark: slices and arithmetic in process, or Spark SQL throughout."""

    name = "spark"

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        large_rows: int = LARGE_ROWS,
        driver_bytes: int = DRIVER_BYTES,
        held_bytes: int | None = None,
        allow: Allow = NOTHING,
    ) -> None:
        super().__init__(Calculator(), BESIDE_SPARK)
        self._given = spark
        self._owns = False
        self._allow = allow
        self._large_rows = large_rows
        self._driver_bytes = driver_bytes
        self._held_bytes = _room() if held_bytes is None else held_bytes

    @cached_property
    def session(self) -> SparkSession:
        """Spark, started when something first needs it."""
        session, self._owns = session_for(self._given)
        return session

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """The type that Spark's own analyzer gives a scalar."""
        return queries.analyzed(self.session, scalar, schema, span)

    def describe(self, sql: str, relations: Mapping[str, Schema], *, once: bool = False) -> Schema:
        """The columns that Spark's own analyzer gives a query."""
        allow = self._allow if once else NOTHING
        return queries.described(self.session, sql, relations, self.analyze, allow)

    def register(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Make a function of the user's known to Spark; steps that call it run there."""
        self.session.udf.register(name, function, gives)
        door.register(self.session, name)

    def knows(self, plan: Plan) -> bool:
        """Spark itself says what is right."""
        return True

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> Outcome:
        """Run a transaction's program in the gear its size asks for."""
        with explained():
            parts = (part for each in changes.values() for part in each)
            if self.gear(sum(map(_rows, parts))) == "small":
                with suppress(TooLarge):
                    return self._run_small(program, changes, snapshot, epoch, violation)
            gear = LargeGear(self.session, snapshot, epoch, violation)
            return twice(lambda careful: gear.run(program, changes, careful))

    def gear(self, rows: float) -> str:
        """Small as long as the driver should hold the change."""
        return "small" if rows <= self._large_rows else "large"

    def _run_small(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> Outcome:
        calculator = self._calculator
        with self._busy:
            try:
                outcome = run_small(self, calculator, program, changes, snapshot, epoch, violation)
            finally:
                calculator.forget()
            self._hot.stage(outcome.segments, outcome.written)
        return outcome

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, outcome: Outcome) -> None:
        """One round: small slices are read here, the others by one Spark job together."""
        far: list[Wanted] = []
        for step in steps:
            if is_idle(step, self._calculator, outcome):
                continue
            if step.by is not None and self._stays(step.relation, snapshot):
                wanted = Keys(self.values(step), self.agreeing(step))
                rows = self._hot.among(step.relation, step.by, wanted, step.schema, snapshot)
                self._calculator.give(step.result, rows)
                outcome.took(step, MEMORY, rows.num_rows)
                continue
            files, keys = self._surviving(step, snapshot)
            if not parquet_and_pieces(files)[0] or _bytes(files) <= self._driver_bytes:
                outcome.took(step, DRIVER, self._near(step, files, snapshot))
            else:
                far.append(_wanted(step, files, keys, snapshot.store))
        if far:
            slices = fetch_by_job(far, partial(actions.fetch_slices, self.session))
            outcome.started_job()
            for step in steps:
                if step.result in slices:
                    self._calculator.give(step.result, slices[step.result])
                    outcome.took(step, JOB, slices[step.result].num_rows)

    def _stays(self, name: str, snapshot: Snapshot) -> bool:
        """Whether a relation is in memory, or is small enough to be taken there."""
        if self._hot.holds(name, snapshot):
            return True
        wanted = UNPACKED * _bytes(snapshot.relation(name).files)
        return self._hot.bytes + wanted <= self._held_bytes

    def _surviving(
        self, step: Fetch, snapshot: Snapshot
    ) -> tuple[tuple[DataFile, ...], pa.ChunkedArray | None]:
        """The files that may hold the slice, and the keys they were chosen by, if any were."""
        relation = snapshot.relation(step.relation)
        if step.by is None or _bytes(relation.files) <= self._driver_bytes:
            return relation.files, None
        keys = self.keys(step)
        return files_for(relation, step.by, keys), keys

    def _near(self, step: Fetch, files: tuple[DataFile, ...], snapshot: Snapshot) -> int:
        """Read a slice in the driver; how many rows it has."""
        relation = snapshot.relation(step.relation)
        nullable = step.by is not None and may_hold_null(relation, step.by, files)
        asked = self._calculator.asked(step.keys)
        found = files_of(step.result, files, snapshot.store, step.schema, asked, nullable=nullable)
        return self._calculator.fetch(step.result, found, step.schema, step.by)

    def compute(self, step: Compute, outcome: Outcome) -> None:
        """Evaluate a step in process, and on Spark where only Spark is known to be right."""
        try:
            self._calculator.compute(step)
        except (NotEqual, CalculationError):
            plan = self._calculator.reduced(step.plan)
            rows = twice(lambda careful: self._on_spark(plan, careful))
            self._calculator.give(step.result, rows)
            outcome.started_job()

    @explained()
    def _on_spark(self, plan: Plan, careful: bool) -> pa.Table:
        """A step whose arithmetic is only known to be right on Spark, over small inputs."""
        with Relations(self.session) as relations:
            for node in dict.fromkeys(n for n in walk(plan) if isinstance(n, Ref)):
                rows = self._calculator.result(node.name, node.schema)
                relations.give(node.name, as_frame(self.session, rows))
            sql = emit_consolidated(plan, SPARK, relations.names, careful=careful)
            return conform(actions.collect(ask(self.session, sql)), schema_of(plan))

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of `plan` over the stored relations, as the base of a new relation."""
        stored = snapshot.stored[name]
        with explained():
            try:
                rows = twice(lambda careful: self._evaluate_small(plan, snapshot, careful))
            except (TooLarge, NotEqual, CalculationError):
                gear = LargeGear(self.session, snapshot, epoch, None)
                return twice(lambda careful: gear.build(name, plan, careful))
        must_be_in_calendar(rows)
        return snapshot.store.write_segment(name, epoch, rows, stored.sort, kind="base")

    def _evaluate_small(self, plan: Plan, snapshot: Snapshot, careful: bool = False) -> pa.Table:
        names = [source.name for source in sources(plan)]
        read = [snapshot.relation(name) for name in names]
        rows, size = sum(each.rows for each in read), sum(_bytes(each.files) for each in read)
        if rows > BUILT_ROWS * self._large_rows or size > BUILT_BYTES * self._large_rows:
            raise TooLarge("a backfill")
        with self._reading() as calculator:
            items = stored_items(names, snapshot, calculator, careful=careful)
            reading = Reading(calculator, items, _in_process)
            return reading.evaluate(Solver(reading).solved(plan))

    def weighted(self, rows: DataFrame, table: str, schema: Schema, weight: int) -> DataFrame:
        """A Spark DataFrame as weighted rows of a table, still on Spark."""
        return queries.weighted(self.session, rows, table, schema, weight)

    limited = staticmethod(queries.limited)

    def read(self, name: str, snapshot: Snapshot) -> Result:
        """The rows of a stored relation: read here when they are few, else by Spark."""

        def arrow() -> pa.Table:
            schema = snapshot.stored[name].schema
            if snapshot.relation(name).rows > self._large_rows:
                return actions.collect(queries.plain_frame(self.session, name, snapshot, {}))
            rows = self._evaluate_small(Source(name, schema), snapshot)
            with self._reading() as calculator:
                return calculator.repeat(rows)

        return Result(arrow, lambda: queries.plain_frame(self.session, name, snapshot, {}))

    def query(self, sql: str, reads: Sequence[str], snapshot: Snapshot, pending: Changes) -> Result:
        """A query over stored relations and changes not committed yet, by Spark.

        A recursion that Spark does not read, or ends before it is done, is evaluated by us.
        """
        kept = {name: list(parts) for name, parts in pending.items()}

        def own() -> DataFrame | None:
            query = lower_recursive(sql, declared(snapshot), self.analyze)
            if query is None:
                return None
            with explained():
                rows = twice(lambda careful: self._whole(query.plan, snapshot, careful, kept))
            return queries.shown(self.session, query, rows)

        return queries.asked(self.session, sql, reads, snapshot, pending, own, self._allow)

    def change_of(self, result: Result, schema: Schema) -> pa.Table | DataFrame:
        """Few rows come to the driver; many stay a DataFrame and go the large way."""
        return self._few(result.to_spark().withColumnRenamed(SIGN, WEIGHT), schema)

    def _few(self, frame: DataFrame, schema: Schema) -> pa.Table | DataFrame:
        """Weighted rows, in memory when they are few."""
        with explained():
            some = actions.collect_some(frame, self._large_rows + 1)
        return frame if some.num_rows > self._large_rows else conform(some, schema)

    def difference(
        self, name: str, text: Mapping[str, Written], tables: Sequence[str], snapshot: Snapshot
    ) -> Difference:
        """A view's query minus the view.

        Spark reads the text itself. What it does not read, and what it answers in one of several
        ways because rows tie, is compared with the text as we read it.
        """
        texts = {view: each for view, each in text.items() if isinstance(each, str)}
        with explained():
            found: Difference | str = audit.NO_SQL
            frames = audit.stored_tables(self.session, tables, snapshot)
            given = (self.session, name, texts, frames, snapshot)
            if len(texts) == len(text):
                found = audit.text_difference(*given)
            if isinstance(found, Difference) and not found.weighted.num_rows:
                return found
            try:
                plan = written_minus_stored(name, text, snapshot, self.analyze)
            except UserError:
                # A view that recomputes a part: only Spark reads it.
                if isinstance(found, str):
                    raise
                return found
            if isinstance(found, Difference) and (
                not hangs_on_ties(plan) or audit.is_settled(*given)
            ):
                return found
            ours = found if isinstance(found, str) else audit.TIES
            if isinstance(found, str) and (has_loops(plan) or len(texts) < len(text)):

                def rows(plan: Plan) -> pa.Table:
                    return twice(lambda careful: self._whole(plan, snapshot, careful))

                return replace(audit.own_difference(name, plan, snapshot, rows), ours=ours)
            again = audit.plan_difference(self.session, name, plan, snapshot)
            return replace(again, ours=ours)

    def _whole(
        self, plan: Plan, snapshot: Snapshot, careful: bool, pending: Changes | None = None
    ) -> pa.Table:
        """The rows of a plan after pending changes, in process where that can be."""
        read = {source.name for source in sources(plan)}
        if not any(parts for name, parts in (pending or {}).items() if name in read):
            with suppress(TooLarge, NotEqual, CalculationError):
                return self._evaluate_small(plan, snapshot, careful)
        return queries.evaluated(self.session, plan, snapshot, pending or {}, careful)

    def recompute(
        self,
        name: str,
        query: Query,
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> pa.Table | DataFrame:
        """A query after the pending changes minus the rows stored, by Spark."""
        frame = queries.recomputed(self.session, name, query, views, snapshot, pending)
        return self._few(frame, snapshot.stored[name].schema)

    def fixed(self, rows: Any, table: str, snapshot: Snapshot) -> Any:
        """A DataFrame computed once: few rows in memory, many in files of the next epoch."""
        if isinstance(rows, pa.Table):
            return rows
        some = self._few(rows, snapshot.stored[table].schema)
        if isinstance(some, pa.Table):
            return some
        gear = LargeGear(self.session, snapshot, snapshot.manifest.epoch + 1, None)
        return gear.fixed(table, some)

    def close(self) -> None:
        """Stop the local Spark this engine started; leave a session it was given alone."""
        self._calculator.close()
        if self._owns:
            self.session.stop()


def _in_process(plan: Plan, items: Mapping[str, str]) -> str:
    return emit_consolidated(plan, DUCKDB, items)


def _wanted(
    step: Fetch, files: Iterable[DataFile], keys: pa.ChunkedArray | None, store: Store
) -> Wanted:
    """A slice for a job: it reads Parquet files; what is in none of them is at hand."""
    whole, pieces = parquet_and_pieces(files)
    store.require_sound(whole, pages=True)
    paths = tuple(store.absolute(file.path) for file in whole)
    few = store.read_files(pieces, key=step.by, keys=keys, schema=arrow_schema(step.schema))
    return Wanted(step.result, paths, step.schema, step.by, keys, few)


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.bytes for file in files)


def _room() -> int:
    """What may be held without filling the disk that mapped files lie on."""
    return min(HELD_BYTES, disk_usage(gettempdir()).free // 2)


def _rows(change: Any) -> float:
    return change.num_rows if isinstance(change, pa.Table) else float("inf")
