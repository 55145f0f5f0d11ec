"""Compaction by executors: what is too much for the driver is added up by Spark SQL."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.errors import explained
from everview.engines.spark.relations import Relations, as_frame, files_frame
from everview.runtime.protocol import Snapshot
from everview.sqlgen.sql import SPARK, consolidate
from everview.store.manifest import Kind, Run, Segment, parquet_and_pieces

EXECUTORS_MIN_ROWS = 4_000_000
"""Fewer rows are added up by the driver, range by range: it holds a part of them at a time."""


@explained()
def compact(session: SparkSession, run: Run, snapshot: Snapshot, epoch: int) -> Segment:
    """The sum of a run of segments, as files that executors write, ranged and sorted by key."""
    store, stored = snapshot.store, snapshot.stored[run.name]
    whole, pieces = parquet_and_pieces(run.files)
    frames = [files_frame(session, whole, store, stored)] if whole else []
    if pieces:
        small = store.read_files(pieces, schema=stored.arrow())
        frames.append(as_frame(session, small))
    with Relations(session) as relations:
        relations.give(run.name, reduce(DataFrame.unionByName, frames))
        every = f"SELECT * FROM {relations.names[run.name]}"
        frame = ask(session, consolidate(every, stored.schema, stored.rings, SPARK))
        directory = store.segment_directory(run.name, epoch)
        rows = actions.write_sorted(frame, store.absolute(directory), run.sort_by, ranged=True)
    kind: Kind = "base" if run.is_base else "change"
    return store.adopt_segment(run.name, epoch, directory, run.sort_by, kind=kind, rows=rows)
