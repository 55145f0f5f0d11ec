"""Append-only rows in chunks, of which some are taken by position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.runtime.vector.batches import unit_weights
from everview.runtime.vector.int_encoding import Ints, grow, int_column, is_int_column

MAX_CHUNKS = 32
"""With more chunks than this, the last ones are merged: taking from many costs more."""
MERGED_MAX_BYTES = 1 << 30
"""A chunk does not become larger by merging: Arrow's texts have offsets of 32 bits."""


class RowChunks:
    """Batches one after the other; merged so that there are few, and no row is copied often."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows at the end."""
        self._rows += rows.num_rows
        if len(self._batches) >= MAX_CHUNKS:
            while self._batches and _are_merged(self._batches[-1], rows):
                rows = pa.concat_batches([self._batches.pop(), rows])
        self._batches.append(rows)

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self._batches, self._schema)

    def since(self, position: int) -> list[pa.RecordBatch]:
        """The rows from a position on."""
        found: list[pa.RecordBatch] = []
        end = self._rows
        for rows in reversed(self._batches):
            if end <= position:
                break
            end -= rows.num_rows
            found.append(rows if end >= position else rows.slice(position - end))
        return found[::-1]

    def take(self, positions: Ints) -> pa.RecordBatch:
        """The rows at some positions, which must ascend.

        It costs by what is taken and by the number of chunks, not by the rows there are.
        """
        ends = np.cumsum([rows.num_rows for rows in self._batches])
        parts: list[pa.RecordBatch] = []
        taken = 0
        for rows, end in zip(self._batches, ends.tolist(), strict=True):
            stop = int(positions.searchsorted(end))
            if stop > taken:
                parts.append(_take(rows, positions[taken:stop] - (end - rows.num_rows)))
                taken = stop
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _are_merged(last: pa.RecordBatch, rows: pa.RecordBatch) -> bool:
    small = last.num_rows <= 2 * rows.num_rows
    return bool(small and last.nbytes + rows.nbytes <= MERGED_MAX_BYTES)


def _take(rows: pa.RecordBatch, positions: Ints) -> pa.RecordBatch:
    first, count = int(positions[0]), len(positions)
    if int(positions[-1]) - first == count - 1:
        return rows.slice(first, count)
    return rows.take(int_column(positions))


class AppendOnlyRows:
    """Columns that grow: signed integers without nulls as arrays, anything else as chunks."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._fields = list(schema)[:-1]
        self._count = 0
        self._chunks: RowChunks | None = None
        self._arrays: list[Ints] = []
        if self._fields and all(types.is_signed_integer(field.type) for field in self._fields):
            dtypes = (field.type.to_pandas_dtype() for field in self._fields)
            self._arrays = [np.zeros(0, dtype) for dtype in dtypes]
        else:
            self._chunks = RowChunks(schema)

    def append(self, columns: Sequence[pa.Array], count: int) -> None:
        """Add `count` rows at the end."""
        if self._chunks is None and not all(map(is_int_column, columns)):
            before = self._weighted(self.take(np.arange(self._count)), self._count)
            self._chunks = RowChunks(self._schema)
            self._chunks.append(before)
        if self._chunks is not None:
            self._chunks.append(self._weighted(columns, count))
            return
        end = self._count + count
        self._arrays = [grow(array, end) for array in self._arrays]
        for array, column in zip(self._arrays, columns, strict=True):
            array[self._count : end] = column.to_numpy()
        self._count = end

    def take(self, positions: Ints) -> list[pa.Array]:
        """The columns of the rows at some positions, which must ascend."""
        if self._chunks is None:
            return [int_column(array[positions]) for array in self._arrays]
        rows = self._chunks.take(positions)
        return [rows.column(place) for place in range(len(self._fields))]

    def take_any(self, positions: Ints) -> list[pa.ChunkedArray | pa.Array]:
        """The columns of the rows at positions in any order."""
        if self._chunks is None:
            return list(self.take(positions))
        return list(self._chunks.table().take(int_column(positions)).columns[:-1])

    def _weighted(self, columns: Sequence[pa.Array], count: int) -> pa.RecordBatch:
        return pa.record_batch([*columns, unit_weights(count)], schema=self._schema)
