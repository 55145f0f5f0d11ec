"""Plans as SQL on one connection to DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import cast

import duckdb
import pyarrow as pa

from everview.analysis.sign import Sign, sign
from everview.engines.duckdb.connection import Database, confine, connect, planned
from everview.engines.duckdb.errors import explained
from everview.expr.quoting import duckdb_name
from everview.expr.type_inference import Typed
from everview.expr.types import Schema
from everview.plan.nodes import Empty, Plan, Ref
from everview.plan.traverse import schema_of, transform
from everview.program.steps import Compute
from everview.rewrite.normalize import normalize
from everview.runtime.arrow_types import arrow_schema, arrow_type, conform
from everview.runtime.retry import CalculationError
from everview.runtime.vector.batches import VECTOR_MAX_ROWS
from everview.runtime.vector.errors import Unsupported
from everview.runtime.workspace import SparkEvaluator, SqlEvaluator, Workspace
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.scalar import typed_to_duckdb
from everview.sqlgen.sql import DUCKDB, consolidate, emit, emit_consolidated, emit_step

READ_ROWS = 100_000
"""How many rows are taken from DuckDB at once."""
STATEMENTS = 4096
"""How many plans keep their SQL: programs ask for the same ones again."""
_INPUT = "__rows"
_NUMBERS = count()


def duckdb_workspace(
    memory: int | None = None,
    vector_max_rows: int | None = None,
    spark: SparkEvaluator | None = None,
) -> Workspace:
    """A workspace over a DuckDB of its own."""
    few = VECTOR_MAX_ROWS if vector_max_rows is None else vector_max_rows
    return Workspace(DuckDBEvaluator(memory), few, spark)


class DuckDBEvaluator:
    """One connection to a DuckDB in memory.

    Its tables are in a schema of their own, so that one statement drops them all.
    """

    def __init__(self, memory: int | None = None, beside: DuckDBEvaluator | None = None) -> None:
        self._memory = memory
        self._database: Database = beside._database if beside else connect(memory)
        self._connection = self._database.cursor()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._confined: bool = beside._confined if beside else False
        self._folder: str | None = beside._folder if beside else None
        self._has_tables = False
        self._space = f"results_{next(_NUMBERS)}"
        self._connection.execute(f"CREATE SCHEMA {self._space}; USE {self._space}")

    # Statements

    def plan_sql(self, plan: Plan) -> str:
        """SQL for the consolidated rows of a plan."""
        return _plan_sql(plan)

    def step_sql(self, step: Compute, plan: Plan, consolidated: bool) -> str:
        """SQL for a step with `plan` in place of its own, over consolidated inputs if wanted."""
        return _step_sql(step, plan, consolidated)

    def without_empty(self, plan: Plan, empty: frozenset[str]) -> Plan:
        """The plan when relations have no rows: same columns, and still known to DuckDB."""
        return _without_empty(plan, empty)

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query."""
        self._must_be_confined()
        with explained():
            return planned(self._connection, lambda: self._connection.execute(sql).to_arrow_table())

    def batches(self, sql: str, size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query in batches of at most `size`, as they are computed."""
        self._must_be_confined()
        with explained():
            reader = planned(
                self._connection, lambda: self._connection.sql(sql).to_arrow_reader(size)
            )
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement that defines or changes a table, or has few rows."""
        self._must_be_confined()
        with explained():
            return planned(self._connection, lambda: self._connection.execute(sql).fetchall())

    def create_table(self, name: str, sql: str) -> int:
        """Store the rows of a query as a table, whatever had the name; how many there are."""
        [[count]] = self.execute(f"CREATE OR REPLACE TABLE {duckdb_name(name)} AS {sql}")
        self._has_tables = True
        return int(str(count))

    def any_rows(self, plans: Sequence[Plan]) -> list[bool]:
        """Whether each plan has rows, in one statement."""
        tests = ", ".join(f"EXISTS ({_any_sql(plan)})" for plan in plans)
        return list(map(bool, self.execute(f"SELECT {tests}")[0]))

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table that was created: all of its columns, or some."""
        listed = "*" if columns is None else ", ".join(map(duckdb_name, columns))
        return self.rows(f"SELECT {listed} FROM {duckdb_name(name)}")

    def distinct_values(self, name: str, column: str) -> pa.ChunkedArray:
        """The values of one column of a table that was created, each once."""
        sql = f"SELECT DISTINCT {duckdb_name(column)} AS k FROM {duckdb_name(name)}"
        return self.rows(sql).column("k")

    def sorted_chunks(
        self, name: str, schema: Schema, by: Sequence[str], size: int
    ) -> Iterator[pa.Table]:
        """A created table in the order of some columns, nulls first, in chunks of `size` rows.

        Only one chunk is in memory at a time: sorting may use the disk.
        """
        columns = ", ".join(map(duckdb_name, arrow_schema(schema).names))
        order = ", ".join(f"{duckdb_name(column)} NULLS FIRST" for column in by)
        sql = f"SELECT {columns} FROM {duckdb_name(name)}" + (f" ORDER BY {order}" if by else "")
        with explained():
            reader = self._connection.sql(sql).to_arrow_reader(READ_ROWS)
            held: list[pa.RecordBatch] = []
            for batch in reader:
                held.append(batch)
                if sum(map(len, held)) >= size:
                    yield conform(pa.Table.from_batches(held), schema)
                    held.clear()
            if held:
                yield conform(pa.Table.from_batches(held), schema)

    def constant(self, node: Typed) -> pa.Scalar:
        """The value of an expression without columns; `Unsupported` if DuckDB has none."""
        assert node.type is not None
        try:
            value = self.rows(f"SELECT {typed_to_duckdb(node)} AS v").column("v")
        except (CalculationError, NotAtParity) as problem:
            raise Unsupported(node.name) from problem
        return value.cast(arrow_type(node.type) or pa.null())[0]

    def consolidate(self, rows: pa.Table, schema: Schema, rings: tuple[str, ...]) -> pa.Table:
        """Weighted rows with the weights of equal rows added, and `rings` with them."""
        self._connection.register(_INPUT, rows)
        try:
            sql = consolidate(f"SELECT * FROM {duckdb_name(_INPUT)}", schema, rings, DUCKDB)
            return conform(self.rows(sql), schema)
        finally:
            self._connection.unregister(_INPUT)

    # Relations

    def register(self, name: str, rows: pa.Table) -> None:
        """Let statements read Arrow rows under a name."""
        self._connection.register(name, rows)

    def unregister(self, name: str) -> None:
        """Undo `register`."""
        self._connection.unregister(name)

    def clear(self) -> None:
        """Drop the tables that were created."""
        if self._has_tables:
            space = self._space
            self._connection.execute(
                f"USE main; DROP SCHEMA {space} CASCADE; CREATE SCHEMA {space}; USE {space}"
            )
            self._has_tables = False

    # The connection and its database

    def sibling(self) -> DuckDBEvaluator:
        """Another connection to the same DuckDB for another thread, with no relations."""
        return DuckDBEvaluator(self._memory, self)

    def shares_database(self, other: SqlEvaluator) -> bool:
        """Whether both are connections to one DuckDB."""
        return self._database is cast(DuckDBEvaluator, other)._database

    def fresh(self) -> DuckDBEvaluator:
        """A connection to a new DuckDB, confined to the same folder."""
        evaluator = DuckDBEvaluator(self._memory)
        evaluator.confine(self._folder)
        return evaluator

    def confine(self, folder: str | None = None) -> None:
        """Let DuckDB open files of one folder alone, or none; it refuses to be let out again."""
        confine(self._connection, folder)
        self._confined, self._folder = True, folder

    def _must_be_confined(self) -> None:
        if not self._confined:
            self.confine()

    def interrupt(self) -> None:
        """End the statement that another thread waits for."""
        self._connection.interrupt()

    def leave(self) -> None:
        """Drop the tables and the connection; the DuckDB stays for its siblings."""
        self._connection.execute(f"USE main; DROP SCHEMA IF EXISTS {self._space} CASCADE")
        self._connection.close()

    def close(self) -> None:
        """Give the memory back, now or when the siblings are done."""
        with suppress(duckdb.ResourceInUseException):
            self._connection.close()
            self._database.close()


@lru_cache(maxsize=STATEMENTS)
def _without_empty(plan: Plan, empty: frozenset[str]) -> Plan:
    """The plan when relations have no rows; what is left of it has the same columns."""

    def emptied(node: Plan) -> Plan:
        is_empty = isinstance(node, Ref) and node.name in empty
        return Empty(schema_of(node)) if is_empty else node

    plain = transform(plan, emptied)
    reduced = normalize(plain)
    usable = schema_of(reduced) == schema_of(plan) and (_is_known(reduced) or not _is_known(plain))
    return reduced if usable else plain


def _is_known(plan: Plan) -> bool:
    """Whether DuckDB computes a plan; it may not know scalars that were put into each other."""
    try:
        emit(plan, DUCKDB)
    except NotAtParity:
        return False
    return True


@lru_cache(maxsize=STATEMENTS)
def _step_sql(step: Compute, plan: Plan, consolidated: bool) -> str:
    return emit_step(replace(step, plan=plan), DUCKDB, careful=consolidated)


@lru_cache(maxsize=STATEMENTS)
def _plan_sql(plan: Plan) -> str:
    return emit_consolidated(plan, DUCKDB)


@lru_cache(maxsize=STATEMENTS)
def _any_sql(plan: Plan) -> str:
    """Rows if and only if the plan has any: only what can cancel has to be consolidated."""
    return _plan_sql(plan) if sign(plan) is Sign.ANY else emit(plan, DUCKDB)
