"""One writer at a time, and a dead writer is no writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from everview.errors import UserError
from everview.store.store import Store

HOLD = """
import sys
from everview.store.store import Store
lock = Store.open_existing(sys.argv[1]).writer_lock()
print("held", flush=True)
sys.stdin.read()
"""


def test_two_writers_in_one_process_conflict(store: Store) -> None:
    other = Store.open_existing(store.folder.root)
    with store.writer_lock() as lock:
        with pytest.raises(UserError) as caught:
            other.writer_lock()
        assert caught.value.code == "S008"
        assert f"process {os.getpid()} " in caught.value.problem
        assert "read_only=True" in caught.value.remedy
        assert lock.held
    with other.writer_lock() as lock:
        lock.release()
        assert not lock.held


def test_a_writer_that_is_killed_leaves_no_lock(store: Store) -> None:
    command = [sys.executable, "-c", HOLD, store.folder.root]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match=f"S008.*process {holder.pid} "):
            store.writer_lock()
        assert store.latest().epoch == 0, "readers need no lock"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with store.writer_lock() as lock:
            assert lock.held
