"""Reads row groups of a Parquet file, of which it keeps the rows with wanted keys.

Executors run this module too. It is sent to them by value, with `layouts`, and imports nothing else
of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types
from pyarrow.fs import FileSystem

from everview.store.layouts import fitted, names_in

CHUNK_ROWS = 131_072
"""So many rows are decoded at a time, at least a row group: of those only the wanted are kept."""
MAX_CODE = 2**62

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class KeyTest:
    """Which rows agree with a row of `keys` in all of its columns; null is a value like any other.

    The first column is the one that relations are sorted by. Floats are not compared by their bits
    alone, so no column may be one.
    """

    def __init__(self, keys: pa.Table) -> None:
        assert not any(types.is_floating(each) for each in keys.schema.types), keys.schema
        self.names: list[str] = keys.column_names
        columns = [_one_chunk(keys[name]) for name in self.names]
        self._sets = [column.unique() for column in columns]
        self._ints = _ascending(self._sets[0].drop_null())
        self._tuples = None
        if len(columns) > 1:
            codes, known = self._codes(columns)
            self._tuples = np.unique(codes[known])

    def positions(self, rows: pa.Table) -> Ints:
        """The places of the rows that agree, ascending."""
        found = self._first(_one_chunk(rows[self.names[0]]))
        if self._tuples is None or not len(found):
            return found
        at = pa.array(found)
        codes, known = self._codes([_one_chunk(rows[name]).take(at) for name in self.names])
        places = self._tuples.searchsorted(codes)
        agrees = self._tuples.take(places, mode="clip") == codes
        kept: Ints = found[agrees & known]
        return kept

    def _first(self, column: pa.Array) -> Ints:
        """The places where the first column agrees; sorted integers are searched."""
        if self._ints is not None and len(column) and not column.null_count:
            values = _integers(column)
            if (values[1:] >= values[:-1]).all():
                low, high = self._ints.searchsorted(values[0]), values[-1]
                keys = self._ints[low : self._ints.searchsorted(high, "right")]
                first = values.searchsorted(keys)
                return _expand(first, values.searchsorted(keys, "right") - first)
        found = pc.is_in(column, value_set=self._sets[0])
        return np.flatnonzero(found.to_numpy(zero_copy_only=False))

    def _codes(self, columns: Sequence[pa.Array]) -> tuple[Ints, Any]:
        """An integer for each row of values that all occur in the keys, and whether they do.

        Columns that make the integers too large are left aside.
        """
        codes = np.zeros(len(columns[0]), np.int64)
        known, width = np.ones(len(columns[0]), np.bool_), 1
        for column, values in zip(columns, self._sets, strict=True):
            if width * len(values) > MAX_CODE:
                break
            at = pc.index_in(column, value_set=values)
            known &= at.is_valid().to_numpy(zero_copy_only=False)
            codes = codes * len(values) + at.fill_null(0).to_numpy()
            width *= len(values)
        return codes, known


class SliceReader:
    """Reads parts of several slices, each given by its keys and its schema as Arrow writes them.

    A slice has at most so many rows, and all that is read at once at most so many bytes.
    """

    def __init__(
        self,
        keys: Sequence[bytes | None],
        schemas: Sequence[bytes],
        most: int,
        most_bytes: int,
    ) -> None:
        self._tests = [None if each is None else KeyTest(_unpacked(each)) for each in keys]
        self._schemas = [pa.ipc.read_schema(pa.py_buffer(each)) for each in schemas]
        self._most, self._most_bytes = most, most_bytes

    def read(
        self, parts: Sequence[tuple[int, str, int | None, list[int]]]
    ) -> Iterator[tuple[int, bytes | None]]:
        """The rows of each slice in some files and row groups, None where they are too many."""
        size = 0
        for number in sorted({number for number, *_ in parts}):
            schema, test = self._schemas[number], self._tests[number]
            tables, count = [schema.empty_table()], 0
            for _, path, layout, groups in (part for part in parts if part[0] == number):
                filesystem, inside = FileSystem.from_uri(path)
                with filesystem.open_input_file(inside) as source:
                    parquet = pq.ParquetFile(source, page_checksum_verification=True)
                    tables.append(read_groups(parquet, groups, schema, test, layout))
                count += tables[-1].num_rows
                size += tables[-1].nbytes
                if count > self._most or size > self._most_bytes:
                    yield number, None
                    return
            yield number, packed(pa.concat_tables(tables))


def packed(rows: pa.Table) -> bytes:
    """Rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _unpacked(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def chunks(groups: Sequence[int], metadata: pq.FileMetaData) -> Iterator[list[int]]:
    """Row groups in parts that are decoded at a time."""
    part: list[int] = []
    size = 0
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if part and size + rows > CHUNK_ROWS:
            yield part
            part, size = [], 0
        part.append(group)
        size += rows
    if part:
        yield part


def read_groups(
    parquet: pq.ParquetFile,
    groups: Sequence[int],
    schema: pa.Schema,
    test: KeyTest | None,
    layout: int | None = None,
) -> pa.Table:
    """The rows of some row groups that pass a test, with the columns and types of `schema`.

    `layout` is the former layout of the file, if it has one.
    Of a row group in which no key is found only the keys are decoded.
    """
    if test is None:
        return _columns(parquet, groups, schema, layout)
    wanted = pa.schema([schema.field(name) for name in test.names])
    keys = _columns(parquet, groups, wanted, layout)
    places = test.positions(keys)
    if not len(places):
        return schema.empty_table()
    found = {name: keys[name].take(pa.array(places)) for name in test.names}
    rest = pa.schema([field for field in schema if field.name not in found])
    if len(rest):
        ends = np.cumsum([parquet.metadata.row_group(group).num_rows for group in groups])
        which = ends.searchsorted(places, "right")
        hit, which_hit = np.unique(which, return_inverse=True)
        starts = np.concatenate(([0], ends))
        sizes = ends[hit] - starts[hit]
        places = places - starts[which] + (np.cumsum(sizes) - sizes)[which_hit]
        rows = _columns(parquet, [groups[at] for at in hit], rest, layout)
        found |= {name: rows[name].take(pa.array(places)) for name in rest.names}
    return pa.table([found[name] for name in schema.names], schema)


def _columns(
    parquet: pq.ParquetFile, groups: Sequence[int], schema: pa.Schema, layout: int | None
) -> pa.Table:
    names = names_in(schema, layout)
    rows = parquet.read_row_groups(groups, columns=names, use_threads=False)
    # The header of a page has no checksum: one that is damaged may promise fewer rows.
    wanted = sum(parquet.metadata.row_group(group).num_rows for group in groups)
    if rows.num_rows != wanted:
        raise pa.ArrowInvalid(f"row groups have {rows.num_rows} rows, not {wanted}")
    return fitted(rows.replace_schema_metadata(None), schema, layout)


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _ascending(values: pa.Array) -> Ints | None:
    """Values in order, None where they are not stored as integers."""
    type_ = values.type
    if not (types.is_integer(type_) or types.is_date32(type_) or types.is_timestamp(type_)):
        return None
    return np.sort(_integers(values))


def _integers(values: pa.Array) -> Ints:
    """Values that are stored as integers."""
    if types.is_date32(values.type):
        values = values.view(pa.int32())
    elif types.is_timestamp(values.type):
        values = values.view(pa.int64())
    found: Ints = values.to_numpy()
    return found


def _expand(first: Ints, counts: Ints) -> Ints:
    """The places from each `first` on, so many of each."""
    ends = np.cumsum(counts)
    if not len(ends):
        return ends
    shifted: Ints = np.repeat(first - (ends - counts), counts)
    return shifted + np.arange(ends[-1])
