"""Data frames as changes of tables: Spark's own, and those that a user hands over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained, not_accepted
from everview.engines.spark.files import SparkFiles
from everview.engines.spark.queries import weighted_frame
from everview.engines.spark.relations import Relations, part_frame
from everview.engines.spark.writing import write_segment
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
from everview.runtime.protocol import SIGN, Part, Snapshot, Staged, row_count
from everview.runtime.results import Result
from everview.sqlgen.sql import SPARK, consolidate

COLLECTED_MAX_ROWS = 100_000
"""The rows of a statement are brought to the driver up to so many; more are written first."""


@dataclass(frozen=True, slots=True)
class SparkFrames:
    """Frames are computed once, by executors that write the segment which the change will be.

    Of up to `large_rows` rows the driver reads them back, and goes on in process.
    """

    session: Callable[[], SparkSession]
    large_rows: int

    @property
    def files(self) -> SparkFiles:
        """Executors read and write files."""
        return SparkFiles(self.session)

    def weighted(
        self,
        rows: DataFrame,
        table: str,
        weight: int,
        lengths: Sequence[tuple[str, int]],
        snapshot: Snapshot,
    ) -> DataFrame:
        """A DataFrame of the user's, cast to the table's types, with a weight."""
        schema = snapshot.stored[table].schema
        weighted = _weighted(self.session(), rows, table, schema, weight)
        return _limited(weighted, table, lengths)

    def stage(self, frames: Sequence[DataFrame], table: str, snapshot: Snapshot) -> Staged:
        """Let executors write weighted rows as a segment of the next epoch, by one job."""
        frame = reduce(DataFrame.unionAll, frames)
        segment = write_segment(frame, table, snapshot, snapshot.manifest.epoch + 1)
        if segment.rows > self.large_rows:
            return Staged(segment)
        stored = snapshot.stored[table]
        rows = snapshot.store.read_files(segment.files, schema=stored.arrow())
        return Staged(segment, conform(rows, stored.schema))

    def take_keys(self, rows: DataFrame, table: str, key: Schema) -> pa.Table | DataFrame:
        """The values of key columns, each once, with weight 1."""
        keys = _weighted(self.session(), rows, table, key, 1).distinct()
        with explained():
            some = actions.collect_some(keys, COLLECTED_MAX_ROWS + 1)
        return keys if some.num_rows > COLLECTED_MAX_ROWS else conform(some, key)

    def change(self, result: Result, table: str, snapshot: Snapshot) -> Part:
        """The rows of a query whose last column has the weights."""
        return self.pin(result.to_spark().withColumnRenamed(SIGN, WEIGHT), table, snapshot)

    def removal(
        self, table: str, key: Sequence[str], by: Any, snapshot: Snapshot, pending: Sequence[Part]
    ) -> Part:
        """Minus the rows that have a key of `by`, by a semi-join on executors."""
        session, stored = self.session(), snapshot.stored[table]
        by_frame = by if isinstance(by, DataFrame) else part_frame(session, by, table, snapshot)
        with Relations(session) as relations:
            relations.give("rows", weighted_frame(session, table, snapshot, {table: pending}))
            relations.give("keys", by_frame)
            columns = ", ".join(f"t.{spark_name(name)}" for name in names(stored.schema))
            same = " AND ".join(f"t.{spark_name(k)} <=> k.{spark_name(k)}" for k in key)
            listed = ", ".join(map(spark_name, key))
            rows = (
                f"SELECT {columns}, -t.{WEIGHT} AS {WEIGHT} FROM {relations.names['rows']} AS t "
                f"LEFT SEMI JOIN (SELECT {listed} FROM {relations.names['keys']}) AS k ON {same}"
            )
            frame = ask(session, consolidate(rows, stored.schema, stored.rings, SPARK))
            removed = self.pin(frame, table, snapshot)
        if isinstance(by, DataFrame):
            _must_all_be_there(by, row_count(removed), table)
        return removed

    def minimized(
        self, table: str, change: Part, snapshot: Snapshot, pending: Sequence[Part], *, once: bool
    ) -> Part:
        """The part of a change that has an effect, by one aggregation on executors."""
        session, stored = self.session(), snapshot.stored[table]
        counts = (Column("__deleted", "bigint"), Column("__inserted", "bigint"))
        columns = ", ".join(map(spark_name, names(stored.schema)))
        deleted, inserted = map(spark_name, names(counts))
        with Relations(session) as relations:
            relations.give("there", weighted_frame(session, table, snapshot, {table: pending}))
            relations.give("change", part_frame(session, change, table, snapshot))
            rows = (
                f"SELECT {columns}, 0 AS {deleted}, 0 AS {inserted}, {WEIGHT} "
                f"FROM {relations.names['there']} UNION ALL "
                f"SELECT {columns}, GREATEST(-{WEIGHT}, 0), GREATEST({WEIGHT}, 0), 0 "
                f"FROM {relations.names['change']}"
            )
            total = consolidate(rows, (*stored.schema, *counts), names(counts), SPARK)
            wanted = f"LEAST({inserted}, 1)" if once else inserted
            after = f"GREATEST({WEIGHT} - {deleted}, 0, {wanted})"
            effect = (
                f"SELECT {columns}, CAST({after} - {WEIGHT} AS BIGINT) AS {WEIGHT} "
                f"FROM ({total}) AS q "
                f"WHERE {deleted} + {inserted} > 0 AND {after} <> {WEIGHT}"
            )
            return self.pin(ask(session, effect), table, snapshot)

    def pin(self, frame: DataFrame, table: str, snapshot: Snapshot) -> Part:
        """Weighted rows of a table, computed once: in memory if they are few, else in files."""
        with explained():
            some = actions.collect_some(frame, COLLECTED_MAX_ROWS + 1)
        if some.num_rows <= COLLECTED_MAX_ROWS:
            return conform(some, snapshot.stored[table].schema)
        return self.stage([frame], table, snapshot)


def _must_all_be_there(keys: DataFrame, removed: int, table: str) -> None:
    """Refuse keys that no row has; each that a row has was removed once."""
    wanted = actions.count_rows(keys)
    if wanted != removed:
        raise UserError(
            "T011",
            f"{table} has no rows for {wanted - removed} of the {wanted} keys to be deleted",
            remedy="read the table to see its keys",
        )


def _limited(rows: DataFrame, table: str, lengths: Sequence[tuple[str, int]]) -> DataFrame:
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
            _taken(found, types[found], c, table) if found else f"CAST(NULL AS {c.type})"
            for c in schema
            for found in (given.get(c.name.lower()),)
        ]
        named = [_named(each, c.name) for each, c in zip(columns, schema, strict=True)]
        named.append(f"CAST({weight} AS BIGINT) AS {WEIGHT}")
        texts = [each for each in named if isinstance(each, str)]
        if len(texts) == len(named):
            return ours.selectExpr(*texts)
        return ours.select(*(functions.expr(e) if isinstance(e, str) else e for e in named))
    except PySparkException as problem:
        raise not_accepted(problem) from None


def _named(column: SparkColumn | str, name: str) -> SparkColumn | str:
    return f"{column} AS {spark_name(name)}" if isinstance(column, str) else column.alias(name)


def _taken(name: str, given: str, column: Column, table: str) -> SparkColumn | str:
    """A column of the user's in the type of the table's; an error where a value would change.

    Spark's own assignment cuts fractions off, rounds decimals and drops the time of a day. Columns
    that need no more than a cast are texts: those take fewer calls to Spark.
    """
    if given == column.type:
        return spark_name(name)
    if not _may_round(given, column.type):
        return f"CAST({spark_name(name)} AS {column.type})"
    value = functions.col(spark_name(name))
    cast = value.cast(column.type)
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
