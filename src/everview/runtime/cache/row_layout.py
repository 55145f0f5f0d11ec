"""Row-major encoding of a table: which columns go into a fixed-width record, and in which bytes.

Arrow gives a decimal 16 bytes even if its values need three, and a text its bytes even if there are
five different ones. A record holds each value in the narrowest integer that fits its column, and
texts that repeat as dictionary codes. Fetching a row then costs one cache miss, not one per column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.runtime.parallel import PARALLEL_MIN_ROWS, map_parallel
from everview.runtime.vector.int_encoding import (
    Ints,
    from_unscaled,
    int_column,
    take_values,
    unscaled,
)
from everview.store.segments import has_few_values
from everview.store.sort_order import is_integer_like, numbers, single_chunk

DICTIONARY_MAX_VALUES = 1 << 15
"""A text column of more different values than this stays Arrow."""
UNPACK_ALL_CHUNK_ROWS, UNPACK_CHUNK_ROWS = 1 << 20, 1 << 14
"""Rows that are unpacked at once, of a whole column and of a lookup: they should fit the cache."""
_WIDTHS = (np.int8, np.int16, np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class RowLayout:
    """The record of a packed row: a field per packed column, and the dictionaries of texts.

    Parts of a relation share one layout where it fits them all, and can then be unpacked together.
    """

    schema: pa.Schema
    record: np.dtype[np.void]
    fields: Mapping[str, str]
    dictionaries: Mapping[str, pa.Array]
    _selections: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict)

    def select(self, names: tuple[str, ...]) -> pa.Schema:
        """The schema of some columns, cached."""
        if names not in self._selections:
            self._selections[names] = pa.schema([self.schema.field(name) for name in names])
        return self._selections[names]

    def fits(self, schema: pa.Schema, widths: Mapping[str, np.dtype[Any]]) -> bool:
        """Whether exactly these columns are packed, each in a field that is wide enough."""
        return (
            self.schema.equals(schema)
            and [*self.fields] == [*widths]
            and all(
                width.itemsize <= self.record[self.fields[name]].itemsize
                for name, width in widths.items()
            )
        )

    def unpack(self, names: Sequence[str], records: Ints) -> dict[str, pa.Array]:
        """Some columns of records as Arrow arrays."""
        decimals = [name for name in names if types.is_decimal128(self.schema.field(name).type)]
        columns = {name: self._unpack_one(name, records) for name in names if name not in decimals}
        if decimals:
            units = np.array([records[self.fields[name]] for name in decimals], np.int64)
            targets = [self.schema.field(name).type for name in decimals]
            columns |= zip(decimals, from_unscaled(units, targets), strict=True)
        return columns

    def _unpack_one(self, name: str, records: Ints) -> pa.Array:
        values, type_ = records[self.fields[name]], self.schema.field(name).type
        if name in self.dictionaries:
            return self.dictionaries[name].take(int_column(values))
        width = np.dtype(f"i{type_.bit_width // 8}")
        whole = np.ascontiguousarray(values.astype(width, copy=False))
        return pa.Array.from_buffers(type_, len(whole), [None, pa.py_buffer(whole)])


class PackedRows:
    """A table whose integer-valued columns are records; `rest` holds the others as Arrow.

    One column stays `apart` in `rest` even if it could be packed: the sort key, which is searched.
    """

    def __init__(self, rows: pa.Table, apart: str, like: RowLayout | None = None) -> None:
        shared = like.dictionaries if like else {}
        columns: dict[str, Ints] = {}
        dictionaries: dict[str, pa.Array] = {}
        for name in (name for name in rows.column_names if name != apart):
            encoded = _encode(rows[name], shared.get(name))
            if encoded is not None:
                columns[name] = encoded.values
                if encoded.dictionary is not None:
                    dictionaries[name] = encoded.dictionary
        widths = {name: _width(values) for name, values in columns.items()}
        same = all(each is shared.get(name) for name, each in dictionaries.items())
        if like is None or not (same and like.fits(rows.schema, widths)):
            fields = {name: f"f{place}" for place, name in enumerate(widths)}
            record = np.dtype([(fields[name], width) for name, width in widths.items()])
            like = RowLayout(rows.schema, record, fields, dictionaries)
        self.layout = like
        self.records: Ints = np.empty(rows.num_rows if widths else 0, like.record)
        for name, values in columns.items():
            self.records[like.fields[name]] = values
        self.rest = rows.drop_columns([*widths]).combine_chunks()

    @classmethod
    def concatenate(cls, parts: list[PackedRows]) -> PackedRows:
        """The rows of parts with one layout; `parts` is emptied as they are copied."""
        whole = cls.__new__(cls)
        whole.layout = parts[0].layout
        whole.rest = pa.concat_tables(part.rest for part in parts).combine_chunks()
        whole.records = np.empty(sum(len(part.records) for part in parts), whole.layout.record)
        begin = 0
        while parts:
            part = parts.pop(0)
            whole.records[begin : begin + len(part.records)] = part.records
            begin += len(part.records)
        return whole

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        dictionaries = sum(each.nbytes for each in self.layout.dictionaries.values())
        return int(self.records.nbytes + self.rest.nbytes + dictionaries)

    def integer_type(self, name: str) -> pa.DataType | None:
        """The type of an integer-valued column without nulls, None of any other."""
        type_ = self.layout.schema.field(name).type
        if not is_integer_like(type_):
            return None
        packed = name in self.layout.fields
        return type_ if packed or not self.rest[name].null_count else None

    def integers(self, name: str, places: Ints) -> Ints:
        """An integer-valued column at some places."""
        field = self.layout.fields.get(name)
        if field is None:
            values: Ints = numbers(single_chunk(self.rest[name]))[places]
            return values
        return self.records[field][places].astype(np.int64)

    def column(self, name: str) -> pa.ChunkedArray:
        """All values of a column."""
        if name not in self.layout.fields:
            return self.rest[name]
        starts = range(0, len(self.records), UNPACK_ALL_CHUNK_ROWS)
        chunks = (self.records[start : start + UNPACK_ALL_CHUNK_ROWS] for start in starts)
        arrays = [self.layout.unpack([name], chunk)[name] for chunk in chunks]
        return pa.chunked_array(arrays, self.layout.schema.field(name).type)


def take_rows(parts: Sequence[tuple[PackedRows, Ints]], names: Sequence[str]) -> pa.Table:
    """The rows at some places of parts with one layout; of many rows on all cores, in chunks."""
    if sum(len(places) for _, places in parts) < PARALLEL_MIN_ROWS:
        return _take_from_all(parts, names)
    chunks = (
        (part, places[start : start + UNPACK_CHUNK_ROWS])
        for part, places in parts
        for start in range(0, len(places), UNPACK_CHUNK_ROWS)
    )
    return pa.concat_tables(map_parallel(lambda chunk: _take_from_all([chunk], names), chunks))


def _take_from_all(parts: Sequence[tuple[PackedRows, Ints]], names: Sequence[str]) -> pa.Table:
    layout = parts[0][0].layout
    packed = [name for name in names if name in layout.fields]
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    if packed:
        records = [part.records.take(places) for part, places in parts]
        together = records[0] if len(records) == 1 else np.concatenate(records)
        columns = layout.unpack(packed, together)
    for name in (name for name in names if name not in columns):
        taken = [take_values(single_chunk(part.rest[name]), places) for part, places in parts]
        columns[name] = taken[0] if len(taken) == 1 else pa.chunked_array(taken)
    return pa.table([columns[name] for name in names], layout.select(tuple(names)))


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A column as integers: its values, units of a decimal, or codes of a dictionary."""

    values: Ints
    dictionary: pa.Array | None = None


