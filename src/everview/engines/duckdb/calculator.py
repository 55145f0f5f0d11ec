"""Arithmetic on small relations, in process: DuckDB over Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from everview.analysis.sign import Sign, sign
from everview.engines.duckdb.connection import Database, confine, connect, planned
from everview.engines.duckdb.errors import explained
from everview.engines.duckdb.files import Files
from everview.engines.duckdb.statements import any_sql, plan_sql, step_sql, without
from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema
from everview.expr.typing import Typed
from everview.plan.nodes import Empty, Plan
from everview.plan.traverse import has_loops, referred, schema_of
from everview.program.steps import Compute, KeySet
from everview.runtime.arrow_types import arrow_schema, arrow_type, conform
from everview.runtime.recursion.seminaive import Solver
from everview.runtime.retry import CalculationError, twice
from everview.runtime.vector import aggregate
from everview.runtime.vector.batches import (
    VECTOR_MAX_ROWS,
    Batches,
    batch,
    empty_batch,
    select_columns,
)
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.operators import VectorEvaluator
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.scalar import typed_to_duckdb
from everview.sqlgen.sql import DUCKDB, consolidate

T = TypeVar("T")

MANY = 100_000
"""So many rows are taken from DuckDB at once."""
_SPACE = "results"
"""The schema of a calculator holds what it computes, so that one statement drops it all."""


class Calculator:
    """Named relations in memory and the results computed from them."""

    def __init__(
        self,
        memory: str | None = None,
        few: int = VECTOR_MAX_ROWS,
        beside: Calculator | None = None,
    ) -> None:
        self._memory, self._few = memory, few
        self._database: Database = beside._database if beside else connect(memory)
        self._connection = self._database.cursor()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._space = f"{_SPACE}_{next(_NUMBERS)}"
        self._given: dict[str, pa.Table | pa.RecordBatch] = {}
        self._registered: set[str] = set()
        self._counts: dict[str, int] = {}
        self._nothing: dict[str, Schema] = {}
        self._batches = Batches(self._batch)
        self._columns = VectorEvaluator(self._constant)
        self._empty = True
        self._confined: bool = beside._confined if beside else False
        self._folder: str | None = beside._folder if beside else None
        self._connection.execute(f"CREATE SCHEMA {self._space}; USE {self._space}")

    def beside(self) -> Calculator:
        """Another one over the same DuckDB, for another thread; it knows nothing of this one."""
        return Calculator(self._memory, self._few, self)

    def is_beside(self, other: Calculator) -> bool:
        """Whether both use the same DuckDB."""
        return self._database is other._database

    def anew(self) -> Calculator:
        """Another one over a DuckDB of its own, in the place of this one."""
        made = Calculator(self._memory, self._few)
        made.confine(self._folder)
        return made

    def confine(self, folder: str | None = None) -> None:
        """Let DuckDB open files of one folder alone, or none; it refuses to be let out again."""
        confine(self._connection, folder)
        self._confined, self._folder = True, folder

    def give(self, name: str, rows: pa.Table | pa.RecordBatch) -> None:
        """Make Arrow rows known under a name."""
        if name in self._registered:
            self._unregister(name)
        self._nothing.pop(name, None)
        self._batches.pop(name, None)
        self._counts[name] = rows.num_rows
        self._given[name] = rows

    def give_nothing(self, name: str, schema: Schema) -> None:
        """Make a relation without rows known; no statement reads it."""
        self._given.pop(name, None)
        self._nothing[name] = schema
        self._counts[name] = 0
        self._batches.pop(name, None)

    def asked(self, keys: Iterable[KeySet]) -> tuple[KeySet, ...]:
        """Those keys whose relation has rows."""
        return tuple(key for key in keys if self._counts[key.relation])

    def reduced(self, plan: Plan) -> Plan:
        """The same plan without what is known to have no rows."""
        empty = [ref.name for ref in referred(plan) if self._counts.get(ref.name) == 0]
        return without(plan, frozenset(empty)) if empty else plan

    def fetch(self, name: str, files: Files, schema: Schema, by: str | None = None) -> int:
        """Bring the rows of files whose column `by` is among the keys; how many came."""
        return self.keep(name, self.item(files, schema, by))

    def item(self, files: Files, schema: Schema, by: str | None = None) -> str:
        """SQL for rows of files, until all that is known is forgotten."""
        if files.few is not None:
            self.give(files.known, files.few)
        return files.rows(schema, by)

    def keep(self, name: str, sql: str) -> int:
        """Name the rows of a query, whatever had the name before; how many there are."""
        made = self.execute(f"CREATE OR REPLACE TABLE {duckdb_name(name)} AS {sql}")
        self._empty = False
        for known in (self._nothing, self._given, self._batches):
            known.pop(name, None)
        if name in self._registered:
            self._unregister(name)
        self._counts[name] = int(str(made[0][0]))
        return self._counts[name]

    def compute(self, step: Compute) -> None:
        """Evaluate a step over the known relations and name the result.

        Raises `NotAtParity` when the plan uses something not shown equal to Spark's answer.
        """
        plan = Solver(self).solved(step.plan) if has_loops(step.plan) else step.plan
        plan = self.reduced(plan)
        if isinstance(plan, Empty):
            self.give_nothing(step.result, schema_of(step.plan))
        elif (found := self._on_columns(plan, consolidated=step.consolidated)) is not None:
            self.give(step.result, found)
        elif step.consolidated:
            rows = twice(lambda careful: self.rows(step_sql(step, plan, careful)))
            self.give(step.result, conform(rows, schema_of(step.plan)))
        else:
            twice(lambda careful: self.keep(step.result, step_sql(step, plan, careful)))

    def evaluate(self, plan: Plan) -> pa.Table:
        """The rows of `plan`, consolidated; loops in it are run first."""
        if has_loops(plan):
            plan = Solver(self).solved(plan)
        left = self.reduced(plan)
        rows = self._on_columns(left, consolidated=True)
        found = self.rows(plan_sql(left)) if rows is None else pa.Table.from_batches([rows])
        return conform(found, schema_of(plan))

    def hold(self, name: str, plan: Plan) -> None:
        """Make the rows of `plan` known under a name."""
        self.give(name, self.evaluate(plan))

    def any_rows(self, plans: Sequence[Plan]) -> list[bool]:
        """Whether each plan has rows; what is left to DuckDB, in one statement."""
        left = [self.reduced(plan) for plan in plans]
        found = {place: self._has_rows(plan) for place, plan in enumerate(left)}
        asked = [place for place, known in found.items() if known is None]
        if asked:
            tests = ", ".join(f"EXISTS ({any_sql(left[place])})" for place in asked)
            answers = map(bool, self.execute(f"SELECT {tests}")[0])
            found |= zip(asked, answers, strict=True)
        return [bool(known) for known in found.values()]

    def _has_rows(self, plan: Plan) -> bool | None:
        """Whether a plan has rows, None if DuckDB has to tell."""
        if isinstance(plan, Empty):
            return False
        rows = self._on_columns(plan, consolidated=sign(plan) is Sign.ANY)
        return rows.num_rows > 0 if rows is not None else None

    def _on_columns(self, plan: Plan, *, consolidated: bool) -> pa.RecordBatch | None:
        """The rows of a plan over few rows, None if DuckDB has to compute them."""
        if self.rows_of(ref.name for ref in referred(plan)) > self._few:
            return None
        try:
            return self._columns.evaluate(plan, self._batches, consolidated=consolidated)
        except (Unsupported, pa.ArrowException):
            return None

    def _batch(self, name: str) -> pa.RecordBatch:
        """A known relation as one batch; one that DuckDB made is taken over."""
        if name in self._nothing:
            return empty_batch(arrow_schema(self._nothing[name]))
        rows = self._given.get(name)
        if rows is None:
            rows = self.rows(f"SELECT * FROM {duckdb_name(name)}")
        return rows if isinstance(rows, pa.RecordBatch) else batch(rows)

    def _table(self, name: str) -> pa.Table:
        """Rows that were given, as a table."""
        rows = self._given[name]
        return pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows

    def _constant(self, node: Typed) -> pa.Scalar:
        """The value of an expression without columns."""
        assert node.type is not None
        try:
            found = self.rows(f"SELECT {typed_to_duckdb(node)} AS v")
        except (CalculationError, NotAtParity) as problem:
            raise Unsupported(node.name) from problem
        type_ = arrow_type(node.type) or pa.null()
        return found.column("v").cast(type_)[0]

    def calculate(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of `plan` over the relations given, which are forgotten again."""
        try:
            for name, rows in relations.items():
                self.give(name, rows)
            return self.evaluate(plan)
        finally:
            self.forget()

    def result(self, name: str, schema: Schema) -> pa.Table:
        """A known relation as Arrow."""
        if name in self._nothing:
            return arrow_schema(schema).empty_table()
        if name in self._given:
            return conform(self._table(name), schema)
        columns = ", ".join(map(duckdb_name, arrow_schema(schema).names))
        return conform(self.rows(f"SELECT {columns} FROM {duckdb_name(name)}"), schema)

    def parts(self, name: str, schema: Schema, by: Sequence[str], size: int) -> Iterator[pa.Table]:
        """The rows of a table that was kept, in the order of some columns, nulls first.

        Each part has `size` rows, the last one fewer: what they are sorted by goes to disk if need
        be, and only a part is in memory.
        """
        columns = ", ".join(map(duckdb_name, arrow_schema(schema).names))
        order = ", ".join(f"{duckdb_name(column)} NULLS FIRST" for column in by)
        sql = f"SELECT {columns} FROM {duckdb_name(name)}" + (f" ORDER BY {order}" if by else "")
        with explained():
            reader = self._connection.sql(sql).to_arrow_reader(MANY)
            held: list[pa.RecordBatch] = []
            for batch in reader:
                held.append(batch)
                if sum(map(len, held)) >= size:
                    yield conform(pa.Table.from_batches(held), schema)
                    held.clear()
            if held:
                yield conform(pa.Table.from_batches(held), schema)

    def batch(self, name: str, schema: Schema) -> pa.RecordBatch:
        """A known relation as one batch."""
        return select_columns(self._batches[name], arrow_schema(schema))

    def rows_of(self, names: Iterable[str]) -> int:
        """How many rows some relations have together."""
        return sum(self._counts[name] for name in names)

    def values(self, name: str, column: str) -> pa.ChunkedArray:
        """The values of one column, each once at least."""
        if name in self._nothing:
            type_ = arrow_schema(self._nothing[name]).field(column).type
            return pa.chunked_array([], type_)
        if name in self._given:
            found = self._given[name].column(column)
            return pa.chunked_array([found]) if isinstance(found, pa.Array) else found
        return self.rows(
            f"SELECT DISTINCT {duckdb_name(column)} AS k FROM {duckdb_name(name)}"
        ).column("k")

    def columns(self, name: str, columns: Sequence[str]) -> list[pa.Array] | None:
        """Columns of the same rows, None where not all of them are at hand."""
        rows = self._given.get(name)
        if rows is None or not {*columns} <= {*rows.schema.names}:
            return None
        return [rows.column(column) for column in columns]

    def add_up(self, rows: pa.Table, schema: Schema, rings: tuple[str, ...]) -> pa.Table:
        """The sum of weighted rows."""
        if rows.num_rows <= self._few:
            try:
                wanted = select_columns(batch(rows), arrow_schema(schema))
                summed = aggregate.consolidate(wanted, schema, rings)
                return pa.Table.from_batches([summed])
            except (Unsupported, pa.ArrowException):
                pass
        self._connection.register("__rows", rows)
        sql = consolidate('SELECT * FROM "__rows"', schema, rings, DUCKDB)
        try:
            return conform(self.rows(sql), schema)
        finally:
            self._connection.unregister("__rows")

    def repeat(self, rows: pa.Table) -> pa.Table:
        """Consolidated rows, each as often as its weight says, without the weight."""
        plain = rows.drop_columns([WEIGHT])
        if pc.all(pc.equal(rows.column(WEIGHT), 1)).as_py() is not False:
            return plain
        columns = ", ".join(map(duckdb_name, plain.column_names))
        self._connection.register("__rows", rows)
        sql = f'SELECT {columns} FROM (SELECT *, unnest(range({WEIGHT})) FROM "__rows")'
        try:
            return self.rows(sql).cast(plain.schema)
        finally:
            self._connection.unregister("__rows")

    def forget(self) -> None:
        """Drop everything known."""
        for name in tuple(self._registered):
            self._unregister(name)
        self._columns.clear()
        self._given.clear()
        self._batches.clear()
        self._counts.clear()
        self._nothing.clear()
        if not self._empty:
            # One statement, however many results there are.
            space = self._space
            self._connection.execute(
                f"USE main; DROP SCHEMA {space} CASCADE; CREATE SCHEMA {space}; USE {space}"
            )
            self._empty = True

    def _unregister(self, name: str) -> None:
        self._connection.unregister(name)
        self._registered.discard(name)

    def interrupt(self) -> None:
        """End the statement that another thread waits for."""
        self._connection.interrupt()

    def leave(self) -> None:
        """Drop everything known, and what DuckDB holds of it, for good."""
        self._connection.execute(f"USE main; DROP SCHEMA IF EXISTS {self._space} CASCADE")
        self._connection.close()

    def close(self) -> None:
        """Give the memory back: at once, or when those beside this one are done."""
        with suppress(duckdb.ResourceInUseException):
            self._connection.close()
            self._database.close()

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""
        self._define(sql)
        with explained():
            return planned(self._connection, lambda: self._connection.execute(sql).to_arrow_table())

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement that defines or changes a table."""
        self._define(sql)
        with explained():
            return planned(self._connection, lambda: self._connection.execute(sql).fetchall())

    def _define(self, sql: str) -> None:
        """Make known the tables given that a statement reads."""
        if not self._confined:
            self.confine()
        for name in self._given.keys() - self._registered:
            if duckdb_name(name) in sql:
                self._connection.register(name, self._table(name))
                self._registered.add(name)


_NUMBERS = count()
