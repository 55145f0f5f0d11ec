"""Data frames as changes of tables: Spark's own, and those that a user hands over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.errors import explained, not_accepted
from everview.engines.spark.large import LargeGear
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.expr.types import (
    FLOATS,
    INTEGERS,
    WEIGHT,
    Column,
    Schema,
    decimal_parts,
    is_nested,
    names,
)
from everview.runtime.arrow_types import conform
from everview.runtime.protocol import SIGN, Snapshot
from everview.runtime.results import Result


@dataclass(frozen=True, slots=True)
class SparkFrames:
    """Changes of up to `large_rows` rows are brought to the driver; others stay DataFrames."""

    session: Callable[[], SparkSession]
    large_rows: int

    def take(self, rows: DataFrame, table: str, schema: Schema, weight: int) -> DataFrame:
        """A DataFrame of the user's, cast to the table's types, with a weight; still on Spark."""
        return _weighted(self.session(), rows, table, schema, weight)

    def limit(self, rows: DataFrame, table: str, lengths: Sequence[tuple[str, int]]) -> DataFrame:
        """Rows whose texts are as long as they may be; blanks at the end give way, as in Spark."""
        for name, length in lengths:
            value = functions.col(spark_name(name))
            bare = functions.rtrim(value)
            problem = f"{table}: a text in {name} is longer than VARCHAR({length}) may be"
            kept = (
                functions.when(functions.length(value) <= length, value)
                .when(functions.length(bare) <= length, functions.rpad(bare, length, " "))
                .when(value.isNotNull(), functions.raise_error(functions.lit(problem)))
            )
            rows = rows.withColumn(name, kept)
        return rows

    def change(self, result: Result, schema: Schema) -> pa.Table | DataFrame:
        """The rows of a query whose last column has the weights."""
        return self.to_driver(result.to_spark().withColumnRenamed(SIGN, WEIGHT), schema)

    def pin(self, rows: Any, table: str, snapshot: Snapshot) -> Any:
        """A DataFrame computed once: to the driver, or if large to files of the next epoch."""
        if isinstance(rows, pa.Table):
            return rows
        brought = self.to_driver(rows, snapshot.stored[table].schema)
        if isinstance(brought, pa.Table):
            return brought
        gear = LargeGear(self.session(), snapshot, snapshot.manifest.epoch + 1, None)
        return gear.pin(table, brought)

    def to_driver(self, frame: DataFrame, schema: Schema) -> pa.Table | DataFrame:
        """Weighted rows in memory, unless they are more than the driver should hold."""
        with explained():
            some = actions.collect_some(frame, self.large_rows + 1)
        return frame if some.num_rows > self.large_rows else conform(some, schema)


def _weighted(
    session: SparkSession, rows: DataFrame, table: str, schema: Schema, weight: int
) -> DataFrame:
    """A DataFrame of the user's, cast to the table's types, with a weight."""
    given = {name.lower(): name for name in rows.columns}
    unknown = sorted(set(given) - {name.lower() for name in names(schema)})
    if unknown:
        raise UserError(
            "T001",
            f"{table}: the DataFrame has an unknown column: {unknown[0]}",
            remedy=f"the columns are {', '.join(names(schema))}",
        )
    try:
        ours = _in_session(session, rows)
        types = {field.name: field.dataType.simpleString() for field in ours.schema.fields}
        columns = [
            _taken(found, types[found], c, table) if found else functions.lit(None).cast(c.type)
            for c in schema
            for found in (given.get(c.name.lower()),)
        ]
        named = [each.alias(c.name) for each, c in zip(columns, schema, strict=True)]
        return ours.select(*named, functions.lit(weight).cast("bigint").alias(WEIGHT))
    except PySparkException as problem:
        raise not_accepted(problem) from None


def _taken(name: str, given: str, column: Column, table: str) -> SparkColumn:
    """A column of the user's in the type of the table's; an error where a value would change.

    Spark's own assignment cuts fractions off, rounds decimals and drops the time of a day.
    """
    value = functions.col(spark_name(name))
    cast = value.cast(column.type)
    if not _may_round(given, column.type):
        return cast
    problem = f"{table}: a value of {name} is not a {column.type.upper()}"
    changed = cast.cast(given) != value
    return functions.when(changed, functions.raise_error(functions.lit(problem))).otherwise(cast)


def _may_round(given: str, wanted: str) -> bool:
    """Whether a cast may change a value without an error."""
    if given in FLOATS or decimal_parts(given):
        return wanted in INTEGERS or wanted == "boolean" or decimal_parts(wanted) is not None
    if given.startswith("timestamp"):
        return wanted == "date" or wanted in INTEGERS
    if is_nested(given):
        return given != wanted and "map<" not in given  # maps are not compared
    return given in INTEGERS and wanted == "boolean"


def _in_session(session: SparkSession, rows: DataFrame) -> DataFrame:
    """A frame of another session of the same Spark, as one of ours."""
    name = f"everview_{uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)
