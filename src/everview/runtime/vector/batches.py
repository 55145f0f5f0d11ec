"""Record batches of weighted rows: the columns of a schema, in order, and the weight last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from everview.runtime.vector.int_encoding import Ints, int_column

FEW = 20_000
"""Up to so many rows are computed on columns; of more, a statement is worth its planning."""
Change: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


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
        return nothing(table.schema)
    return table.combine_chunks().to_batches()[0]


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    """No rows."""
    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)


def chosen(rows: pa.RecordBatch, kept: Ints) -> pa.RecordBatch:
    """The rows at which there is a yes."""
    count = int(np.count_nonzero(kept))
    if count == rows.num_rows:
        return rows
    return rows.filter(pa.array(kept)) if count else rows.slice(0, 0)


def taken(rows: pa.RecordBatch, places: Ints) -> pa.RecordBatch:
    """The rows at some places."""
    count = rows.num_rows
    if len(places) == count and bool((places == np.arange(count)).all()):
        return rows
    return rows.take(int_column(places))


def picked(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema."""
    if rows.schema.equals(schema):
        return rows
    found = rows.select(schema.names)
    return found if found.schema.equals(schema) else found.cast(schema)


def weights(rows: pa.RecordBatch) -> pa.Array:
    """The column of weights."""
    return rows.column(rows.num_columns - 1)


def ones(count: int) -> pa.Array:
    """A weight of one, so often."""
    return int_column(np.ones(count, np.int64))


def reweighted(rows: pa.RecordBatch, fresh: pa.Array) -> pa.RecordBatch:
    """The rows with other weights."""
    return pa.record_batch([*rows.columns[:-1], fresh], schema=rows.schema)


def copies(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each row as often as its weight says."""
    counts = np.maximum(weights(rows).to_numpy(), 0)
    if len(counts) and (counts.min() != 1 or counts.max() != 1):
        rows = taken(rows, np.repeat(np.arange(len(counts)), counts))
    return reweighted(rows, ones(rows.num_rows))