def _encode(column: pa.ChunkedArray, shared: pa.Array | None) -> _Encoded | None:
    """A column as integers, by the `shared` dictionary if it has all texts; None to leave it."""
    if column.null_count or not len(column):
        return None
    array = single_chunk(column)
    if is_integer_like(array.type):
        return _Encoded(numbers(array))
    if types.is_decimal128(array.type):
        units = unscaled([array])
        return None if units is None else _Encoded(units[0])
    if types.is_string(array.type) and has_few_values(array):
        return _encode_texts(array, shared)
    return None


def _encode_texts(array: pa.Array, shared: pa.Array | None) -> _Encoded | None:
    encoded = array.dictionary_encode()
    codes, dictionary = numbers(encoded.indices), encoded.dictionary
    if len(dictionary) >= DICTIONARY_MAX_VALUES:
        return None
    known = None if shared is None else pc.index_in(dictionary, value_set=shared)
    if known is not None and not known.null_count:
        return _Encoded(numbers(known)[codes], shared)
    return _Encoded(codes, dictionary)


def _width(values: Ints) -> np.dtype[np.signedinteger]:
    least, most = int(values.min()), int(values.max())
    fits = (w for w in _WIDTHS if np.iinfo(w).min <= least and most <= np.iinfo(w).max)
    return np.dtype(next(fits))
