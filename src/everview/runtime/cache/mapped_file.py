"""Moves Arrow rows into a memory-mapped temporary file, whose pages the system may evict."""

from __future__ import annotations

import mmap
import os
from tempfile import mkstemp

import pyarrow as pa

_FLAGS = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
"""Populated at once: a page fault per fetched row would cost more than the row."""


def in_mapped_file(rows: pa.Table) -> pa.Table | None:
    """The same rows, in an unlinked file; None if the disk has no room for it."""
    handle, path = mkstemp(suffix=".everview")
    os.close(handle)
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        with open(path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, flags=_FLAGS, prot=mmap.PROT_READ)
        return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()
    except OSError:
        return None
    finally:
        os.unlink(path)
