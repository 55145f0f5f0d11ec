"""Loops on Spark: small iterations are collected, large ones stay on executors.

What an iteration adds is pinned: rows in memory here, or files that executors wrote. So no lineage
grows. An iteration is one query, and one more when it turns from large to small or back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.pins import Checkpoints, Pinned, PinnedFiles, Pins, scratch_folder
from everview.engines.spark.relations import Relations, as_frame
from everview.expr.quoting import spark_name
from everview.expr.types import ITERATION, WEIGHT, Column, Schema, names
from everview.plan.nodes import Plan
from everview.plan.traverse import has_loops, referred
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.recursion.seminaive import LoopPlans, RelationPlans, Solver
from everview.runtime.vector.batches import filter_rows
from everview.runtime.vector.chunks import RowChunks
from everview.runtime.vector.row_ids import RowIds
from everview.sqlgen.sql import SPARK, emit_consolidated
from everview.store.store import Store

ITERATION_ROWS = 500_000
"""An iteration that adds more rows stays on executors."""
REACHED_ROWS = 2_000_000
"""So many rows that were reached may be in the driver; then they are written for executors."""


@contextmanager
def without_loops(
    plan: Plan,
    session: SparkSession,
    relations: Relations,
    within: tuple[Store, int] | None = None,
) -> Iterator[Plan]:
    """The same plan over what its loops reach, for the time of the block.

    Large iterations are files of a store, for an epoch that is about to be written. Without one
    they are checkpointed in the memory of executors, which are lost with an executor.
    """
    if not has_loops(plan):
        yield plan
        return
    with ExitStack() as held:
        pins: Pins = Checkpoints()
        if within is not None:
            store, epoch = within
            pins = PinnedFiles(session, store, held.enter_context(scratch_folder(store, epoch)))
        yield Solver(_Iterations(session, relations, held, pins)).solved(plan)


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Plans without loops by Spark, over relations that it knows."""

    session: SparkSession
    relations: Relations
    held: ExitStack
    pins: Pins

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the value of a plan known under a name; it stays on Spark."""
        frame = ask(self.session, emit_consolidated(plan, SPARK, self.relations.names))
        self.relations.replace(name, self.held.enter_context(actions.kept(frame)))

    def reach(self, loop: LoopPlans, names: Mapping[str, str]) -> None:
        """Run a loop, and make what its relations reach known under names."""
        run = _Run(loop, self)
        run.run()
        for name, known in names.items():
            self.relations.replace(known, run.reached(name))


@dataclass(slots=True)
class _Relation:
    """One relation of a running loop. All rows have the iteration at which they came.

    `now` is what the last iteration added; before it, rows are on executors or in the `tail` here.
    While none are on executors, `ids` has all rows of a set, so that no row comes twice.
    """

    plans: RelationPlans
    tail: RowChunks
    pinned: list[Pinned] = field(default_factory=list)
    now: pa.Table | Pinned | None = None
    ids: RowIds = field(default_factory=RowIds)

    @property
    def lifted(self) -> Schema:
        """The columns, and the iteration."""
        return (*self.plans.schema, Column(ITERATION, "int"))

    @property
    def is_here(self) -> bool:
        """Whether all rows that were reached are in this process."""
        return not self.pinned and not isinstance(self.now, Pinned)

    @property
    def added(self) -> int:
        """How many rows the last iteration added."""
        if isinstance(self.now, Pinned):
            return self.now.rows
        return self.now.num_rows if self.now is not None else 0

    def advance(self, added: pa.Table | Pinned) -> None:
        """Take in what an iteration adds."""
        if isinstance(self.now, Pinned):
            self.pinned.append(self.now)
        elif self.now is not None:
            for rows in self.now.to_batches():
                self.tail.append(rows)
        self.now = added


class _Run:
    """One run of a loop."""

    def __init__(self, loop: LoopPlans, spark: _Iterations) -> None:
        self._loop, self._spark, self._pins = loop, spark, spark.pins
        self._relations = {each.name: _relation(each) for each in loop.relations}

    def run(self) -> None:
        """Iterate until nothing is added."""
        iteration = 0
        while True:
            iteration += 1
            if iteration > 1:
                self._give_reached()
            added = {name: self._added(each, iteration) for name, each in self._relations.items()}
            if not any(_rows(each) for each in added.values()):
                return
            self._loop.must_not_go_on(iteration)
            for name, each in self._relations.items():
                each.advance(added[name])
                self._flush(each)

    def reached(self, name: str) -> DataFrame:
        """All rows of a relation; of a traced loop with the iterations at which they come."""
        each = self._relations[name]
        frame = self._union(each, [*each.pinned], each.tail, each.now)
        return frame if self._loop.traced else _without_iterations(frame, each.plans.schema)

    def _give_reached(self) -> None:
        """Let statements read what was reached, as far as they do."""
        plans = [each.plans for each in self._relations.values()]
        read = {ref.name for each in plans for ref in referred(each.later)}
        for each in self._relations.values():
            schema, nothing = each.plans.schema, RowChunks(arrow_schema(each.lifted))
            if each.plans.now in read or not each.is_here:
                now = self._union(each, [], nothing, each.now)
                self._give(each.plans.now, _without_iterations(now, schema))
            if each.plans.before in read or not each.is_here:
                before = self._union(each, each.pinned, each.tail, None)
                self._give(each.plans.before, _without_iterations(before, schema))

    def _added(self, each: _Relation, iteration: int) -> pa.Table | Pinned:
        """What an iteration adds to a relation: collected if it is small, else on executors."""
        plan = each.plans.later if iteration > 1 else each.plans.first

        def at_iteration(frame: DataFrame) -> DataFrame:
            columns = [spark_name(name) for name in names(each.plans.schema)]
            when = functions.lit(iteration).cast("int").alias(ITERATION)
            return frame.select(*columns, when, WEIGHT)

        if each.is_here:
            candidates = at_iteration(self._ask(plan))
            rows = actions.collect_some(candidates, ITERATION_ROWS + 1)
            if rows.num_rows <= ITERATION_ROWS:
                return _fresh(each, conform(rows, each.lifted))
        fresh = at_iteration(self._fresh_frame(each, plan) if iteration > 1 else self._ask(plan))
        if each.added <= ITERATION_ROWS and not each.is_here:
            rows = actions.collect_some(fresh, ITERATION_ROWS + 1)
            if rows.num_rows <= ITERATION_ROWS:
                return conform(rows, each.lifted)
        pinned = self._pins.pin(fresh, each.lifted)
        if pinned.rows > ITERATION_ROWS:
            return pinned
        if not pinned.rows:
            return arrow_schema(each.lifted).empty_table()
        rows = conform(actions.collect(self._pins.frame([pinned], each.lifted)), each.lifted)
        return _fresh(each, rows) if each.is_here else rows

    def _fresh_frame(self, each: _Relation, plan: Plan) -> DataFrame:
        """The rows of a plan that were not reached before."""
        if not each.plans.is_set:
            return self._ask(plan)
        if each.is_here:
            now = self._union(each, [], RowChunks(arrow_schema(each.lifted)), each.now)
            before = self._union(each, [], each.tail, None)
            for name, frame in ((each.plans.now, now), (each.plans.before, before)):
                self._give(name, _without_iterations(frame, each.plans.schema))
        known = self._spark.relations.names
        columns = [spark_name(name) for name in names(each.plans.schema)]
        same = " AND ".join(f"q.{name} <=> r.{name}" for name in columns) or "TRUE"
        listed = ", ".join((*columns, WEIGHT))
        reached = " UNION ALL ".join(
            f"SELECT {listed} FROM {known[name]}" for name in (each.plans.before, each.plans.now)
        )
        text = emit_consolidated(plan, SPARK, known)
        sql = f"SELECT q.* FROM ({text}) AS q LEFT ANTI JOIN ({reached}) AS r ON {same}"
        return ask(self._spark.session, sql)

    def _flush(self, each: _Relation) -> None:
        """Write what was reached for executors, where it is too much for this process."""
        if len(each.tail) > REACHED_ROWS:
            rows = as_frame(self._spark.session, each.tail.table())
            each.pinned.append(self._pins.pin(rows, each.lifted))
            each.tail, each.ids = RowChunks(arrow_schema(each.lifted)), RowIds()

    def _union(
        self,
        each: _Relation,
        pinned: list[Pinned],
        tail: RowChunks,
        now: pa.Table | Pinned | None,
    ) -> DataFrame:
        """Rows of a relation, with their iterations, wherever they are."""
        remote = [*pinned, now] if isinstance(now, Pinned) else pinned
        here = [tail.table()] if len(tail) else []
        if isinstance(now, pa.Table) and now.num_rows:
            here.append(now)
        frames = [self._pins.frame(remote, each.lifted)] if remote else []
        if here or not remote:
            rows = pa.concat_tables([arrow_schema(each.lifted).empty_table(), *here])
            frames.append(as_frame(self._spark.session, rows))
        return reduce(DataFrame.unionByName, frames)

    def _give(self, name: str, frame: DataFrame) -> None:
        self._spark.relations.replace(name, frame)

    def _ask(self, plan: Plan) -> DataFrame:
        spark = self._spark
        return ask(spark.session, emit_consolidated(plan, SPARK, spark.relations.names))


def _relation(plans: RelationPlans) -> _Relation:
    return _Relation(plans, RowChunks(arrow_schema((*plans.schema, Column(ITERATION, "int")))))


def _fresh(each: _Relation, rows: pa.Table) -> pa.Table:
    """The rows that were not reached before; they count as reached from now on."""
    if not each.plans.is_set or not rows.num_rows:
        return rows
    whole = rows.combine_chunks().to_batches()
    kept = []
    for part in whole:
        known = len(each.ids)
        columns = part.columns[: len(each.plans.schema)]
        kept.append(filter_rows(part, each.ids.of(columns, part.num_rows) >= known))
    return pa.Table.from_batches(kept, rows.schema)


def _rows(added: pa.Table | Pinned) -> int:
    return added.rows if isinstance(added, Pinned) else added.num_rows


def _without_iterations(frame: DataFrame, schema: Schema) -> DataFrame:
    return frame.select(*map(spark_name, names(schema)), WEIGHT)
