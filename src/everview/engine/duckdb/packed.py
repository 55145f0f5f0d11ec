"""Rows in little memory: their numbers lie together, row by row, in as few bytes as they need.

Most of what a wide table takes as Arrow columns is empty: decimals of 16 bytes whose values need
three, and texts of which there are five. A row that is packed is also found with one look at
memory instead of one for each column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.engine.columns.numbers import Places, as_types, of_numbers, units
from everview.store.order import counts, in_one, numbers
from everview.store.segments import REPEATED, SAMPLE

WIDTHS = (np.int8, np.int16, np.int32, np.int64)
TEXTS = 1 << 15
"""A text of more values than this is left as it is."""


class Packed:
    """The rows of a table; what cannot be packed, and one column that stays apart, is as it was."""

    def __init__(self, rows: pa.Table, apart: str) -> None:
        self.schema = rows.schema
        self._texts: dict[str, pa.Array] = {}
        found: dict[str, Places] = {}
        for name in rows.column_names:
            values = None if name == apart else self._values(name, rows[name])
            if values is not None:
                found[name] = values.astype(_width(values), copy=False)
        self._places = {name: f"f{place}" for place, name in enumerate(found)}
        fields = [(self._places[name], values.dtype) for name, values in found.items()]
        self._numbers: Places = np.empty(rows.num_rows if fields else 0, np.dtype(fields))
        for name, values in found.items():
            self._numbers[self._places[name]] = values
        self.rest = rows.drop_columns([*found]).combine_chunks()

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        texts = sum(each.nbytes for each in self._texts.values())
        return int(self._numbers.nbytes + self.rest.nbytes + texts)

    def type_of(self, name: str) -> pa.DataType | None:
        """The type of a column of numbers without a null, None of any other."""
        type_ = self.schema.field(name).type
        if name in self._places:
            return type_ if counts(type_) else None
        column = self.rest[name]
        return type_ if counts(type_) and not column.null_count else None

    def numbers(self, name: str, places: Places) -> Places:
        """The numbers of a column at some places."""
        if name in self._places:
            return self._numbers[self._places[name]][places].astype(np.int64)
        return numbers(in_one(self.rest[name]))[places]

    def column(self, name: str) -> pa.ChunkedArray:
        """All values of a column."""
        if name not in self._places:
            return self.rest[name]
        return pa.chunked_array([self._column(name, self._numbers)])

    def at(self, places: Places, names: Sequence[str]) -> pa.Table:
        """The rows at some places."""
        packed = self._numbers[places] if any(n in self._places for n in names) else None
        apart = [name for name in names if name not in self._places]
        rest = self.rest.select(apart).take(of_numbers(places))
        columns = [
            rest[name] if packed is None or name not in self._places else self._column(name, packed)
            for name in names
        ]
        return pa.table(columns, pa.schema([self.schema.field(name) for name in names]))

    def _values(self, name: str, column: pa.ChunkedArray) -> Places | None:
        """A column as numbers, None if it is to stay as it is."""
        if column.null_count or not len(column):
            return None
        array = in_one(column)
        if counts(array.type):
            return numbers(array)
        if types.is_decimal128(array.type):
            found = units([array])
            return None if found is None else found[0]
        if types.is_string(array.type) and _repeats(array):
            encoded = array.dictionary_encode()
            if len(encoded.dictionary) < TEXTS:
                self._texts[name] = encoded.dictionary
                return numbers(encoded.indices)
        return None

    def _column(self, name: str, packed: Places) -> pa.Array:
        """A column of packed rows as it was."""
        values, type_ = packed[self._places[name]], self.schema.field(name).type
        if name in self._texts:
            return self._texts[name].take(of_numbers(values))
        if types.is_decimal128(type_):
            return as_types(values.astype(np.int64)[None], [type_])[0]
        width = np.dtype(f"i{type_.bit_width // 8}")
        whole = np.ascontiguousarray(values.astype(width, copy=False))
        return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(whole)])


def _width(values: Places) -> type:
    least, most = int(values.min()), int(values.max())
    return next(w for w in WIDTHS if np.iinfo(w).min <= least and most <= np.iinfo(w).max)


def _repeats(values: pa.Array) -> bool:
    """Whether a text has few values, as far as a part of the rows tells."""
    step = max(1, len(values) // SAMPLE)
    some = values.take(pa.array(np.arange(0, len(values), step)))
    return bool(len(pc.unique(some)) * REPEATED <= max(len(some), REPEATED))
