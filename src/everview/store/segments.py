"""Segments as Parquet files: sorted by key, in row groups small enough to skip."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import ceil
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from everview.expr.types import INT64_DIGITS, WEIGHT
from everview.store import checksums
from everview.store.bounds import UNKNOWN, Range, range_of_sorted, range_of_statistics
from everview.store.checksums import checksum
from everview.store.filesystem import Folder
from everview.store.manifest import DataFile, Kind, Segment, Tail
from everview.store.sort_order import in_order

ROW_GROUP_ROWS, KEYED_ROW_GROUP_ROWS = 131_072, 16_384
"""Where rows are sorted by a key, who looks a few keys up reads a few row groups."""
PART_MIN_ROWS = 131_072
"""Fewer rows are not divided to be written in parallel."""
DENSE_CODEC, FAST_CODEC = "zstd", "lz4"
"""Compaction writes dense files; fast ones take 30 % less time and 20 % more bytes (TPC-H lines).
Dictionaries and statistics of all columns are most of the time of a small file."""
DICTIONARY_SAMPLE_ROWS, DICTIONARY_MIN_REPEATS = 1024, 8
"""A column gets a dictionary where, in a sample, each value occurs so often on average."""
INSPECT_THREADS = 8
_PLAIN = re.compile(r"[a-z][a-z0-9_]{0,99}")


def folder_of(relation: str) -> str:
    """The folder of a relation: its name where that is safe on every filesystem.

    Spark hides names that begin with `_` and reads `a=b` as a partition, hence the care.

    >>> folder_of("orders"), folder_of("Größe=1")
    ('segments/orders', 'segments/gr-e-1-e9e9fd20')
    """
    if _PLAIN.fullmatch(relation):
        return f"segments/{relation}"
    slug = re.sub(r"[^a-z0-9]+", "-", relation.lower()).strip("-")[:40] or "relation"
    return f"segments/{slug}-{blake2b(relation.encode(), digest_size=4).hexdigest()}"


def fresh_id(epoch: int) -> str:
    """A name no other segment has, beginning with the epoch that is to own it."""
    return f"{epoch:010d}-{token_hex(8)}"


def epoch_of(name: str) -> int | None:
    """The epoch in the name of a segment's file or folder, None for any other name.

    >>> epoch_of("0000000012-00ff00ff00ff00ff.parquet"), epoch_of("notes.txt")
    (12, None)
    """
    found = re.match(r"(\d+)-[0-9a-f]{16}(\.parquet|\.arrow)?$", name)
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class NewSegment:
    """What a segment to be written is: of which relation and epoch, and sorted by what."""

    relation: str
    epoch: int
    sort_by: tuple[str, ...] = ()
    kind: Kind = "change"

    def of(self, files: Iterable[DataFile], id_: str | None = None) -> Segment:
        """The segment, once its files are written."""
        return Segment(id_ or fresh_id(self.epoch), self.epoch, self.kind, (*files,), self.sort_by)


def write(folder: Folder, new: NewSegment, table: pa.Table, *, dense: bool = False) -> Segment:
    """Write a table as a new file, or as several in parallel; no rows need no file.

    Nothing is committed by it.
    """
    directory = folder_of(new.relation)

    def written(part: pa.Table) -> DataFile:
        path = f"{directory}/{fresh_id(new.epoch)}.parquet"
        return _written(folder, path, part, new.sort_by, dense=dense)

    parts = _parts(in_order(table, new.sort_by))
    if len(parts) < 2:
        return new.of(map(written, parts))
    with ThreadPoolExecutor(len(parts)) as pool:
        return new.of(pool.map(written, parts))


def write_parts(
    folder: Folder, new: NewSegment, parts: Iterable[pa.Table], *, dense: bool = False
) -> Segment:
    """Write rows that come in parts, all of them in order, each as one new file.

    However many they are, one part of them has to be in memory. Whatever ends it before its end,
    what was written goes: it may be much, and the disk full.
    """
    id_ = fresh_id(new.epoch)
    directory = f"{folder_of(new.relation)}/{id_}"
    numbered = enumerate(part for part in parts if part.num_rows)
    files = (
        _written(folder, f"{directory}/{number:06d}.parquet", rows, new.sort_by, dense=dense)
        for number, rows in numbered
    )
    try:
        return new.of(files, id_)
    except BaseException:
        with suppress(OSError):
            folder.remove(directory)
        raise


def adopt(folder: Folder, new: NewSegment, directory: str) -> Segment:
    """Register the Parquet files with rows that others wrote into `directory`."""
    names = [name for name in folder.names(directory) if _is_data(name)]
    paths = [f"{directory}/{name}" for name in names]
    with ThreadPoolExecutor(INSPECT_THREADS) as pool:
        files = [*pool.map(lambda path: _inspect(folder, path, new.sort_by), paths)]
    return new.of((file for file in files if file.rows), directory.rpartition("/")[2])


def read(folder: Folder, file: DataFile, columns: Sequence[str] | None) -> pa.Table:
    """The rows of a file; `Damage` is raised for one that is not what the manifest says.

    A Parquet file without page checksums has to be verified whole before.
    """
    names = None if columns is None else list(columns)
    checksums.verify_size(folder, file)
    if file.start is not None:
        rows = checksums.verified_piece(folder, file)
        return rows if names is None else rows.select(names)
    with folder.filesystem.open_input_file(folder.inside(file.path)) as source:
        table = checksums.opened(source, file).read(columns=names)
    return table.replace_schema_metadata(None)


def read_batches(folder: Folder, file: DataFile, size: int) -> Iterator[pa.Table]:
    """The rows of a Parquet file in their order, `size` at a time, as `read` verifies them."""
    checksums.verify_size(folder, file)
    with folder.filesystem.open_input_file(folder.inside(file.path)) as source:
        for batch in checksums.opened(source, file).iter_batches(size):
            yield pa.Table.from_batches([batch]).replace_schema_metadata(None)


def _written(
    folder: Folder, path: str, rows: pa.Table, keys: tuple[str, ...], *, dense: bool
) -> DataFile:
    """Rows in their order as a new file."""
    content = _parquet(rows, _encoding(rows, keys, dense))
    folder.write(path, content)
    known = range_of_sorted(rows[keys[0]]) if keys else UNKNOWN
    tail = _tail(pa.BufferReader(content))
    file = _file(path, rows.num_rows, content.size, checksum([content]), known, tail)
    return replace(file, weight=weight_of(rows))


def weight_of(rows: pa.Table) -> int | None:
    """The sum of the weights of rows, None where they have none."""
    if WEIGHT not in rows.schema.names:
        return None
    return int(pc.sum(rows[WEIGHT]).as_py() or 0)


def _parts(rows: pa.Table) -> list[pa.Table]:
    """Rows in as many parts as can be written at once; few are one part, none are none."""
    count = max(1, min(os.cpu_count() or 1, rows.num_rows // PART_MIN_ROWS))
    size = max(1, ceil(rows.num_rows / count))
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def _parquet(table: pa.Table, encoding: Mapping[str, Any]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    how = {"write_page_index": True, "write_page_checksum": True, **encoding}
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def _encoding(rows: pa.Table, keys: tuple[str, ...], dense: bool) -> dict[str, Any]:
    """How columns are encoded: densely, or fast where somebody waits for it.

    Floats have no statistics: the least and the greatest leave out NaN, which is greater than all
    others, and readers would take every row for one between them.
    """
    nested = {field.name for field in rows.schema if types.is_nested(field.type)}
    # To Parquet `a.b` is the field b of a struct a as well.
    flat = [field for field in rows.schema if nested.isdisjoint(_prefixes(field.name))]
    repeating = _repeating(rows.select([field.name for field in flat]))
    near = [
        field.name
        for field in flat
        if field.name not in repeating and _is_parquet_integer(field.type)
    ]
    codec = DENSE_CODEC if dense else FAST_CODEC
    rest = {name: codec for name in rows.column_names if name not in near}
    return {
        "row_group_size": KEYED_ROW_GROUP_ROWS if keys else ROW_GROUP_ROWS,
        "compression": codec if nested else rest,
        "store_decimal_as_integer": True,
        "use_dictionary": repeating,
        "column_encoding": dict.fromkeys(near, "DELTA_BINARY_PACKED"),
        "write_statistics": [
            field.name
            for field in flat
            if (dense or field.name in keys) and not types.is_floating(field.type)
        ],
    }


def _prefixes(name: str) -> list[str]:
    """The paths that a dotted name may stand below, and the name itself."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _is_parquet_integer(type_: pa.DataType) -> bool:
    """Whether Parquet stores a type as integers, which delta encoding makes small at least cost."""
    if types.is_decimal(type_):
        return bool(type_.precision <= INT64_DIGITS)
    return bool(types.is_integer(type_) or types.is_date32(type_) or types.is_timestamp(type_))


