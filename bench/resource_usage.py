"""What a piece of work takes from the machine: memory and bytes read, by us and our children."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def forget_peak() -> None:
    """Let the peak be what is used now."""
    for process in _family(os.getpid()):
        with suppress(OSError):
            (PROC / str(process) / "clear_refs").write_text("5")


def peak_mb(apart: Collection[int] = ()) -> float:
    """The most memory that was resident, added up over the processes; but for some children."""
    family = _family(os.getpid(), apart)
    return sum(_number(each, "status", "VmHWM:") for each in family) / 1024


def own_peak_mb() -> float:
    """The most memory that was resident in this process alone."""
    return _number(os.getpid(), "status", "VmHWM:") / 1024


def bytes_read() -> int:
    """Bytes read so far, from files or from each other, cached by the system or not."""
    return sum(_number(each, "io", "rchar:") for each in _family(os.getpid()))


def _family(process: int, apart: Collection[int] = ()) -> Iterator[int]:
    if process in apart:
        return
    yield process
    for file in sorted((PROC / str(process) / "task").glob("*/children")):
        with suppress(OSError):
            for child in file.read_text().split():
                yield from _family(int(child), apart)


def _number(process: int, file: str, label: str) -> int:
    """A figure that the system keeps of a process; none where it keeps no such figures."""
    with suppress(OSError):
        for line in (PROC / str(process) / file).read_text().splitlines():
            if line.startswith(label):
                return int(line.split()[1])
    return 0
