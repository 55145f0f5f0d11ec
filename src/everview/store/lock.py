"""Who may write: one process at a time, by a lock that the kernel frees when its holder dies.

`flock` belongs to the open file, so two opens conflict within a process too, and a killed
process leaves nothing to clean up. The text in the file only names the holder for the error.
Readers take no lock.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from types import TracebackType
from weakref import WeakSet

from everview.store import errors

try:
    import fcntl
except ImportError:  # there is no flock on Windows; see `_take`
    fcntl = None  # type: ignore[assignment]


class WriterLock:
    """The right to write, held from construction until `release`."""

    def __init__(self, path: str, shown: str) -> None:
        self._process = os.getpid()
        self._handle: int | None = _opened(path, shown)
        try:
            _take(self._handle)
        except BlockingIOError as problem:
            holder = os.pread(self._handle, 200, 0).decode(errors="replace").strip()
            self._close()
            raise errors.locked(shown, holder or "another process") from problem
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        _HELD.add(self)

    @property
    def held(self) -> bool:
        """Whether this process has the lock and has not released it."""
        return self._handle is not None and os.getpid() == self._process

    @property
    def is_alone(self) -> bool:
        """Whether nobody else can write as long as this lock is held."""
        return self.held and fcntl is not None

    def release(self) -> None:
        """Give the lock back; again does nothing. The file stays: removing it would race.

        A forked child only closes its copy of the file: the lock is its parent's.
        """
        if self._handle is None:
            return
        if self.held:
            os.ftruncate(self._handle, 0)
            _give_back(self._handle)
        self._close()

    def _close(self) -> None:
        assert self._handle is not None
        os.close(self._handle)
        self._handle = None

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _opened(path: str, shown: str) -> int:
    """The lock file itself: through a link, somebody else's file would be emptied."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags, 0o644)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise errors.a_link(shown, "lock") from problem
        raise errors.of_system(problem, shown) or problem from problem
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise errors.not_a_store(shown, "its lock is not a file")


_HELD: WeakSet[WriterLock] = WeakSet()


def _leave_to_parent() -> None:
    """Close a child's copies of the locked files, so that a lock does not outlive its holder."""
    for lock in tuple(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _give_back(handle: int) -> None:
    """Unlock at once, even while a process that was started from here has the file open."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _take(handle: int) -> None:
    """Lock or raise BlockingIOError; without flock only the manifest keeps two writers apart."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
