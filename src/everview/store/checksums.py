"""Which bytes of a stored file are proven by what, before its rows are used.

| bytes of a Parquet file | proven by | verified |
|---|---|---|
| data and dictionary pages | a CRC-32 in each page header | by pyarrow and Spark, as they read |
| page headers | the page, the footer | a changed one contradicts them, or says the same |
| indexes, Bloom filters, footer: the *tail* | a CRC-32 in the manifest | here, at each read |
| all of them | a CRC-32 in the manifest, if written here | once per file and process |

The tail is all that lies behind the last page, so no byte is left out; to verify it costs one short
read, however large the file. DuckDB verifies nothing: a file is verified whole before DuckDB first
reads it. So is a file from before pages had checksums, whoever reads it. A piece of a shared file
has a CRC-32 of its own, which is verified at each read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from everview.store.filesystem import Folder
from everview.store.manifest import DataFile, Tail

CHUNK = 1 << 20
NOT_AS_WRITTEN = "its checksum does not match its content"
MISSING = "it is missing"
_READING = {"page_checksum_verification": True}


class Damage(Exception):  # noqa: N818  (a finding, which the store makes an error that names the file)
    """What is wrong with a file."""


def checksum(chunks: Iterable[pa.Buffer | bytes]) -> str:
    """CRC-32 of the bytes: guards against damage, not malice, at the speed of memory.

    >>> checksum([b"ever", b"view"]) == checksum([b"everview"])
    True
    """
    value = 0
    for chunk in chunks:
        value = zlib.crc32(chunk, value)
    return f"crc32:{value:08x}"


def tail_of(source: pa.NativeFile, metadata: pq.FileMetaData) -> Tail:
    """What the manifest has to know about all that lies behind the last page of a file."""
    size = source.size()
    start = _end_of_pages(metadata)
    source.seek(start)
    return Tail(size - start, checksum([source.read_buffer(size - start)]))


def opened(source: pa.NativeFile, file: DataFile) -> pq.ParquetFile:
    """A Parquet file whose tail is as it was written, and whose pages are verified as read."""
    if file.tail is None:
        parquet = pq.ParquetFile(source, **_READING)
    else:
        source.seek(source.size() - file.tail.bytes)
        tail = source.read_buffer(file.tail.bytes)
        if checksum([tail]) != file.tail.checksum:
            raise Damage(NOT_AS_WRITTEN)
        parquet = verified(source, pq.read_metadata(pa.BufferReader(tail)))
    if parquet.metadata.num_rows != file.rows:
        raise Damage(f"it has {parquet.metadata.num_rows} rows, not {file.rows}")
    return parquet


def verified(source: pa.NativeFile, metadata: pq.FileMetaData) -> pq.ParquetFile:
    """A Parquet file by a footer that is known to be right, whose pages are verified as read."""
    return pq.ParquetFile(source, metadata=metadata, **_READING)


def verify_tail(folder: Folder, file: DataFile) -> None:
    """Raise `Damage` if the tail of a Parquet file is not as it was written."""
    with folder.filesystem.open_input_file(folder.inside(file.path)) as source:
        opened(source, file)


def verify_whole(folder: Folder, file: DataFile) -> None:
    """Raise `Damage` if a byte of a file that matters is not as it was written.

    A file that executors wrote has no checksum of its own: each of its pages is read.
    """
    if file.start is not None:
        verified_piece(folder, file)
        return
    if file.checksum is not None and checksum(_chunks(folder, file.path)) != file.checksum:
        raise Damage(NOT_AS_WRITTEN)
    with folder.filesystem.open_input_file(folder.inside(file.path)) as source:
        parquet = opened(source, file)
        if file.checksum is None:
            for group in range(parquet.num_row_groups):
                parquet.read_row_group(group)


def verified_piece(folder: Folder, file: DataFile) -> pa.Table:
    """The rows of a piece of a shared file."""
    with folder.filesystem.open_input_file(folder.inside(file.path)) as source:
        source.seek(file.start)
        content = source.read_buffer(file.bytes)
    if checksum([content]) != file.checksum:
        raise Damage(NOT_AS_WRITTEN)
    rows = pa.ipc.open_stream(content).read_all()
    if rows.num_rows != file.rows:
        raise Damage(f"it has {rows.num_rows} rows, not {file.rows}")
    return rows


def verify_size(folder: Folder, file: DataFile) -> None:
    """Raise `Damage` if a file is missing, or shorter or longer than it was."""
    size = folder.size(file.path)
    if size is None:
        raise Damage(MISSING)
    wanted = (file.start or 0) + file.bytes
    if size != wanted and (file.start is None or size < wanted):
        raise Damage(f"it has {size} bytes, not {wanted}")


def _end_of_pages(metadata: pq.FileMetaData) -> int:
    """Where the last page ends; the magic number at the beginning is all there is without pages."""
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    chunks = (group.column(at) for group in groups for at in range(group.num_columns))
    return max((_start(chunk) + chunk.total_compressed_size for chunk in chunks), default=4)


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Where a column begins: with its dictionary, if it has one."""
    first = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if not first else min(first, chunk.data_page_offset))


def _chunks(folder: Folder, path: str) -> Iterable[pa.Buffer]:
    with folder.filesystem.open_input_stream(folder.inside(path), compression=None) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk
