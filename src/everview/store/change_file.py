"""The change file of an epoch: its small changes, of all relations, in one Arrow file.

A Parquet file costs as much as writing some thousand rows, and an epoch that changes a few rows may
change twenty relations. So their rows lie one after the other, each as an Arrow IPC stream, and the
manifest says where. Compaction writes what has become more as Parquet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from everview.store.bounds import UNKNOWN, range_of_sorted
from everview.store.checksums import checksum
from everview.store.filesystem import Folder
from everview.store.manifest import DataFile, Segment
from everview.store.segments import fresh_id, weight_of
from everview.store.sort_order import in_order

FOLDER = "changes"
CHANGE_MAX_ROWS, CHANGE_MAX_BYTES = 2_000, 1 << 20
"""More rows, or larger ones, are better off as Parquet."""
UNMEASURED_MAX_ROWS = 100
"""The bytes of fewer rows are not counted."""
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end of an Arrow IPC stream."""
RECENT_MAX_BYTES = 64 << 20
"""How much of what was just written is kept in memory at most, so that it is not read again."""


def fits_change_file(rows: pa.Table) -> bool:
    """Whether a change is small enough for the change file of its epoch."""
    count = rows.num_rows
    return count < UNMEASURED_MAX_ROWS or (
        count < CHANGE_MAX_ROWS and bool(rows.nbytes < CHANGE_MAX_BYTES)
    )


def is_piece(segment: Segment) -> bool:
    """Whether a segment is a piece of a change file; then its rows are sorted."""
    return len(segment.files) == 1 and segment.files[0].start is not None


def is_change_file(path: str) -> bool:
    """Whether a file holds small changes of several relations."""
    return path.startswith(f"{FOLDER}/")


def fresh_path(epoch: int) -> str:
    """A name for the change file of an epoch that no file has."""
    return f"{FOLDER}/{fresh_id(epoch)}.arrow"


def write(
    folder: Folder,
    epoch: int,
    few: Mapping[str, tuple[pa.Table, Sequence[str]]],
) -> dict[str, tuple[Segment, pa.Table]]:
    """Write rows by relation, with their sort keys; the segment of each, and its rows sorted.

    Nothing is committed by it, and no rows need no file.
    """
    path, sink = "", pa.BufferOutputStream()
    begun = {name: _append(sink, *each) for name, each in few.items()}
    content = sink.getvalue()
    if content.size:
        path = fresh_path(epoch)
        folder.write(path, content)
    found = {}
    for name, (rows, start, stop) in begun.items():
        keys = tuple(few[name][1])
        files = (_piece(path, content, rows, start, stop, keys),) if rows.num_rows else ()
        found[name] = Segment(fresh_id(epoch), epoch, "change", files, keys), rows
    return found


@dataclass(slots=True)
class RecentRows:
    """Rows of the segments that were written last, oldest out first, so that nobody reads them."""

    max_bytes: int = RECENT_MAX_BYTES
    _rows: OrderedDict[str, tuple[Segment, pa.Table]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _guard: Lock = field(default_factory=Lock)

    @property
    def bytes(self) -> int:
        """How much is kept."""
        return self._bytes

    def add(self, segment: Segment, rows: pa.Table) -> None:
        """Keep the rows of a segment; the oldest may have to go."""
        with self._guard:
            self._rows[segment.id] = segment, rows
            self._bytes += segment.bytes
            while self._bytes > self.max_bytes:
                _, (oldest, _) = self._rows.popitem(last=False)
                self._bytes -= oldest.bytes

    def rows(self, segment: Segment) -> pa.Table | None:
        """The rows of a segment, None where they are not kept."""
        _, rows = self._rows.get(segment.id, (None, None))
        return rows


def _append(
    sink: pa.BufferOutputStream, table: pa.Table, sort_by: Sequence[str]
) -> tuple[pa.Table, int, int]:
    """Write rows sorted; return them, and where they begin and end."""
    rows, start = in_order(table, sort_by).combine_chunks(), sink.tell()
    if not rows.num_rows:
        return rows, start, start
    sink.write(rows.schema.serialize())
    for batch in rows.to_batches():
        sink.write(batch.serialize())
    sink.write(_END)
    return rows, start, sink.tell()


def _piece(
    path: str, content: pa.Buffer, rows: pa.Table, start: int, stop: int, sort_by: Sequence[str]
) -> DataFile:
    """What the manifest has to know about rows within a file."""
    known = range_of_sorted(rows[sort_by[0]]) if sort_by else UNKNOWN
    check = checksum([content[start:stop]])
    count, size = rows.num_rows, stop - start
    bounds, weight = (known.low, known.high, known.has_null), weight_of(rows)
    return DataFile(path, count, size, check, *bounds, start=start, weight=weight)
