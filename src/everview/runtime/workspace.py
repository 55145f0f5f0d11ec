"""Named relations in memory, and which evaluator computes a plan over them.

Four evaluators give the same answer at different cost. Python generated from a plan computes it
over a handful of rows; vector operators on Arrow have no planning cost and compute plans over few
rows; SQL in this process computes plans over many; Spark, where the engine has it, computes what
SQL is not shown to compute as Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from everview.analysis.sign import Sign, sign
from everview.expr.type_inference import Typed
from everview.expr.types import Schema
from everview.plan.nodes import Change, Empty, Plan, Ref, Source
from everview.plan.traverse import (
    CACHE_SIZE,
    TREE_MAX_NODES,
    has_loops,
    referred,
    schema_of,
    tree_size,
    walk,
)
from everview.program.steps import Compute, KeySet, change_name
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.generated.evaluator import GeneratedEvaluator
from everview.runtime.recursion.iterations import reach_in_memory
from everview.runtime.recursion.seminaive import LoopPlans, Solver
from everview.runtime.retry import CalculationError, retry_consolidated
from everview.runtime.vector.batches import (
    VECTOR_MAX_ROWS,
    Batches,
    batch,
    empty_batch,
    select_columns,
)
from everview.runtime.vector.operators import VectorEvaluator, unless_unknown
from everview.sqlgen.parity.errors import NotAtParity

Rows: TypeAlias = pa.Table | pa.RecordBatch

GENERATED_MAX_ROWS = 200
"""Over more rows than this, vector operators take less time than a loop in Python."""
GENERATED_MAX_NODES = 100
"""A plan with more operators, written out as a tree, makes too much code."""


class Evaluator(Enum):
    """Who computes a plan; `NONE` where it is known to have no rows."""

    NONE = auto()
    GENERATED = auto()
    VECTOR = auto()
    SQL = auto()
    SPARK = auto()


def choose_evaluator(plan: Plan, rows: int, vector_max_rows: int = VECTOR_MAX_ROWS) -> Evaluator:
    """The cheapest evaluator for a plan over so many rows.

    It is a preference: whoever does not know the plan, or meets a value that it does not compute
    exactly, leaves it to the next: generated code to vector operators, those to SQL, and SQL to
    Spark what is not shown equal on both.
    """
    if isinstance(plan, Empty):
        return Evaluator.NONE
    if rows <= min(GENERATED_MAX_ROWS, vector_max_rows) and tree_size(plan) <= GENERATED_MAX_NODES:
        return Evaluator.GENERATED
    few = rows <= vector_max_rows and tree_size(plan) <= TREE_MAX_NODES
    return Evaluator.VECTOR if few else Evaluator.SQL


class SqlEvaluator(Protocol):
    """A SQL database in this process that reads Arrow relations in place, by name.

    Its answers are Spark's: a plan that is not shown to be computed alike raises `NotAtParity`, and
    a value that cannot be computed raises `CalculationError`.
    """

    def plan_sql(self, plan: Plan) -> str:
        """SQL for the consolidated rows of a plan."""

    def step_sql(self, step: Compute, plan: Plan, consolidated: bool) -> str:
        """SQL for a step with `plan` in place of its own, over consolidated inputs if wanted."""

    def without_empty(self, plan: Plan, empty: frozenset[str]) -> Plan:
        """The plan when relations have no rows: same columns, and still known to SQL."""

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""

    def batches(self, sql: str, size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query in batches of at most `size`, as they are computed."""

    def create_table(self, name: str, sql: str) -> int:
        """Store the rows of a query as a table, whatever had the name; how many there are."""

    def any_rows(self, plans: Sequence[Plan]) -> list[bool]:
        """Whether each plan has rows, in one statement."""

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table that was created: all of its columns, or some."""

    def distinct_values(self, name: str, column: str) -> pa.ChunkedArray:
        """The values of one column of a table that was created, each once."""

    def sorted_chunks(
        self, name: str, schema: Schema, by: Sequence[str], size: int
    ) -> Iterator[pa.Table]:
        """A created table in the order of some columns, nulls first, in chunks of `size` rows.

        Only one chunk is in memory at a time: sorting may use the disk.
        """

    def constant(self, node: Typed) -> pa.Scalar:
        """The value of an expression without columns; `Unsupported` if SQL has none."""

    def consolidate(self, rows: pa.Table, schema: Schema, rings: tuple[str, ...]) -> pa.Table:
        """Weighted rows with the weights of equal rows added, and `rings` with them."""

    def register(self, name: str, rows: pa.Table) -> None:
        """Let statements read Arrow rows under a name."""

    def unregister(self, name: str) -> None:
        """Undo `register`."""

    def clear(self) -> None:
        """Drop the tables that were created."""

    def sibling(self) -> SqlEvaluator:
        """Another connection to the same database for another thread, with no relations."""

    def shares_database(self, other: SqlEvaluator) -> bool:
        """Whether both are connections to one database."""

    def fresh(self) -> SqlEvaluator:
        """A connection to a new database, confined to the same folder."""

    def confine(self, folder: str | None = None) -> None:
        """Let statements open files of one folder alone, or none, for good."""

    def interrupt(self) -> None:
        """End the statement that another thread waits for."""

    def leave(self) -> None:
        """Drop the tables and the connection; the database stays for its siblings."""

    def close(self) -> None:
        """Release the database, now or when its siblings are done."""


SparkEvaluator: TypeAlias = Callable[[Plan, "Workspace"], pa.Table]
"""The consolidated rows of a plan over the relations of a workspace, computed by Spark."""


class Workspace:
    """Relations by name, registered or computed, until they are cleared.

    Arrow rows become known to SQL when a statement first reads them; a table that SQL has created
    becomes an Arrow batch when vector operators first read it.
    """

    def __init__(
        self,
        sql: SqlEvaluator,
        vector_max_rows: int = VECTOR_MAX_ROWS,
        spark: SparkEvaluator | None = None,
    ) -> None:
        self.sql = sql
        self._vector_max_rows = vector_max_rows
        self._spark = spark
        self._arrow: dict[str, Rows] = {}
        self._registered: set[str] = set()
        self._counts: dict[str, int] = {}
        self._empty: dict[str, Schema] = {}
        self._batches = Batches(self._batch)
        self._vector = VectorEvaluator(sql.constant)
        self._generated = GeneratedEvaluator(self._vector.fold, self._batches)
        self._values = self._generated.values

    # Another workspace

    def sibling(self) -> Workspace:
        """Another one over the same database, for another thread, with no relations."""
        return Workspace(self.sql.sibling(), self._vector_max_rows, self._spark)

    def shares_database(self, other: Workspace) -> bool:
        """Whether both compute in the same database."""
        return self.sql.shares_database(other.sql)

    def fresh(self) -> Workspace:
        """Another one over a database of its own, in the place of this one."""
        return Workspace(self.sql.fresh(), self._vector_max_rows, self._spark)

    # Relations by name

    def register(self, name: str, rows: Rows) -> None:
        """Make Arrow rows known under a name."""
        self._forget(name)
        self._counts[name] = rows.num_rows
        self._arrow[name] = rows

    def _register_values(self, name: str, schema: Schema, rows: list[tuple[Any, ...]]) -> None:
        """Make rows of generated code known under a name; Arrow is made of them if it is read."""
        if not rows:
            self.register_empty(name, schema)
            return
        self._forget(name)
        self._counts[name] = len(rows)
        self._values.add(name, schema, rows)

    def register_empty(self, name: str, schema: Schema) -> None:
        """Make a relation without rows known; no statement reads it."""
        self._forget(name)
        self._empty[name] = schema
        self._counts[name] = 0

    def create_table(self, name: str, sql: str, reads: Iterable[str] | None = None) -> int:
        """Name the rows of a SQL query, whatever had the name; how many there are.

        `reads` are the registered relations that the query reads; all of them if None.
        """
        self._expose(reads)
        count = self.sql.create_table(name, sql)
        self._forget(name)
        self._counts[name] = count
        return count

    def _forget(self, name: str) -> None:
        """Drop what had a name."""
        if name in self._registered:
            self._unregister(name)
        for known in (self._empty, self._arrow, self._batches):
            known.pop(name, None)
        self._values.forget(name)

    def nonempty(self, keys: Iterable[KeySet]) -> tuple[KeySet, ...]:
        """Those keys whose relation has rows."""
        return tuple(key for key in keys if self._counts[key.relation])

    def count_rows(self, names: Iterable[str]) -> int:
        """How many rows some relations have together."""
        return sum(self._counts[name] for name in names)

    def table(self, name: str, schema: Schema) -> pa.Table:
        """A relation as an Arrow table."""
        if name in self._empty:
            return arrow_schema(schema).empty_table()
        rows = self._rows(name)
        if rows is not None:
            return conform(_as_table(rows), schema)
        return conform(self.sql.table(name, arrow_schema(schema).names), schema)

    def batch(self, name: str, schema: Schema | None = None) -> pa.RecordBatch:
        """A relation as one batch, with the columns of a schema where one is given."""
        rows = self._batches[name]
        return rows if schema is None else select_columns(rows, arrow_schema(schema))

    def column_values(self, name: str, column: str) -> pa.ChunkedArray:
        """The values of one column, each once at least."""
        if name in self._empty:
            type_ = arrow_schema(self._empty[name]).field(column).type
            return pa.chunked_array([], type_)
        rows = self._rows(name)
        if rows is not None:
            values = rows.column(column)
            return pa.chunked_array([values]) if isinstance(values, pa.Array) else values
        return self.sql.distinct_values(name, column)

    def arrow_columns(self, name: str, columns: Sequence[str]) -> list[pa.Array] | None:
        """VectorEvaluator of the same rows, None where not all of them are in Arrow memory."""
        rows = self._rows(name)
        if rows is None or not {*columns} <= {*rows.schema.names}:
            return None
        return [rows.column(column) for column in columns]

    def clear(self) -> None:
        """Drop all relations."""
        for name in tuple(self._registered):
            self._unregister(name)
        self._vector.clear()
        self._arrow.clear()
        self._batches.clear()
        self._values.clear()
        self._counts.clear()
        self._empty.clear()
        self.sql.clear()

    # Plans over them

    def without_empty(self, plan: Plan) -> Plan:
        """The same plan without what is known to have no rows."""
        empty = [ref.name for ref in referred(plan) if self._counts.get(ref.name) == 0]
        return self.sql.without_empty(plan, frozenset(empty)) if empty else plan

    def compute(self, step: Compute) -> Evaluator:
        """Name the result of a step; who computed it.

        Without Spark, `NotAtParity` or `CalculationError` leaves what SQL does not compute.
        """
        try:
            return self._compute_in_process(step)
        except (NotAtParity, CalculationError):
            if self._spark is None:
                raise
        plan = self.without_empty(step.plan)
        self.register(step.result, self._spark(plan, self))
        return Evaluator.SPARK

    def _compute_in_process(self, step: Compute) -> Evaluator:
        plan = self.without_empty(self._without_loops(step.plan))
        if isinstance(plan, Empty):
            self.register_empty(step.result, schema_of(step.plan))
            return Evaluator.NONE
        made = self._by_generated(plan, consolidated=step.consolidated)
        if made is not None:
            self._register_values(step.result, schema_of(plan), made)
            return Evaluator.GENERATED
        rows = self._by_vector(plan, consolidated=step.consolidated)
        if rows is not None:
            self.register(step.result, rows)
            return Evaluator.VECTOR
        self._expose(_relations(plan))

        def evaluate(consolidated: bool) -> pa.Table:
            return self.sql.rows(self.sql.step_sql(step, plan, consolidated))

        def create(consolidated: bool) -> int:
            sql = self.sql.step_sql(step, plan, consolidated)
            return self.create_table(step.result, sql, ())

        if step.consolidated:
            self.register(step.result, conform(retry_consolidated(evaluate), schema_of(step.plan)))
        else:
            retry_consolidated(create)
        return Evaluator.SQL

    def evaluate(self, plan: Plan) -> pa.Table:
        """The consolidated rows of a plan; loops in it are run first."""
        plan = self._without_loops(plan)
        left = self.without_empty(plan)
        rows: Rows | None = self._by_vector(left, consolidated=True)
        if rows is None:
            rows = self.rows(self.sql.plan_sql(left), _relations(left))
        return conform(_as_table(rows), schema_of(plan))

    def evaluate_over(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The consolidated rows of a plan over relations that are cleared again."""
        try:
            for name, rows in relations.items():
                self.register(name, rows)
            return self.evaluate(plan)
        finally:
            self.clear()

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the consolidated rows of a plan known under a name."""
        self.register(name, self.evaluate(plan))

    def reach(self, loop: LoopPlans, names: Mapping[str, str]) -> None:
        """Run a loop, and make what its relations reach known under names."""
        reach_in_memory(loop, names, self)

    def vector_rows(
        self, plan: Plan, relations: Mapping[str, pa.RecordBatch], *, consolidated: bool
    ) -> pa.RecordBatch | None:
        """The rows of a plan over given batches; None where vector operators do not know them."""
        return unless_unknown(
            lambda: self._vector.evaluate(plan, relations, consolidated=consolidated)
        )

    def any_rows(self, plans: Sequence[Plan]) -> list[bool]:
        """Whether each plan has rows; SQL tells of all that are left to it in one statement."""
        reduced = [self.without_empty(plan) for plan in plans]
        known = {place: self._has_rows(plan) for place, plan in enumerate(reduced)}
        left = [place for place, has in known.items() if has is None]
        if left:
            self._expose(name for place in left for name in _relations(reduced[place]))
            answers = self.sql.any_rows([reduced[place] for place in left])
            known |= zip(left, answers, strict=True)
        return [bool(has) for has in known.values()]

    def _has_rows(self, plan: Plan) -> bool | None:
        """Whether a plan has rows, None if SQL has to tell."""
        if isinstance(plan, Empty):
            return False
        rows = self._by_vector(plan, consolidated=sign(plan) is Sign.ANY)
        return rows.num_rows > 0 if rows is not None else None

    def consolidate(self, rows: pa.Table, schema: Schema, rings: tuple[str, ...]) -> pa.Table:
        """Weighted rows with the weights of equal rows added, and `rings` with them."""
        if rows.num_rows <= self._vector_max_rows:
            result = self._vector.consolidate(batch(rows), schema, rings)
            if result is not None:
                return pa.Table.from_batches([result])
        return self.sql.consolidate(rows, schema, rings)

    def rows(self, sql: str, reads: Iterable[str] | None = None) -> pa.Table:
        """The rows of a SQL query over relations; it may read all of them if `reads` is None."""
        self._expose(reads)
        return self.sql.rows(sql)

    def batches(self, sql: str, size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a SQL query over relations in batches of at most `size`, one at a time."""
        self._expose(None)
        return self.sql.batches(sql, size)

    def _by_generated(self, plan: Plan, *, consolidated: bool) -> list[tuple[Any, ...]] | None:
        """The rows of a plan by generated code, None if another evaluator has to compute them."""
        if self._choose(plan) is not Evaluator.GENERATED:
            return None
        return self._generated.evaluate(plan, consolidated=consolidated)

    def _choose(self, plan: Plan) -> Evaluator:
        rows = self.count_rows(ref.name for ref in referred(plan))
        return choose_evaluator(plan, rows, self._vector_max_rows)

    def _by_vector(self, plan: Plan, *, consolidated: bool) -> pa.RecordBatch | None:
        """The rows of a plan by vector operators, None if SQL has to compute them."""
        if self._choose(plan) is Evaluator.SQL:
            return None
        return self.vector_rows(plan, self._batches, consolidated=consolidated)

    def _without_loops(self, plan: Plan) -> Plan:
        return Solver(self).solved(plan) if has_loops(plan) else plan

    def _batch(self, name: str) -> pa.RecordBatch:
        """A relation as one batch; a table that SQL created is copied."""
        if name in self._empty:
            return empty_batch(arrow_schema(self._empty[name]))
        rows = self._rows(name)
        if rows is None:
            rows = self.sql.table(name)
        return rows if isinstance(rows, pa.RecordBatch) else batch(rows)

    def _expose(self, reads: Iterable[str] | None) -> None:
        """Register with SQL the Arrow relations that a statement reads."""
        names = {**self._arrow, **self._values.made} if reads is None else reads
        for name in names:
            rows = None if name in self._registered else self._rows(name)
            if rows is not None:
                self.sql.register(name, _as_table(rows))
                self._registered.add(name)

    def _rows(self, name: str) -> Rows | None:
        """A relation in Arrow memory, None if SQL has it or it is known to be empty."""
        if name in self._values.made and name not in self._arrow:
            self._arrow[name] = self._values.batch(name)
        return self._arrow.get(name)

    def _unregister(self, name: str) -> None:
        self.sql.unregister(name)
        self._registered.discard(name)


@lru_cache(maxsize=CACHE_SIZE)
def _relations(plan: Plan) -> tuple[str, ...]:
    """The names under which a plan reads relations, each once."""
    found: dict[str, None] = {}
    for node in walk(plan):
        match node:
            case Ref(name) | Source(name):
                found[name] = None
            case Change(name):
                found[change_name(name)] = None
    return tuple(found)


def _as_table(rows: Rows) -> pa.Table:
    return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
