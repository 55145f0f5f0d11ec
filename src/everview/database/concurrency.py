"""One handle shared by threads: writers one after the other, and nobody after it is closed.

An exception may come at any moment, between two instructions of a clean-up too. So nothing here
counts on code that runs afterwards: locks are taken by `with` alone, which the interpreter releases
without running Python; a transaction holds others up only as long as it is open and somebody has
it; and work that was not finished is noticed by whoever comes next, who recovers first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock, get_ident
from typing import Protocol, TypeVar
from weakref import ref

from everview.errors import UserError

T = TypeVar("T")

PATIENCE = 0.1
"""Seconds after which a writer looks again whether it may go on, though nobody told it."""


class Turn(Protocol):
    """Who writes for longer than one call: an open transaction."""

    @property
    def is_open(self) -> bool:
        """Whether it may still change something."""

    @property
    def thread(self) -> int:
        """The thread that began it."""

    def wait(self, seconds: float) -> None:
        """Come back when it has ended, or after so long."""


class Sharing:
    """Who may use a handle, and when."""

    def __init__(self, recover: Callable[[], None]) -> None:
        self._recover = recover
        self._process = os.getpid()
        self._lock = RLock()
        self._turn: Callable[[], Turn | None] = lambda: None
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

    def exclusively(self, work: Callable[[], T], turn: Turn | None = None) -> T:
        """Do some writing alone: after other writers, and after transactions of other threads."""
        while True:
            self.check()
            if self._lock._is_owned():  # type: ignore[attr-defined]
                raise _nested("this thread is changing the database already")
            with self._lock:
                self.check()
                other = self._turn()
                if other is None or other is turn or not other.is_open:
                    return self._finished(work)
                if turn is None and other.thread == get_ident():
                    raise _nested("a transaction of this thread is open already")
            other.wait(PATIENCE)

    def begins(self, turn: Turn) -> None:
        """Let an open transaction have its turn until it ends."""
        self._turn = ref(turn)

    def close(self, release: Callable[[], None]) -> None:
        """Let nobody use the handle any more, after who writes now; again does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._closed = True
            if not self._released:
                release()
                self._released = True

    def _finished(self, work: Callable[[], T]) -> T:
        if self._unfinished:
            self._recover()
        self._unfinished = True
        try:
            made = work()
        except UserError as problem:
            self._unfinished = was_interrupted(problem)
            raise
        self._unfinished = False
        return made


def was_interrupted(problem: BaseException) -> bool:
    """Whether a refusal may be the consequence of an exception that came from outside.

    An exception that is raised again by one that it caused makes a circle of causes.
    """
    found = [problem]
    for each in found:
        if isinstance(each, MemoryError | OSError) or not isinstance(each, Exception):
            return True
        behind = (each.__cause__, each.__context__)
        found += (one for one in behind if one is not None and not any(one is x for x in found))
    return False


def closed() -> UserError:
    """The error for a handle that was closed."""
    return UserError("H001", "this database is closed", remedy="open it again with everview.open")


def _nested(problem: str) -> UserError:
    return UserError("T008", problem, remedy="COMMIT it or roll it back first")
