"""Ctrl-C at the prompt: it ends the statement that runs, and nothing else."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

import everview as ev

SLOW = (
    "SELECT SUM(a.v * b.v * c.v * d.v) AS s FROM t a "
    "CROSS JOIN t b CROSS JOIN t c CROSS JOIN t d WHERE (a.v + b.v + c.v + d.v) % 7 = 3;"
)


_QUIET = {"PROMPT_TOOLKIT_NO_CPR": "1"}
"""Nobody answers when the prompt asks this terminal where its cursor is."""


class Prompt:
    """`everview sql` on a terminal."""

    def __init__(self, store: Path, terminal: str) -> None:
        self._seen = ""
        self.process, self._terminal = pty.fork()
        if not self.process:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            command = [sys.executable, "-m", "everview", "sql", str(store), "--engine", "duckdb"]
            os.execve(
                command[0],
                command,
                {**os.environ, "TERM": terminal, **_QUIET, "XDG_STATE_HOME": str(store.parent)},
            )

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, expected: str, seconds: float = 60) -> str:
        """What is shown up to some text."""
        ends = time.monotonic() + seconds
        while expected not in self._seen:
            ready, _, _ = select.select([self._terminal], [], [], max(0, ends - time.monotonic()))
            assert ready, f"{expected!r} is not in {self._seen!r}"
            self._seen += os.read(self._terminal, 4096).decode()
        shown, _, self._seen = self._seen.partition(expected)
        return shown

    def end(self) -> int:
        """The exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (v BIGINT NOT NULL)")
        db.insert("t", [(n,) for n in range(2_000)])
    return tmp_path / "store"


@pytest.mark.parametrize("terminal", ["dumb", "xterm"])
def test_ctrl_c_cancels_the_statement_and_the_shell_goes_on(store: Path, terminal: str) -> None:
    prompt = Prompt(store, terminal)
    try:
        prompt.until("everview>")
        prompt.type("BEGIN; INSERT INTO t VALUES (-7);\r")
        prompt.until("everview>")
        prompt.type(SLOW + "\r")
        prompt.until("% 7 = 3;")
        time.sleep(2)
        prompt.type("\x03")
        prompt.until("cancelled")
        prompt.until("everview>")
        prompt.type("SELECT 40 + 2 AS answer;\r")
        prompt.until("42")
        prompt.until("everview>")
        prompt.type("SELECT MIN(v) AS least FROM t; COMMIT;\r")
        prompt.until("-7")
        prompt.until("everview>")
        prompt.type("\\q\r")
        assert prompt.end() == 0
    except BaseException:
        os.kill(prompt.process, signal.SIGKILL)
        raise
    with ev.open(str(store), engine="duckdb") as db:
        assert min(db.read("t").rows()) == (-7,)
        assert db.audit().ok
