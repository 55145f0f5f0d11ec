"""Exclusive writing through a handle that threads share, and nothing after it is closed.

An exception may come at any moment, between two instructions of a clean-up too (Ctrl-C does). So
nothing here relies on code that runs afterwards: locks are taken by `with` alone, which the
interpreter releases without running Python; an open transaction holds up others only while somebody
refers to it; and unfinished work is noticed by the next writer, who recovers first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock, get_ident
from typing import Protocol, TypeVar
from weakref import ref

from everview.errors import UserError

T = TypeVar("T")

POLL_SECONDS = 0.1
"""How often a waiting writer looks whether the open transaction has gone without ending."""


class Reservation(Protocol):
    """What may hold up other writers for longer than one call: an open transaction."""

    @property
    def is_open(self) -> bool:
        """Whether it may still change something."""

    @property
    def thread(self) -> int:
        """The thread that began it."""

    def wait(self, seconds: float) -> None:
        """Return when it has ended, or after `seconds`."""


class ExclusiveAccess:
    """One writer at a time, in the process that opened the handle, until it is closed."""

    def __init__(self, recover: Callable[[], None]) -> None:
        self._recover = recover
        self._process = os.getpid()
        self._lock = RLock()
        self._reserved: Callable[[], Reservation | None] = lambda: None
        self._unfinished = False
        self._closed = self._released = False

    @property
    def is_closed(self) -> bool:
        """Whether the handle was closed."""
        return self._closed

    def check(self) -> None:
        """Refuse a handle that is closed, or that belongs to the process this one is a fork of."""
        if os.getpid() != self._process:
            raise UserError(
                "H002",
                f"this database was opened by process {self._process}, and this is a fork of it",
                remedy="open the store again in this process, with read_only=True beside a writer",
            )
        if self._closed:
            raise closed()

    def run(self, work: Callable[[], T], turn: Reservation | None = None) -> T:
        """Run `work` after other writers, and after the open transactions of other threads.

        `turn` is the open transaction that the work is a part of.
        """
        while True:
            self.check()
            if self._lock._is_owned():  # type: ignore[attr-defined]
                raise _nested("this thread is changing the database already")
            with self._lock:
                self.check()
                other = self._reserved()
                if other is None or other is turn or not other.is_open:
                    return self._run(work)
                if turn is None and other.thread == get_ident():
                    raise _nested(_STILL_OPEN)
            other.wait(POLL_SECONDS)

    def reserve(self, turn: Reservation) -> None:
        """Let an open transaction hold up other writers until it ends."""
        self._reserved = ref(turn)

    def close(self, release: Callable[[], None]) -> None:
        """Refuse the handle from now on, after the current writer; again does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._closed = True
            if not self._released:
                release()
                self._released = True

    def _run(self, work: Callable[[], T]) -> T:
        if self._unfinished:
            self._recover()
        self._unfinished = True
        try:
            result = work()
        except UserError as problem:
            self._unfinished = was_interrupted(problem)
            raise
        self._unfinished = False
        return result


def was_interrupted(problem: BaseException) -> bool:
    """Whether an error may be the consequence of an exception that came from outside.

    Causes can form a circle: an exception may be raised again by one that it caused.
    """
    causes = [problem]
    for each in causes:
        if isinstance(each, MemoryError | OSError) or not isinstance(each, Exception):
            return True
        behind = (each.__cause__, each.__context__)
        causes += (one for one in behind if one is not None and not any(one is x for x in causes))
    return False


def closed() -> UserError:
    """The error for a handle that was closed."""
    return UserError("H001", "this database is closed", remedy="open it again with everview.open")


_STILL_OPEN = "a transaction of this thread is still open, and would wait for itself"


def _nested(problem: str) -> UserError:
    return UserError(
        "T008",
        problem,
        remedy="after BEGIN write COMMIT or ROLLBACK first; in a `with db.transaction() as tx` "
        "block call tx instead of db, or leave the block",
    )
