"""Rows in little memory: their numbers lie together, row by row, in as few bytes as they need.

Most of what a wide table takes as Arrow columns is empty: decimals of 16 bytes whose values need
three, and texts of which there are five. A row that is packed is also found with one look at
memory instead of one for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.engine.columns.numbers import Places, as_types, of_numbers, units
from everview.engine.duckdb.room import in_memory, records
from everview.store.order import counts, in_one, numbers
from everview.store.segments import repeats

WIDTHS = (np.int8, np.int16, np.int32, np.int64)
TEXTS = 1 << 15
"""A text of more values than this is left as it is."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns are packed, each in a field of a record, and the texts that numbers stand for.

    Parts of a relation have one layout where it fits them all: then they are unpacked together.
    """

    schema: pa.Schema
    type: np.dtype[np.void]
    fields: Mapping[str, str]
    texts: Mapping[str, pa.Array]

    def fits(self, schema: pa.Schema, found: Mapping[str, Places]) -> bool:
        """Whether these columns, and none else, have a field that is wide enough."""
        return (
            self.schema.equals(schema)
            and [*self.fields] == [*found]
            and all(
                _width(found[n]).itemsize <= self.type[f].itemsize for n, f in self.fields.items()
            )
        )

    def column(self, name: str, packed: Places) -> pa.Array:
        """A column of packed rows as it was."""
        values, type_ = packed[self.fields[name]], self.schema.field(name).type
        if name in self.texts:
            return self.texts[name].take(of_numbers(values))
        if types.is_decimal128(type_):
            return as_types(values.astype(np.int64)[None], [type_])[0]
        width = np.dtype(f"i{type_.bit_width // 8}")
        whole = np.ascontiguousarray(values.astype(width, copy=False))
        return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(whole)])


@dataclass
class _Columns:
    """The columns of a table as numbers, and texts that they stand for: known ones if they do."""

    known: Mapping[str, pa.Array]
    texts: dict[str, pa.Array] = field(default_factory=dict)

    def numbers(self, name: str, column: pa.ChunkedArray) -> Places | None:
        """A column as numbers, None if it is to stay as it is."""
        if column.null_count or not len(column):
            return None
        array = in_one(column)
        if counts(array.type):
            return numbers(array)
        if types.is_decimal128(array.type):
            found = units([array])
            return None if found is None else found[0]
        if types.is_string(array.type) and repeats(array):
            return self._coded(name, array)
        return None

    def _coded(self, name: str, array: pa.Array) -> Places | None:
        encoded = array.dictionary_encode()
        codes, texts = numbers(encoded.indices), encoded.dictionary
        known = self.known.get(name)
        same = None if known is None else pc.index_in(texts, value_set=known)
        if known is not None and same is not None and not same.null_count:
            codes, texts = numbers(same)[codes], known
        self.texts[name] = texts
        return codes if len(texts) < TEXTS else None


class Packed:
    """The rows of a table; what cannot be packed, and one column that stays apart, is as it was."""

    def __init__(self, rows: pa.Table, apart: str, like: Layout | None = None) -> None:
        columns = _Columns(like.texts if like else {})
        every = {
            name: columns.numbers(name, rows[name]) for name in rows.column_names if name != apart
        }
        found = {name: values for name, values in every.items() if values is not None}
        texts = {name: each for name, each in columns.texts.items() if name in found}
        same = like is not None and all(texts[name] is like.texts.get(name) for name in texts)
        if like is None or not (same and like.fits(rows.schema, found)):
            fields = {name: f"f{place}" for place, name in enumerate(found)}
            widths = [(fields[name], _width(values)) for name, values in found.items()]
            like = Layout(rows.schema, np.dtype(widths), fields, texts)
        self.layout = like
        self._records = records(rows.num_rows if found else 0, like.type)
        for name, values in found.items():
            self._records[like.fields[name]] = values
        self.rest = in_memory(rows.drop_columns([*found]).combine_chunks())

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        texts = sum(each.nbytes for each in self.layout.texts.values())
        return int(self._records.nbytes + self.rest.nbytes + texts)

    def type_of(self, name: str) -> pa.DataType | None:
        """The type of a column of numbers without a null, None of any other."""
        type_ = self.layout.schema.field(name).type
        if not counts(type_):
            return None
        packed = name in self.layout.fields
        return type_ if packed or not self.rest[name].null_count else None

    def numbers(self, name: str, places: Places) -> Places:
        """The numbers of a column at some places."""
        field = self.layout.fields.get(name)
        if field is None:
            found: Places = numbers(in_one(self.rest[name]))[places]
            return found
        return self._records[field][places].astype(np.int64)

    def column(self, name: str) -> pa.ChunkedArray:
        """All values of a column."""
        if name not in self.layout.fields:
            return self.rest[name]
        return pa.chunked_array([self.layout.column(name, self._records)])

    def records_at(self, places: Places) -> Places:
        """What is packed of the rows at some places."""
        return self._records.take(places)


def rows_at(parts: Sequence[tuple[Packed, Places]], names: Sequence[str]) -> pa.Table:
    """The rows at some places of parts with one layout."""
    layout = parts[0][0].layout
    inside = [name for name in names if name in layout.fields]
    outside = [name for name in names if name not in layout.fields]
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    if inside:
        packed = np.concatenate([part.records_at(places) for part, places in parts])
        columns |= {name: layout.column(name, packed) for name in inside}
    if outside:
        taken = (part.rest.select(outside).take(of_numbers(places)) for part, places in parts)
        rest = pa.concat_tables(taken)
        columns |= zip(outside, rest.columns, strict=True)
    schema = pa.schema([layout.schema.field(name) for name in names])
    return pa.table([columns[name] for name in names], schema)


def _width(values: Places) -> np.dtype[np.signedinteger]:
    least, most = int(values.min()), int(values.max())
    fits = (w for w in WIDTHS if np.iinfo(w).min <= least and most <= np.iinfo(w).max)
    return np.dtype(next(fits))