def _repeating(rows: pa.Table) -> list[str]:
    """The columns with few distinct values, judged by a sample."""
    if rows.num_rows < DICTIONARY_MIN_REPEATS * DICTIONARY_SAMPLE_ROWS:
        return []
    some = rows.take(_sample_places(rows.num_rows))
    return [name for name in some.column_names if _few_distinct(some[name])]


def has_few_values(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column has few distinct values, judged by a sample."""
    return _few_distinct(column.take(_sample_places(len(column))))


def _sample_places(count: int) -> pa.Array:
    """The row numbers of an evenly spaced sample."""
    return pa.array(range(0, count, max(1, count // DICTIONARY_SAMPLE_ROWS)), pa.int64())


def _few_distinct(some: pa.Array | pa.ChunkedArray) -> bool:
    return bool(
        len(pc.unique(some)) * DICTIONARY_MIN_REPEATS <= max(len(some), DICTIONARY_MIN_REPEATS)
    )


def _inspect(folder: Folder, path: str, keys: tuple[str, ...]) -> DataFile:
    """What the manifest has to know about a file, from its tail alone: it may be large."""
    with folder.filesystem.open_input_file(folder.inside(path)) as source:
        metadata, size = pq.read_metadata(source), source.size()
        tail = checksums.tail_of(source, metadata)
    known = _range(metadata, keys[0]) if keys else UNKNOWN
    file = _file(path, metadata.num_rows, size, None, known, tail)
    return replace(file, weight=_weight_in(metadata))


def _weight_in(metadata: pq.FileMetaData) -> int | None:
    """The sum of the weights in a file, if the weights of each row group are all the same."""
    names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    if WEIGHT not in names:
        return None
    found = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        told = group.column(names.index(WEIGHT)).statistics
        if told is None or not told.has_min_max or told.min != told.max or told.null_count:
            return None
        found += told.min * group.num_rows
    return found


def _tail(source: pa.NativeFile) -> Tail:
    return checksums.tail_of(source, pq.read_metadata(source))


def _range(metadata: pq.FileMetaData, key: str) -> Range:
    names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    if key not in names:
        return UNKNOWN
    at, type_ = names.index(key), metadata.schema.to_arrow_schema().field(key).type
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    return range_of_statistics((group.column(at).statistics for group in groups), type_)


def _file(path: str, rows: int, size: int, check: str | None, known: Range, tail: Tail) -> DataFile:
    return DataFile(path, rows, size, check, known.low, known.high, known.has_null, tail=tail)


def _is_data(name: str) -> bool:
    """Spark leaves `_SUCCESS` and `.part-….crc` beside the data."""
    return name.endswith(".parquet") and not name.startswith(("_", "."))
