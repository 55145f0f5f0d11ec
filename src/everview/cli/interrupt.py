"""Ctrl-C for work that does not come back to Python before it is done: it is told from a thread."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def cancelling(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` at every Ctrl-C while the block runs, which is in the main thread.

    Python handles signals between its own instructions. While the main thread is in a long query,
    the byte that the signal leaves on the wakeup descriptor is all there is of it.
    """
    read, write = socket.socketpair()
    write.setblocking(False)

    def watch() -> None:
        while told := read.recv(64):
            if signal.SIGINT in told:
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
