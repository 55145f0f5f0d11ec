"""Cancels a long query at Ctrl-C, from a thread: the main thread is inside the engine."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def cancel_on_interrupt(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` at every Ctrl-C while the block runs, in the main thread.

    Python runs signal handlers between its own instructions, so not while the main thread is inside
    a long query. The byte that a signal writes to the wakeup descriptor is read at once.
    """
    read, write = socket.socketpair()
    write.setblocking(False)

    def watch() -> None:
        while signals := read.recv(64):
            if signal.SIGINT in signals:
                interrupt()

    watcher = Thread(target=watch, name="everview-cancelling", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        write.close()
        watcher.join()
        read.close()
