"""Arithmetic on small relations, in process: DuckDB over Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

import duckdb
import pyarrow as pa

from everview.emit.sql import DUCKDB, consolidate, emit_consolidated
from everview.engine.arrow import arrow_schema, conform
from everview.errors import UserError
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of
from everview.plan.types import Schema, names


class CalculationError(UserError):
    """A value that DuckDB cannot compute. Spark may: it skips operands that do not matter."""


class Calculator:
    """Named relations in memory and the results computed from them."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._given: set[str] = set()
        self._made: set[str] = set()

    def give(self, name: str, table: pa.Table) -> None:
        """Make an Arrow table known under a name."""
        self._connection.register(name, table)
        self._given.add(name)

    def compute(self, name: str, plan: Plan) -> None:
        """Evaluate `plan` over the known relations and name the result.

        Raises `NotEqual` when the plan uses something not shown equal to Spark's answer.
        """
        sql = _sql(plan)
        with _explained():
            self._connection.execute(f'CREATE TEMP TABLE "{name}" AS {sql}')
        self._made.add(name)

    def evaluate(self, plan: Plan) -> pa.Table:
        """The rows of `plan`, consolidated."""
        return conform(self._rows(_sql(plan)), schema_of(plan))

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
        columns = ", ".join(f'"{column}"' for column in arrow_schema(schema).names)
        return conform(self._rows(f'SELECT {columns} FROM "{name}"'), schema)

    def count(self, name: str) -> int:
        """How many rows a relation has."""
        found = self._connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()
        return int(found[0][0])

    def keys(self, name: str, column: str) -> pa.ChunkedArray:
        """The distinct values of one column."""
        return self._rows(f'SELECT DISTINCT "{column}" AS k FROM "{name}"').column("k")

    def add_up(self, rows: pa.Table, schema: Schema, rings: tuple[str, ...]) -> pa.Table:
        """The sum of weighted rows."""
        self._connection.register("__rows", rows)
        sql = consolidate('SELECT * FROM "__rows"', names(schema), rings, DUCKDB)
        try:
            return conform(self._rows(sql), schema)
        finally:
            self._connection.unregister("__rows")

    def forget(self) -> None:
        """Drop everything known."""
        for name in self._given:
            self._connection.unregister(name)
        for name in self._made:
            self._connection.execute(f'DROP TABLE "{name}"')
        self._given.clear()
        self._made.clear()

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _rows(self, sql: str) -> pa.Table:
        with _explained():
            return self._connection.sql(sql).to_arrow_table()


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what goes wrong with the user's values into a UserError."""
    try:
        yield
    except (
        duckdb.ConversionException,
        duckdb.InvalidInputException,
        duckdb.OutOfRangeException,
    ) as problem:
        raise CalculationError(
            "E010",
            f"a value cannot be computed: {str(problem).splitlines()[0]}",
            remedy="change the data, or guard the expression with CASE or a try_ function",
        ) from problem


@lru_cache(maxsize=4096)
def _sql(plan: Plan) -> str:
    return emit_consolidated(plan, DUCKDB)
