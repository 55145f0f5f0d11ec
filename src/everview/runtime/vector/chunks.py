"""Rows that come piece by piece and are taken by their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from everview.runtime.vector.batches import FEW, batch, ones
from everview.runtime.vector.int_encoding import Ints, grow, int_column, is_int_column

PIECES = 32
"""To take rows from so many pieces costs less than to make them fewer."""


class Pieces:
    """Batches one after the other: few, however many come, and no row is moved often."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows at the end."""
        self._rows += rows.num_rows
        if len(self._batches) >= PIECES:
            while self._batches and self._batches[-1].num_rows <= 2 * rows.num_rows:
                rows = pa.concat_batches([self._batches.pop(), rows])
        self._batches.append(rows)

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self._batches, self._schema)

    def take(self, places: Ints) -> pa.RecordBatch:
        """The rows at some places, which ascend."""
        first = self._rows - self._batches[-1].num_rows
        if places[0] < first:
            if self._rows > FEW:
                return batch(self.table().take(int_column(places)))
            self._batches, first = [pa.concat_batches(self._batches)], 0
        last = self._batches[-1]
        if places[-1] - places[0] == len(places) - 1:
            return last.slice(int(places[0]) - first, len(places))
        return last.take(int_column(places - first))


class Rows:
    """Columns that grow: whole numbers as arrays, and whatever else comes as pieces."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._fields = list(schema)[:-1]
        self._count = 0
        self._pieces: Pieces | None = None
        self._numbers: list[Ints] = []
        if self._fields and all(types.is_signed_integer(field.type) for field in self._fields):
            kinds = (field.type.to_pandas_dtype() for field in self._fields)
            self._numbers = [np.zeros(0, kind) for kind in kinds]
        else:
            self._pieces = Pieces(schema)

    def append(self, columns: Sequence[pa.Array], count: int) -> None:
        """Add so many rows at the end."""
        if self._pieces is None and not all(map(is_int_column, columns)):
            known = self._weighted(self.at(np.arange(self._count)), self._count)
            self._pieces = Pieces(self._schema)
            self._pieces.append(known)
        if self._pieces is not None:
            self._pieces.append(self._weighted(columns, count))
            return
        end = self._count + count
        self._numbers = [grow(known, end) for known in self._numbers]
        for known, column in zip(self._numbers, columns, strict=True):
            known[self._count : end] = column.to_numpy()
        self._count = end

    def at(self, places: Ints) -> list[pa.Array]:
        """The columns of the rows at some places, which ascend."""
        if self._pieces is None:
            return [int_column(known[places]) for known in self._numbers]
        rows = self._pieces.take(places)
        return [rows.column(place) for place in range(len(self._fields))]

    def again(self, places: Ints) -> list[pa.ChunkedArray | pa.Array]:
        """The columns of the rows at any places."""
        if self._pieces is None:
            return list(self.at(places))
        return list(self._pieces.table().take(int_column(places)).columns[:-1])

    def _weighted(self, columns: Sequence[pa.Array], count: int) -> pa.RecordBatch:
        return pa.record_batch([*columns, ones(count)], schema=self._schema)
