"""Rows in little memory: their numbers lie together, row by row, in as few bytes as they need.

Most of what a wide table takes as Arrow columns is empty: decimals of 16 bytes whose values need
three, and texts of which there are five. A row that is packed is also found with one look at
memory instead of one for each column, and two for each text. So texts that are about as long as
each other lie in the record too, where there is room for the longest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.cache.buffers import in_memory, records
from everview.runtime.parallel import PARALLEL_ROWS, map_parallel
from everview.runtime.vector.int_encoding import Places, as_types, of_numbers, units, values_at
from everview.store.segments import repeats
from everview.store.sort_order import counts, in_one, numbers

WIDTHS = (np.int8, np.int16, np.int32, np.int64)
TEXTS = 1 << 15
"""A text of more values than this is not a number."""
LONGEST, WASTE = 252, 2
"""Texts lie in records if none is longer, in bytes, nor more times as long as they are in the mean;
with room for a few bytes more, so that other parts of a relation are likely to fit."""
WORD, INSIDE = 4, 12
"""The bytes of a word, which fields and views of texts consist of; and of a text within a view."""
PIECE, NEAR = 1 << 20, 1 << 14
"""So many rows are packed at once, and so many unpacked: near memory holds them meanwhile."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns are packed, each in a field of a record, and the texts that numbers stand for.

    Parts of a relation have one layout where it fits them all: then they are unpacked together.
    """

    schema: pa.Schema
    type: np.dtype[np.void]
    fields: Mapping[str, str]
    texts: Mapping[str, pa.Array]
    _parts: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict)

    def part(self, names: tuple[str, ...]) -> pa.Schema:
        """The schema of some columns; the same are asked for again and again."""
        if names not in self._parts:
            self._parts[names] = pa.schema([self.schema.field(name) for name in names])
        return self._parts[names]

    def fits(self, schema: pa.Schema, widths: Mapping[str, np.dtype[Any]]) -> bool:
        """Whether these columns, and none else, have a field that is wide enough."""
        return (
            self.schema.equals(schema)
            and [*self.fields] == [*widths]
            and all(
                (width.names is None) == (self.type[field].names is None)
                and width.itemsize <= self.type[field].itemsize
                for field, width in zip(self.fields.values(), widths.values(), strict=True)
            )
        )

    def columns(self, names: Sequence[str], packed: Places) -> dict[str, pa.Array]:
        """Some columns of packed rows as they were."""
        decimals = [name for name in names if types.is_decimal128(self.schema.field(name).type)]
        found = {name: self._column(name, packed) for name in names if name not in decimals}
        if decimals:
            digits = np.array([packed[self.fields[name]] for name in decimals], np.int64)
            targets = [self.schema.field(name).type for name in decimals]
            found |= zip(decimals, as_types(digits, targets), strict=True)
        return found

    def _column(self, name: str, packed: Places) -> pa.Array:
        values, type_ = packed[self.fields[name]], self.schema.field(name).type
        if values.dtype.names is not None:
            return _taken_out(values)
        if name in self.texts:
            return self.texts[name].take(of_numbers(values))
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
    """The rows of a table; what cannot be packed, and one column that stays apart, is as it was.

    Texts lie in the records if these take no more than `each` bytes then.
    """

    def __init__(
        self, rows: pa.Table, apart: str, like: Layout | None = None, each: float = 0
    ) -> None:
        columns = _Columns(like.texts if like else {})
        every = {
            name: columns.numbers(name, rows[name]) for name in rows.column_names if name != apart
        }
        found = {name: values for name, values in every.items() if values is not None}
        texts = {name: each for name, each in columns.texts.items() if name in found}
        slots = {name: slot for name in every if name not in found and (slot := _slot(rows[name]))}
        widths = {name: _width(values) for name, values in found.items()}
        if sum(width.itemsize for width in (*widths.values(), *slots.values())) <= each:
            widths |= slots
        same = like is not None and all(texts[name] is like.texts.get(name) for name in texts)
        if like is None or not (same and like.fits(rows.schema, widths)):
            fields = {name: f"f{place}" for place, name in enumerate(widths)}
            type_ = np.dtype([(fields[name], width) for name, width in widths.items()])
            like = Layout(rows.schema, type_, fields, texts)
        self.layout = like
        self._records = records(rows.num_rows if widths else 0, like.type)
        for name in widths:
            into = self._records[like.fields[name]]
            if name in found:
                into[:] = found[name]
            else:
                _put(in_one(rows[name]), into)
        self.rest = in_memory(rows.drop_columns([*widths]).combine_chunks())

    @classmethod
    def joined(cls, parts: list[Packed]) -> Packed:
        """The rows of parts with one layout, which are let go of one by one."""
        whole = cls.__new__(cls)
        whole.layout = parts[0].layout
        whole.rest = in_memory(pa.concat_tables(part.rest for part in parts).combine_chunks())
        whole._records = records(sum(len(part._records) for part in parts), whole.layout.type)
        begin = 0
        while parts:
            part = parts.pop(0)
            whole._records[begin : begin + len(part._records)] = part._records
            begin += len(part._records)
        return whole

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
        type_, count = self.layout.schema.field(name).type, len(self._records)
        pieces = (self._records[start : start + PIECE] for start in range(0, count, PIECE))
        found = [self.layout.columns([name], piece)[name] for piece in pieces]
        return pa.chunked_array(found, type_)

    def records_at(self, places: Places) -> Places:
        """What is packed of the rows at some places."""
        return self._records.take(places)


def rows_at(parts: Sequence[tuple[Packed, Places]], names: Sequence[str]) -> pa.Table:
    """The rows at some places of parts with one layout; many by all cores, in pieces."""
    if sum(len(places) for _, places in parts) < PARALLEL_ROWS:
        return _unpacked(parts, names)
    pieces = (
        (part, places[start : start + NEAR])
        for part, places in parts
        for start in range(0, len(places), NEAR)
    )
    return pa.concat_tables(map_parallel(lambda piece: _unpacked([piece], names), pieces))


def _unpacked(parts: Sequence[tuple[Packed, Places]], names: Sequence[str]) -> pa.Table:
    layout = parts[0][0].layout
    inside = [name for name in names if name in layout.fields]
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    if inside:
        found = [part.records_at(places) for part, places in parts]
        columns = layout.columns(inside, found[0] if len(found) == 1 else np.concatenate(found))
    for name in (name for name in names if name not in columns):
        taken = [values_at(in_one(part.rest[name]), places) for part, places in parts]
        columns[name] = taken[0] if len(taken) == 1 else pa.chunked_array(taken)
    return pa.table([columns[name] for name in names], layout.part(tuple(names)))


def _width(values: Places) -> np.dtype[np.signedinteger]:
    least, most = int(values.min()), int(values.max())
    fits = (w for w in WIDTHS if np.iinfo(w).min <= least and most <= np.iinfo(w).max)
    return np.dtype(next(fits))


def _slot(column: pa.ChunkedArray) -> np.dtype[Any] | None:
    """A field with room for any text of a column, None if it is to stay as it is."""
    if not types.is_string(column.type) or column.null_count or not len(column):
        return None
    sizes = pc.binary_length(column)
    longest, mean = pc.max(sizes).as_py(), pc.mean(sizes).as_py()
    if longest > min(LONGEST, WASTE * mean):
        return None
    return np.dtype([("size", np.uint8), ("text", f"V{ceil(longest / WORD) * WORD or WORD}")])


def _put(texts: pa.Array, into: Places) -> None:
    """Write texts into their fields."""
    width = into.dtype["text"].itemsize
    for start in range(0, len(texts), PIECE):
        piece, to = texts.slice(start, PIECE), into[start : start + PIECE]
        to["size"] = pc.binary_length(piece)
        padded = pc.ascii_rpad(piece, width, "\0").buffers()[2]
        to["text"] = np.frombuffer(padded, to.dtype["text"], len(piece))


def _taken_out(fields: Places) -> pa.Array:
    """The texts of some fields: as views of where they lie, which Arrow copies one by one."""
    count, width = len(fields), fields.dtype["text"].itemsize
    whole, sizes = np.ascontiguousarray(fields["text"]), fields["size"]
    words = whole.view(np.int32).reshape(count, width // WORD)
    views = np.zeros((count, 4), np.int32)
    views[:, 0], views[:, 1], views[:, 3] = sizes, words[:, 0], np.arange(count) * width
    # A text that is short enough lies in its view.
    short, inside = np.flatnonzero(sizes <= INSIDE), words[:, : INSIDE // WORD]
    if len(short):
        views[short, 1:] = 0
        views[short, 1 : 1 + inside.shape[1]] = inside[short]
    buffers = [None, pa.py_buffer(views), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.string_view(), count, buffers).cast(pa.string())
