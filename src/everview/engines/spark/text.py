"""Spark reading SQL itself: the one place where text is evaluated, after every word is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions, audit
from everview.engines.spark.checked_query import over
from everview.engines.spark.door import ask
from everview.engines.spark.errors import ends_early, explained, fails_inside, retry_as_written
from everview.engines.spark.frames import SparkFrames
from everview.engines.spark.queries import (
    listed_names,
    plain_frame,
    plain_sql,
    weighted_frame,
)
from everview.engines.spark.recursion import without_loops
from everview.engines.spark.relations import Relations, ddl, stored_frame
from everview.errors import UserError
from everview.expr.types import WEIGHT, Column, Schema, names
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.plan.nodes import Plan
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import sources
from everview.runtime.protocol import Changes, Difference, Part, Snapshot
from everview.runtime.results import Result
from everview.sqlgen.sql import SPARK, consolidate, emit_consolidated

Show = Callable[[OrderedQuery, Snapshot, Changes], DataFrame]
"""The rows that a query shows, of which Everview has the plan."""


@dataclass(frozen=True, slots=True)
class SparkText:
    """Evaluates checked text; what is not kept may read what `allow` says beside the store."""

    session: Callable[[], SparkSession]
    allow: Allow
    frames: SparkFrames
    show: Show

    def describe(self, sql: str, relations: Mapping[str, Schema], *, once: bool) -> Schema:
        """The columns that Spark's own analyzer gives a query over relations without rows."""
        session = self.session()
        empty = {
            name: session.createDataFrame([], ddl(schema)) for name, schema in relations.items()
        }
        found = over(session, sql, empty, self.allow if once else NOTHING).schema
        return tuple(Column(field.name, field.dataType.simpleString()) for field in found)

    def select(
        self,
        sql: str,
        reads: Sequence[str],
        snapshot: Snapshot,
        pending: Changes,
        own: Callable[[], OrderedQuery | None],
    ) -> Result:
        """A query in which every relation read is an ordinary table of its own name.

        A recursion that Spark does not read, or ends before it is done, is evaluated by us.
        """
        session = self.session()
        kept = {name: list(parts) for name, parts in pending.items()}

        def shown() -> DataFrame | None:
            query = own()
            return None if query is None else self.show(query, snapshot, kept)

        frames = {name: plain_frame(session, name, snapshot, pending) for name in reads}
        try:
            frame = over(session, sql, frames, self.allow)
        except UserError:
            ours = shown()
            if ours is None:
                raise
            return Result(
                lambda: actions.collect(ours),
                lambda: ours,
                partial(actions.batches, ours),
                lambda: tuple(ours.columns),
                lambda: actions.count_rows(ours),
                at_most=partial(actions.collect, ours),
            )

        def at_most(size: float) -> pa.Table:
            try:
                with explained():
                    return actions.collect(frame, size)
            except (PySparkException, Py4JJavaError) as problem:
                return actions.collect(instead(problem), size)

        def stream(size: int) -> Iterator[pa.RecordBatch]:
            batches = actions.batches(frame, size)
            try:
                with explained():
                    first = next(batches, None)
            except (PySparkException, Py4JJavaError) as problem:
                batches = actions.batches(instead(problem), size)
                first = next(batches, None)
            with explained():
                if first is not None:
                    yield first
                yield from batches

        def count() -> int:
            try:
                with explained():
                    return actions.count_rows(frame)
            except (PySparkException, Py4JJavaError) as problem:
                return actions.count_rows(instead(problem))

        def instead(problem: Exception) -> DataFrame:
            """Our own rows where Spark ends a recursion too early; else an error."""
            ours = shown() if ends_early(problem) else None
            if ours is not None:
                return ours
            if not fails_inside(problem):
                raise problem
            raise UserError(
                "E016",
                "Spark's optimizer fails on this query",
                remedy="write it in another way, or create it as a view, which Everview reads",
            ) from problem

        return Result(
            lambda: at_most(inf),
            lambda: frame,
            stream,
            lambda: tuple(frame.columns),
            count,
            at_most=at_most,
        )

    def difference(
        self, name: str, texts: Mapping[str, str], tables: Sequence[str], snapshot: Snapshot
    ) -> Difference | str:
        """A view's query minus the view, or why Spark does not read the query."""
        session = self.session()

        @explained()
        def compute(_: bool) -> Difference | str:
            frames = audit.stored_tables(session, tables, snapshot)
            return audit.text_difference(session, name, texts, frames, snapshot)

        return retry_as_written(session, compute)

    def is_deterministic(
        self, name: str, texts: Mapping[str, str], tables: Sequence[str], snapshot: Snapshot
    ) -> bool:
        """Whether Spark gives one answer, in whatever order the rows of tables arrive."""
        with explained():
            frames = audit.stored_tables(self.session(), tables, snapshot)
            return audit.is_deterministic(self.session(), name, texts, frames, snapshot)

    def plan_difference(self, name: str, plan: Plan, snapshot: Snapshot) -> Difference | None:
        """The rows of a plan, a query minus its view, by Spark; None if its optimizer fails."""
        session = self.session()

        @explained()
        def compute(_: bool) -> Difference | None:
            return audit.plan_difference(session, name, plan, snapshot)

        return retry_as_written(session, compute)

    def recompute(
        self,
        name: str,
        query: tuple[str, Sequence[str]],
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> Part:
        """A query after the pending changes minus the stored rows of `name`."""
        frame = self._recomputed(name, query, views, snapshot, pending)
        return self.frames.pin(frame, name, snapshot)

    def _recomputed(
        self,
        name: str,
        query: tuple[str, Sequence[str]],
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> DataFrame:
        session, (text, reads) = self.session(), query
        schema = snapshot.stored[name].schema
        under = {source.name for plan in views.values() for source in sources(plan)}
        with Relations(session) as relations:
            for each in sorted({*reads, *under} - {*views}):
                relations.give(each, weighted_frame(session, each, snapshot, pending))
                if each in under:
                    relations.consolidate(each, snapshot.stored[each])
            for view, plan in views.items():
                with without_loops(plan, session, relations) as left:
                    rows = emit_consolidated(left, SPARK, relations.names)
                    relations.give(view, ask(session, rows))
            plain = {n: plain_sql(relations.names[n], snapshot.stored[n].schema) for n in reads}
            frames = {each: ask(session, sql) for each, sql in plain.items()}
            relations.give("computed", over(session, text, frames).toDF(*names(schema)))
            relations.give("stored", stored_frame(session, name, snapshot))
            both = (
                f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM {relations.names['computed']} "
                f"UNION ALL SELECT {listed_names(names(schema))}, -{WEIGHT} "
                f"FROM {relations.names['stored']}"
            )
            return ask(session, consolidate(both, schema, (), SPARK))
