"""Every action on Spark: nothing outside this file starts a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from everview.engines.spark.errors import innermost
from everview.engines.spark.fetch import ANSWER_TYPE, Read
from everview.expr.quoting import spark_name
from everview.runtime.protocol import TooLarge
from everview.store import group_reader, layouts

ROW_GROUP_BYTES, ROW_GROUP_ROWS = 8 << 20, 16_384
"""Small row groups let a lookup by key skip most of a file."""
PARTITION_ROWS, PARTITIONS_LEAST, PARTITIONS_MOST = 500_000, 2, 400
"""How many changed rows a partition of a shuffle is planned for; how many there may be."""
BROADCAST_BYTES = 48 << 20
"""Files up to this size are sent to every task instead of being shuffled."""
PACKED_ROWS = 65_536
"""So many rows are packed at a time where all of them are collected."""
WATCHING_SECONDS = 0.02
"""How often is looked at how much a job has brought."""
_RESULTS_LIMIT = "spark.driver.maxResultSize"
"""What Spark's error names when the results of a job are more than the driver takes."""
_WRITING = {
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.block.row.count.limit": str(ROW_GROUP_ROWS),
    "parquet.page.write-checksum.enabled": "true",
}


def collect(frame: DataFrame, most_bytes: float = inf) -> pa.Table:
    """All rows, to the driver; more than so many bytes raise `TooLarge`, before they are here.

    Without a limit the caller knows a bound.
    """
    if most_bytes == inf:
        return frame.toArrow()
    with _ended_beyond(frame.sparkSession, most_bytes) as counting:
        packed = frame.mapInArrow(counting(_packing(PACKED_ROWS)), "rows binary").toArrow()
    if packed.nbytes > most_bytes:
        raise TooLarge("the rows of a frame")
    parts = [pa.ipc.open_stream(rows.as_py()).read_all() for rows in packed.column(0)]
    return pa.concat_tables(parts) if parts else frame.limit(0).toArrow()


def collect_some(frame: DataFrame, limit: int) -> pa.Table:
    """At most `limit` rows, to the driver."""
    return frame.limit(limit).toArrow()


def batches(frame: DataFrame, size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of at most `size`: of one partition after the other, to the driver."""
    packed = frame.mapInArrow(_packing(size), "rows binary").toLocalIterator()
    while True:
        try:
            row = next(packed, None)
        except Py4JJavaError as problem:
            raise innermost(problem) from problem
        if row is None:
            return
        yield from pa.ipc.open_stream(bytes(row.rows))


def _packing(size: int) -> Read:
    """Packs rows as Arrow, so many at a time, on executors.

    The function is sent by value, so it uses what it imports itself.
    """

    def pack(parts: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as arrow

        for part in parts:
            for start in range(0, part.num_rows, size):
                sink = arrow.BufferOutputStream()
                with arrow.ipc.new_stream(sink, part.schema) as writer:
                    writer.write_batch(part.slice(start, size))
                packed = arrow.array([sink.getvalue().to_pybytes()], arrow.binary())
                yield arrow.record_batch([packed], names=["rows"])

    return pack


def fetch_slices(session: SparkSession, tasks: int, read: Read, most_bytes: int) -> pa.Table:
    """Run one round of fetches as one job of so many tasks, each given its number.

    What they call is sent along: executors have nothing of ours installed. Tasks tell how much they
    bring, and the job ends when it is too much, before the driver has all of it: then `TooLarge` is
    raised.
    """
    for module in (group_reader, layouts):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with _ended_beyond(session, most_bytes) as counting:
            frame = session.range(0, tasks, 1, tasks)
            return frame.mapInArrow(counting(read), ANSWER_TYPE).toArrow()
    finally:
        for module in (group_reader, layouts):
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


@contextmanager
def _ended_beyond(session: SparkSession, most: float) -> Iterator[Callable[[Read], Read]]:
    """End the job of the block when its tasks have brought more than so many bytes.

    Where Spark has no accumulators, its own limit for the results of a job ends it.
    """
    context, tag = getattr(session, "sparkContext", None), f"everview-{uuid4().hex}"
    brought = None if context is None else context.accumulator(0)
    done = Event()

    def counting(read: Read) -> Read:
        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in read(batches):
                assert brought is not None
                brought.add(batch.nbytes)
                yield batch

        return read if brought is None else counted

    def watch() -> None:
        while not done.wait(WATCHING_SECONDS):
            if context is not None and brought is not None and brought.value > most:
                context.cancelJobsWithTag(tag)

    if context is not None:
        context.addJobTag(tag)
        Thread(target=watch, name="everview-fetch", daemon=True).start()
    try:
        yield counting
    except Exception as problem:
        if (brought is not None and brought.value > most) or _RESULTS_LIMIT in str(problem):
            raise TooLarge("a round of slices") from problem
        raise
    finally:
        done.set()
        if context is not None:
            context.removeJobTag(tag)


def count_rows(frame: DataFrame) -> int:
    """How many rows a frame has."""
    return frame.count()


def write_sorted(frame: DataFrame, path: str, sort: Sequence[str], *, ranged: bool = False) -> int:
    """Write rows as Parquet files by executors, each sorted; how many they say it was.

    They are counted as they are written, by the same job. `ranged` files do not overlap.
    """
    unordered = {f.name for f in frame.schema.fields if "map<" in f.dataType.simpleString()}
    keys = [spark_name(column) for column in sort if column not in unordered]
    if keys:
        frame = frame.repartitionByRange(*keys[:1]) if ranged else frame
        frame = frame.sortWithinPartitions(*keys)
    written = Observation()
    frame = frame.observe(written, F.count(F.lit(1)).alias("rows"))
    frame.write.options(**_WRITING).parquet(path)
    return int(written.get["rows"])


def write_files(frame: DataFrame, path: str, format_: str, options: dict[str, str]) -> int:
    """Write rows for others to read, by executors; how many they say it was."""
    written = Observation()
    frame = frame.observe(written, F.count(F.lit(1)).alias("rows"))
    frame.write.format(format_).options(**options).save(path)
    return int(written.get["rows"])


def checkpointed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows of a frame without its lineage, in the memory of executors; how many there are."""
    written = Observation()
    checkpoint = frame.observe(written, F.count(F.lit(1)).alias("rows")).localCheckpoint()
    return checkpoint, int(written.get["rows"])


@contextmanager
def planned_for(session: SparkSession, rows: int) -> Iterator[None]:
    """Plan queries for a change of so many rows, for the time of the block.

    Adaptive execution makes a job of every shuffle. A change knows its size, so its shuffles are
    planned from that, and a change that fits the memory of a task is broadcast.
    """
    cores = getattr(session, "sparkContext", None)
    least = cores.defaultParallelism if cores is not None else PARTITIONS_LEAST
    partitions = min(max(least, rows // PARTITION_ROWS), PARTITIONS_MOST)
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.autoBroadcastJoinThreshold": str(BROADCAST_BYTES),
    }
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, known in before.items():
            if known is not None:
                session.conf.set(name, known)


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
