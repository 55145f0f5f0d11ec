"""Work beside the transactions of a handle: one thread, at most one piece of work at a time.

Work computes first, while others write, and finishes in the turn that `exclusively` gives it. It
may fail or be cancelled at any moment, and nobody but it has to do with that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, main_thread
from time import monotonic

CLOSE_SECONDS, CANCEL_SECONDS = 5.0, 5.0
"""How long closing waits for work to be done, and then for work that was cancelled to notice."""
FINISH_SECONDS = 0.5
"""How long closing waits for work that is only to be finished: it may wait for a transaction."""
POLL_SECONDS = 0.01


class Cancelled(Exception):  # noqa: N818  (no error: the work is done another time)
    """The work is not wanted any more."""


class Background:
    """What a handle does beside its transactions.

    The thread is not a daemon, so the process does not end within its work; it ends its work when
    the main thread has ended.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._guard = Lock()
        self._thread: Thread | None = None
        self._again: Callable[[], None] | None = None
        self._cancelled = self._finishing = False

    def start(self, work: Callable[[], None]) -> None:
        """Do `work` in the background; if something is being done, after it, once.

        Where the system has no more threads, nothing is done.
        """
        with self._guard:
            if self._cancelled:
                return
            if self._thread is not None and self._thread.is_alive():
                self._again = work
                return
            thread = Thread(target=self._run, args=(work,), name="everview-background")
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def check(self) -> None:
        """Raise `Cancelled` if the work is not wanted any more; called now and then by it."""
        if self._cancelled or not main_thread().is_alive():
            raise Cancelled
        self._finishing = False

    def finishing(self) -> None:
        """Called by work that has computed, and now waits for its turn to finish."""
        self._finishing = True

    def wait(self) -> None:
        """Wait until nothing is done in the background."""
        thread = self._thread
        if thread is not None and os.getpid() == self._process:
            thread.join()

    def close(self) -> None:
        """Start nothing any more; wait for what is being done, then cancel it."""
        if os.getpid() != self._process:
            return
        self._again = None
        self._wait(CLOSE_SECONDS)
        self._cancelled = True
        self._wait(CANCEL_SECONDS)

    def _wait(self, seconds: float) -> None:
        """Wait for the thread to end; less long where it waits for others itself."""
        began = monotonic()
        while (thread := self._thread) is not None and thread.is_alive():
            thread.join(POLL_SECONDS)
            if monotonic() - began > (FINISH_SECONDS if self._finishing else seconds):
                return

    def _run(self, work: Callable[[], None]) -> None:
        following: Callable[[], None] | None = work
        while following is not None:
            self._finishing = False
            # Whatever fails here is tried again after a later transaction.
            with suppress(Exception):
                self.check()
                following()
            with self._guard:
                following, self._again = self._again, None
                if following is None:
                    self._thread = None
