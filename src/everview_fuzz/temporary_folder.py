"""Temporary folders for stores, in memory where the system has a place for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = "/dev/shm"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed afterwards."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="everview-", dir=memory, ignore_cleanup_errors=True) as path:
        yield Path(path)
