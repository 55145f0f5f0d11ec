"""Record batches of weighted rows: the columns of a schema, in order, and the weight last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from everview.runtime.vector.int_encoding import Ints, int_column

VECTOR_MAX_ROWS = 20_000
"""Plans over more rows are left to the database: then a statement is worth its planning."""
Transform: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


class Batches(dict[str, pa.RecordBatch]):
    """Relations as batches, each made when it is first read."""

    def __init__(self, make: Callable[[str], pa.RecordBatch]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> pa.RecordBatch:
        made = self[name] = self._make(name)
        return made


def batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch."""
    if table.num_rows == 0:
        return empty_batch(table.schema)
    return table.combine_chunks().to_batches()[0]


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No rows."""
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def filter_rows(rows: pa.RecordBatch, mask: Ints) -> pa.RecordBatch:
    """The rows where a mask is true."""
    count = int(np.count_nonzero(mask))
    if count == rows.num_rows:
        return rows
    return rows.filter(pa.array(mask)) if count else rows.slice(0, 0)


def take_rows(rows: pa.RecordBatch, positions: Ints) -> pa.RecordBatch:
    """The rows at some positions."""
    count = rows.num_rows
    if len(positions) == count and bool((positions == np.arange(count)).all()):
        return rows
    return rows.take(int_column(positions))


def select_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema, in its order and types."""
    if rows.schema.equals(schema):
        return rows
    columns = rows.select(schema.names)
    return columns if columns.schema.equals(schema) else columns.cast(schema)


def weights(rows: pa.RecordBatch) -> pa.Array:
    """The column of weights."""
    return rows.column(rows.num_columns - 1)


def unit_weights(count: int) -> pa.Array:
    """A weight of one for each of so many rows."""
    return int_column(np.ones(count, np.int64))


def with_weights(rows: pa.RecordBatch, fresh: pa.Array) -> pa.RecordBatch:
    """The rows with other weights."""
    return pa.record_batch([*rows.columns[:-1], fresh], schema=rows.schema)


def repeat_by_weight(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each row as often as its weight says, with weight one; none of a negative weight."""
    counts = np.maximum(weights(rows).to_numpy(), 0)
    if len(counts) and (counts.min() != 1 or counts.max() != 1):
        rows = take_rows(rows, np.repeat(np.arange(len(counts)), counts))
    return with_weights(rows, unit_weights(rows.num_rows))
