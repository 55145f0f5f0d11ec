"""Segments that executors write: sorted files, their rows counted as they are written."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions

from everview.engines.spark import actions
from everview.engines.spark.errors import explained
from everview.expr.quoting import spark_name
from everview.expr.types import WEIGHT
from everview.runtime.calendar import outside_calendar, outside_on_spark
from everview.runtime.protocol import Snapshot, Stored
from everview.store.manifest import Kind, Segment

_OUTSIDE = outside_calendar("a value computed here").problem
"""A text without quotes."""


@explained()
def write_segment(
    frame: DataFrame,
    name: str,
    snapshot: Snapshot,
    epoch: int,
    *,
    kind: Kind = "change",
    ranged: bool = False,
) -> Segment:
    """Write weighted rows as a segment of a relation, for `epoch` to name.

    Each file is sorted. `ranged` files have key ranges that do not overlap, which lets lookups skip
    files; it costs a sample of the rows, so they are evaluated twice.
    """
    store, stored = snapshot.store, snapshot.stored[name]
    directory = store.segment_directory(name, epoch)
    rows = actions.write_sorted(
        _in_calendar(frame, stored), store.absolute(directory), stored.sort, ranged=ranged
    )
    return store.adopt_segment(name, epoch, directory, stored.sort, kind=kind, rows=rows)


def _in_calendar(frame: DataFrame, stored: Stored) -> DataFrame:
    """The rows, or an error where one that comes holds a moment that no one could read.

    Each call to Spark from here takes a part of a millisecond, so expressions are texts, and there
    is one call for all columns.
    """
    kept = {}
    for column in stored.schema:
        name = spark_name(column.name)
        test = outside_on_spark(name, column.type)
        if test is not None:
            fails = f"{WEIGHT} > 0 AND ({test})"
            kept[column.name] = functions.expr(
                f"CASE WHEN {fails} THEN raise_error('{_OUTSIDE}') ELSE {name} END"
            )
    return frame.withColumns(kept) if kept else frame
