"""Append-only hash index: rows in memory by the values of some columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from everview.runtime.vector.batches import empty_batch
from everview.runtime.vector.chunks import AppendOnlyRows
from everview.runtime.vector.row_ids import identities


class KeyIndex:
    """Weighted rows by their keys; null is a key like any other.

    Adding costs by the rows added, and finding by the keys and what they find.
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._schema = schema
        self._keys = [schema.get_field_index(key) for key in keys]
        # The weights are kept like any other column, so another one stands for the weight.
        self._rows = AppendOnlyRows(schema.append(pa.field("/", pa.int64())))
        self._places: defaultdict[Any, list[int]] = defaultdict(list)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        if not rows.num_rows:
            return
        keys = identities([rows.column(place) for place in self._keys], rows.num_rows)
        for place, key in enumerate(keys, self._count):
            self._places[key].append(place)
        self._rows.append(rows.columns, rows.num_rows)
        self._count += rows.num_rows

    def find(self, probe: pa.RecordBatch, columns: Sequence[int]) -> pa.RecordBatch:
        """The rows whose keys are those of a row of `probe`, in some of its columns."""
        keys = {*identities([probe.column(place) for place in columns], probe.num_rows)}
        found = (self._places[key] for key in keys if key in self._places)
        places = np.fromiter(chain.from_iterable(found), np.int64)
        if not len(places):
            return empty_batch(self._schema)
        places.sort()
        return pa.record_batch(self._rows.take(places), schema=self._schema)
