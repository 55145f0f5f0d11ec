"""Every action on Spark: nothing outside this file starts a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from everview.engines.spark.fetch import ANSWER_TYPE, Read
from everview.expr.quoting import spark_name

ROW_GROUP_BYTES = 8 << 20
"""Small row groups let a lookup by key skip most of a file."""
_WRITING = {
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.page.write-checksum.enabled": "true",
}


def collect(frame: DataFrame) -> pa.Table:
    """All rows, to the driver. The caller knows a bound."""
    return frame.toArrow()


def collect_some(frame: DataFrame, limit: int) -> pa.Table:
    """At most `limit` rows, to the driver."""
    return frame.limit(limit).toArrow()


def fetch_slices(session: SparkSession, tasks: pa.Table, read: Read) -> pa.Table:
    """Run one round of fetches as one job, a task for every few files."""
    frame = session.createDataFrame(tasks)
    return frame.mapInArrow(read, ANSWER_TYPE).toArrow()


def write_sorted(frame: DataFrame, path: str, sort: Sequence[str]) -> int:
    """Write rows as Parquet by executors, ranged and sorted by `sort`; how many they say it was.

    They are counted as they are written, by the same job.
    """
    unordered = {f.name for f in frame.schema.fields if "map<" in f.dataType.simpleString()}
    keys = [spark_name(column) for column in sort if column not in unordered]
    if keys:
        frame = frame.repartitionByRange(*keys[:1]).sortWithinPartitions(*keys)
    written = Observation()
    frame = frame.observe(written, F.count(F.lit(1)).alias("rows"))
    frame.write.options(**_WRITING).parquet(path)
    return int(written.get["rows"])


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """Hold the rows of a frame that several steps read, for the time they do."""
    held = frame.persist()
    try:
        yield held
    finally:
        held.unpersist()


@contextmanager
def counted(session: SparkSession) -> Iterator[Callable[[], int | None]]:
    """How many jobs the block has started so far, when it is asked; None where Spark cannot tell.

    One write is many jobs: each shuffle and broadcast is one, and so is the sample for ranges.
    """
    context, tag = getattr(session, "sparkContext", None), f"everview-{uuid4().hex}"

    def started() -> int | None:
        if context is not None:
            with suppress(Py4JError):
                return len(context._jsc.sc().statusTracker().getJobIdsForTag(tag))
        return None

    if context is not None:
        context.addJobTag(tag)
    try:
        yield started
    finally:
        if context is not None:
            context.removeJobTag(tag)
