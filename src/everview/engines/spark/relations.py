"""Stored and computed relations as Spark DataFrames with names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import count
from types import TracebackType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark.door import ask
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import WEIGHT, Column, Schema
from everview.plan.nodes import Plan
from everview.plan.traverse import sources
from everview.runtime.protocol import Part, Snapshot, Staged, Stored
from everview.sqlgen.sql import SPARK
from everview.sqlgen.sql import consolidate as consolidate_sql
from everview.store.layouts import unpacked_value
from everview.store.manifest import DataFile, Segment, parquet_and_pieces
from everview.store.store import Store

_NUMBERS = count()
_VERIFIED = {"parquet.page.verify-checksum.enabled": "true"}
"""Spark writes a checksum with each page, and verifies none of them unless it is told to."""


class Relations:
    """Temporary views for the time of one run; `names` gives the SQL name of each relation."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.names: dict[str, str] = {}

    def give(self, name: str, frame: DataFrame) -> None:
        """Make a frame known under a relation's name."""
        view = f"everview_{next(_NUMBERS)}"
        frame.createOrReplaceTempView(view)
        self.names[name] = view

    def replace(self, name: str, frame: DataFrame) -> None:
        """Make a frame known under a name that another one may have had."""
        before = self.names.get(name)
        self.give(name, frame)
        if before is not None:
            self._session.catalog.dropTempView(before)

    def give_stored(self, plan: Plan, snapshot: Snapshot, *, consolidated: bool) -> None:
        """Make every stored relation that `plan` reads known."""
        for source in sources(plan):
            self.give(source.name, stored_frame(self._session, source.name, snapshot))
            if consolidated:
                self.consolidate(source.name, snapshot.stored[source.name])

    def consolidate(self, name: str, stored: Stored) -> None:
        """Take out the rows of a known relation that cancel."""
        every = self.names[name]
        rows = consolidate_sql(f"SELECT * FROM {every}", stored.schema, stored.rings, SPARK)
        self.give(name, ask(self._session, rows))
        self._session.catalog.dropTempView(every)

    def __enter__(self) -> Relations:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for view in self.names.values():
            self._session.catalog.dropTempView(view)


def as_frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Weighted rows as a DataFrame."""
    # Spark takes a piece without rows, after one that has some, for the end.
    whole = rows.combine_chunks() if rows.num_rows else rows.schema.empty_table()
    frame = session.createDataFrame(whole)
    for field in rows.schema:  # Spark takes a moment without a zone for one of the session's
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            local = functions.col(spark_name(field.name)).cast("timestamp_ntz")
            frame = frame.withColumn(field.name, local)
    return frame


def part_frame(session: SparkSession, part: Part, name: str, snapshot: Snapshot) -> DataFrame:
    """A part of a relation's change as a DataFrame."""
    if isinstance(part, Staged):
        return segment_frame(session, part.segment, name, snapshot)
    return as_frame(session, part)


def segment_frame(
    session: SparkSession, segment: Segment, name: str, snapshot: Snapshot
) -> DataFrame:
    """The weighted rows of one segment of a relation, as executors wrote it."""
    stored = snapshot.stored[name]
    if not segment.files:
        return session.createDataFrame([], weighted_ddl(stored.schema))
    return files_frame(session, segment.files, snapshot.store, stored)


def stored_frame(session: SparkSession, name: str, snapshot: Snapshot) -> DataFrame:
    """The weighted rows of all segments of a relation, not consolidated."""
    stored = snapshot.stored[name]
    whole, pieces = parquet_and_pieces(snapshot.relation(name).files)
    if not pieces and not whole:
        return session.createDataFrame([], weighted_ddl(stored.schema))
    parts = [files_frame(session, whole, snapshot.store, stored)] if whole else []
    if pieces:
        small = snapshot.store.read_files(pieces, schema=stored.arrow())
        parts.append(as_frame(session, small))
    return reduce(DataFrame.unionByName, parts)


def files_frame(
    session: SparkSession, files: Sequence[DataFile], store: Store, stored: Stored
) -> DataFrame:
    """The weighted rows of Parquet files: executors verify the pages, we what is behind them."""
    store.require_sound(files, pages=True)
    parts = []
    for layout in dict.fromkeys(file.layout for file in files):
        paths = [store.absolute(file.path) for file in files if file.layout == layout]
        here = stored.schema if layout is None else _former_schema(stored, layout)
        rows = session.read.options(**_VERIFIED).schema(weighted_ddl(here)).parquet(*paths)
        parts.append(rows if layout is None else _fitted(session, rows, stored, layout))
    return reduce(DataFrame.unionByName, parts)


def _former_schema(stored: Stored, layout: int) -> Schema:
    """The columns of files of a former layout that are still read."""
    return tuple(column for _, column in stored.former[layout].columns)


def _fitted(session: SparkSession, rows: DataFrame, stored: Stored, layout: int) -> DataFrame:
    """Rows of files of a former layout with the columns of now, as `layouts.fitted` has them."""
    known, fills = dict(stored.former[layout].columns), dict(stored.fills)
    given = [(name, unpacked_value(fill)) for name, fill in fills.items() if name not in known]
    if given:
        one = pa.table(
            [pa.repeat(value, 1) for _, value in given], [_fill(name) for name, _ in given]
        )
        rows = rows.crossJoin(session.createDataFrame(one))
    picked = []
    for column in stored.schema:
        if column.name in known:
            value = functions.col(spark_name(known[column.name].name))
        elif column.name in fills:
            value = functions.col(spark_name(_fill(column.name)))
        else:
            value = functions.lit(None)
        picked.append(value.cast(column.type).alias(column.name))
    return rows.select(*picked, WEIGHT)


def _fill(column: str) -> str:
    """What the value for rows without a column is called, unlike any column."""
    return f"fill/{column}"


def weighted_ddl(schema: Schema) -> str:
    """A schema with its weight as Spark's DDL text."""
    return ddl((*schema, Column(WEIGHT, "bigint")))


def ddl(schema: Schema) -> str:
    """A schema as Spark's DDL text."""
    return ", ".join(f"{spark_name(column.name)} {spark_type(column.type)}" for column in schema)
