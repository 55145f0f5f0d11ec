"""A standalone Spark cluster on loopback: one master, some workers, each a process of its own.

Every process is started on a leash: it ends when the pipe to it closes, so nothing is left behind
even where the tests are killed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow
import pyspark

LEASH = '"$@" & read -r _; kill -9 0'
"""Ends with all that it started, except what began a process group of its own."""
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""How Java had better run what lives for a minute, in a small heap."""
SPARK_HOME = Path(pyspark.__file__).parent
SITE = Path(pyarrow.__file__).parents[1]
PATIENCE = 60
"""Seconds for a process to come up."""
FOR_PYSPARK = (
    *("pyspark", "py4j", "pyarrow", "pyarrow.libs", "pandas", "pandas.libs", "numpy", "numpy.libs"),
    *("dateutil", "pytz", "tzdata", "six.py"),
)
"""What PySpark needs on an executor for functions over Arrow."""
EXECUTOR = "CoarseGrainedExecutorBackend"


class Cluster:
    """A master and workers that are up; `url` is what a driver connects to."""

    def __init__(self, folder: Path, url: str, workers: Sequence[subprocess.Popen[bytes]]) -> None:
        self.folder, self.url, self._workers = folder, url, workers
        self.python = bare_python(folder / "bare")

    @property
    def executors(self) -> list[int]:
        """The processes of executors, which workers started."""
        return [
            process
            for worker in self._workers
            for process in descendants(worker.pid)
            if EXECUTOR in _command(process)
        ]


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a cluster whose logs and scratch files are in a folder; end it in any case."""
    folder.mkdir(parents=True, exist_ok=True)
    started: list[subprocess.Popen[bytes]] = []
    local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    try:
        log = folder / "master.log"
        started.append(_spark_class("master.Master", local, log))
        url = _awaited(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", started[0])
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            small = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
            started.append(_spark_class("worker.Worker", (*local, *small, url), log))
        for number, worker in enumerate(started[1:]):
            _awaited(folder / f"worker-{number}.log", "(Successfully registered)", worker)
        yield Cluster(folder, url, started[1:])
    finally:
        for process in started:
            end(process)


def on_leash(
    command: Sequence[str], log: Path, environment: Mapping[str, str], **options: object
) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, which ends when its input is closed."""
    with log.open("ab") as told:
        return subprocess.Popen(
            ["sh", "-c", LEASH, "leash", *command],
            **{"stdin": subprocess.PIPE, "stdout": told, "stderr": told, **options},  # type: ignore[call-overload]
            env=environment,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process group that was started here, and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def bare_python(folder: Path) -> str:
    """A command that runs this Python with what PySpark needs, and nothing else installed."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for name in FOR_PYSPARK:
        if (SITE / name).exists():
            (packages / name).symlink_to(SITE / name)
    command = folder / "python"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n'
    )
    command.chmod(0o755)
    return str(command)


def bare_environment() -> dict[str, str]:
    """The variables that processes of Spark get: none that leads to us."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_SUBMIT_OPTS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
    }


def descendants(process: int) -> Iterator[int]:
    """The children of a process, and theirs."""
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from descendants(child)


def _spark_class(name: str, options: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    return on_leash([*command, *options], log, bare_environment(), cwd=log.parent)


def _awaited(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """What a process says in its log when it is up."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name}: nothing came up\n{log.read_text(errors='replace')[-2000:]}")


def _command(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    return ""
