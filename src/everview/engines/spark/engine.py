"""The Spark engine: two gears over one program, chosen by size and never by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from shutil import disk_usage
from tempfile import gettempdir
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.engines.duckdb.scan import scan, stored_items
from everview.engines.duckdb.scan_evaluator import ScanEvaluator
from everview.engines.spark import actions, door, queries
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained
from everview.engines.spark.fetch import DRIVER_BYTES, TooLarge, Wanted, fetch_by_job
from everview.engines.spark.frames import SparkFrames
from everview.engines.spark.large import LargeGear
from everview.engines.spark.relations import Relations, as_frame
from everview.engines.spark.session import session_for
from everview.engines.spark.text import SparkText
from everview.errors import Span, UserError
from everview.expr.types import Schema, Type, names
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.plan.nodes import Plan, Ref, Source
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import schema_of, sources, walk
from everview.program.steps import Fetch, Program
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.cache.probe_keys import ProbeKeys
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.consolidate import repeated
from everview.runtime.interpreter import InProcess
from everview.runtime.lookup_keys import distinct_key_values, key_rows, key_values, skip_if_idle
from everview.runtime.memory_budget import BESIDE_SPARK
from everview.runtime.protocol import Changes, Snapshot, TextEvaluator, Violation
from everview.runtime.report import DRIVER, JOB, MEMORY, RunReport
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError, retry_consolidated
from everview.runtime.workspace import Workspace
from everview.sqlgen.parity.errors import NotAtParity
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


class SparkEngine:
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
        self.large_rows: float = large_rows
        self.local = InProcess(duckdb_workspace(spark=self._evaluate_step), BESIDE_SPARK)
        self.frames = SparkFrames(lambda: self.session, large_rows)
        self.text: TextEvaluator | None = SparkText(
            lambda: self.session, allow, self.frames, self._shown_frame
        )
        self._given = spark
        self._owns = False
        self._driver_bytes = driver_bytes
        self._held_bytes = _held_bytes() if held_bytes is None else held_bytes

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
            parts = (part for each in changes.values() for part in each)
            if sum(map(_row_count, parts)) <= self.large_rows:
                with suppress(TooLarge):
                    return self.local.run(self, program, changes, snapshot, epoch, violation)
            gear = LargeGear(self.session, snapshot, epoch, violation)
            return retry_consolidated(partial(gear.run, program, changes))

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, report: RunReport) -> None:
        """One round: small slices are read by the driver, the others by one Spark job together."""
        workspace = self.local.workspace
        by_job: list[Wanted] = []
        for step in steps:
            if skip_if_idle(step, workspace, report):
                continue
            if step.by is not None and self._is_cached(step.relation, snapshot):
                wanted = ProbeKeys(key_values(step, workspace), key_rows(step, workspace))
                rows = self.local.cache.lookup(
                    step.relation, step.by, wanted, step.schema, snapshot
                )
                workspace.register(step.result, rows)
                report.took(step, MEMORY, rows.num_rows)
                continue
            files, keys = self._pruned(step, snapshot)
            if not parquet_and_pieces(files)[0] or _bytes(files) <= self._driver_bytes:
                report.took(step, DRIVER, self._fetch_by_driver(step, files, snapshot))
            else:
                by_job.append(_wanted(step, files, keys, snapshot.store))
        if by_job:
            slices = fetch_by_job(by_job, partial(actions.fetch_slices, self.session))
            report.started_job()
            for step in steps:
                if step.result in slices:
                    workspace.register(step.result, slices[step.result])
                    report.took(step, JOB, slices[step.result].num_rows)

    def _is_cached(self, name: str, snapshot: Snapshot) -> bool:
        """Whether a relation is in memory, or is small enough to be loaded."""
        if self.local.cache.holds(name, snapshot):
            return True
        wanted = UNPACKED * _bytes(snapshot.relation(name).files)
        return self.local.cache.held_bytes + wanted <= self._held_bytes

    def _pruned(
        self, step: Fetch, snapshot: Snapshot
    ) -> tuple[tuple[DataFile, ...], pa.ChunkedArray | None]:
        """The files that may hold the slice, and the keys they were chosen by, if any were."""
        relation = snapshot.relation(step.relation)
        if step.by is None or _bytes(relation.files) <= self._driver_bytes:
            return relation.files, None
        keys = distinct_key_values(step, self.local.workspace)
        return files_for(relation, step.by, keys), keys

    def _fetch_by_driver(self, step: Fetch, files: tuple[DataFile, ...], snapshot: Snapshot) -> int:
        """Read a slice in the driver; how many rows it has."""
        relation, workspace = snapshot.relation(step.relation), self.local.workspace
        nullable = step.by is not None and may_hold_null(relation, step.by, files)
        keys = workspace.nonempty(step.keys)
        slice_ = scan(step.result, files, snapshot.store, step.schema, keys, nullable=nullable)
        return slice_.fetch(step.result, workspace, step.schema, step.by)

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

        return retry_consolidated(evaluate)

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
                return retry_consolidated(lambda consolidated: gear.build(name, plan, consolidated))
        must_be_in_calendar(rows)
        return snapshot.store.write_segment(name, epoch, rows, stored.sort, kind="base")

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
            evaluator = ScanEvaluator(workspace, items, _emit)
            return evaluator.evaluate(evaluator.without_loops(plan))

    def evaluate(
        self, plan: Plan, snapshot: Snapshot, pending: Changes, *, cached: bool = True
    ) -> pa.Table:
        """The consolidated rows of a plan after pending changes, in process where that can be.

        Nothing is read from the cache.
        """

        def attempt(consolidated: bool) -> pa.Table:
            read = {source.name for source in sources(plan)}
            if not any(parts for name, parts in pending.items() if name in read):
                with suppress(TooLarge, NotAtParity, CalculationError):
                    return self._evaluate_in_process(plan, snapshot, consolidated)
            return queries.evaluate(self.session, plan, snapshot, pending, consolidated)

        with explained():
            return retry_consolidated(attempt)

    def select(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> Result:
        """The rows that a query shows; those of a stored relation are read here if they are few."""
        plan = query.plan
        whole = isinstance(plan, Source) and query == OrderedQuery(plan, names(plan.schema))
        if isinstance(plan, Source) and whole and not pending.get(plan.name):
            return self._read(plan.name, snapshot)
        frame = self._shown_frame(query, snapshot, pending)
        return Result(lambda: actions.collect(frame), lambda: frame)

    def _read(self, name: str, snapshot: Snapshot) -> Result:
        def arrow() -> pa.Table:
            schema = snapshot.stored[name].schema
            if snapshot.relation(name).rows > self.large_rows:
                return actions.collect(queries.plain_frame(self.session, name, snapshot, {}))
            return repeated(self._evaluate_in_process(Source(name, schema), snapshot))

        return Result(arrow, lambda: queries.plain_frame(self.session, name, snapshot, {}))

    def _shown_frame(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> DataFrame:
        return queries.shown(self.session, query, self.evaluate(query.plan, snapshot, pending))

    def lookup(self, name: str, by: str, keys: pa.ChunkedArray, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation whose column `by` is among `keys`."""
        return self.local.lookup(self, name, by, keys, snapshot)

    def close(self) -> None:
        """Stop the local Spark this engine started; leave a session it was given alone."""
        self.local.close()
        if self._owns:
            self.session.stop()


def _emit(plan: Plan, items: Mapping[str, str]) -> str:
    return emit_consolidated(plan, DUCKDB, items)


def _wanted(
    step: Fetch, files: Iterable[DataFile], keys: pa.ChunkedArray | None, store: Store
) -> Wanted:
    """A slice for a job: it reads Parquet files; rows that are in none are read by the driver."""
    parquet, pieces = parquet_and_pieces(files)
    store.require_sound(parquet, pages=True)
    paths = tuple(store.absolute(file.path) for file in parquet)
    small = store.read_files(pieces, key=step.by, keys=keys, schema=arrow_schema(step.schema))
    return Wanted(step.result, paths, step.schema, step.by, keys, small)


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.bytes for file in files)


def _held_bytes() -> int:
    """What may be held without filling the disk that mapped files lie on."""
    return min(HELD_BYTES, disk_usage(gettempdir()).free // 2)


def _row_count(change: Any) -> float:
    return change.num_rows if isinstance(change, pa.Table) else float("inf")
