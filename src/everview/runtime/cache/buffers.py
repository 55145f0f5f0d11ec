"""Where many rows lie: in memory of large pages, or in a file that is mapped into memory.

Rows are looked up here and there. With pages of the usual size each look is also one for the page;
large ones, where the system has them, are found at once, and stay when the system is short.
"""

from __future__ import annotations

import mmap
import os
from tempfile import mkstemp

import numpy as np
import pyarrow as pa

from everview.runtime.vector.int_encoding import Places

_LARGE = getattr(mmap, "MADV_HUGEPAGE", None)
_SHARED = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
"""A page that is first met when a row is taken costs more than the row: all are met at once."""


def in_memory(rows: pa.Table) -> pa.Table:
    """The same rows in large pages."""
    sink = pa.MockOutputStream()
    _write(rows, sink)
    whole = pa.py_buffer(_pages(sink.size()))
    with pa.FixedSizeBufferWriter(whole) as into:
        _write(rows, into)
    return pa.ipc.open_file(whole).read_all()


def in_file(rows: pa.Table) -> pa.Table | None:
    """The same rows, in a file without a name; None if the disk has no room for it."""
    handle, path = mkstemp(suffix=".everview")
    os.close(handle)
    try:
        with pa.OSFile(path, "wb") as sink:
            _write(rows, sink)
        with open(path, "rb") as file:
            whole = mmap.mmap(file.fileno(), 0, flags=_SHARED, prot=mmap.PROT_READ)
        return pa.ipc.open_file(pa.py_buffer(whole)).read_all()
    except OSError:
        return None
    finally:
        os.unlink(path)


def records(count: int, type_: np.dtype[np.void]) -> Places:
    """Room for so many records in large pages."""
    size = count * type_.itemsize
    return np.frombuffer(_pages(size), type_, count) if size else np.empty(count, type_)


def _write(rows: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def _pages(size: int) -> mmap.mmap:
    # Memory that is shared, as it is unless one says so, has large pages on few systems.
    whole = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if _LARGE is not None:
        whole.madvise(_LARGE)
    return whole
