"""Drivers as processes that are told what to do, and killed; stores against plain tables."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb

import everview as ev
from cluster.standalone import SHORT_LIVED, Cluster, bare_environment, end
from cluster.worlds import CASES, DECLARATIONS, FILLED, Case

ROOT = Path(__file__).parents[2]
PATIENCE = 400
"""Seconds within which a driver says something, on a busy machine."""

Told = dict[str, Any]


class DriverError(AssertionError):
    """What a driver was told to do failed."""


class Driver:
    """A driver in a process of its own, with a Java of its own; all in one process group."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, str]) -> None:
        paths = os.pathsep.join(str(ROOT / name) for name in ("src", "tests"))
        environment = bare_environment() | {
            "PYTHONPATH": paths,
            "PYTHONWARNINGS": "ignore",
            "PYSPARK_PYTHON": cluster.python,
            "SPARK_SUBMIT_OPTS": SHORT_LIVED,
        }
        self._log = cluster.folder / "driver.log"
        with self._log.open("ab") as told:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cluster.driver", cluster.url, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                env=environment,
                cwd=cluster.folder,
                start_new_session=True,
            )
        self._lines: queue.Queue[bytes] = queue.Queue()
        Thread(target=self._read, daemon=True).start()
        try:
            assert self._next().get("up")
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether it can be told something."""
        return self._process.poll() is None

    def order(self, what: str, **about: Any) -> None:
        """Tell it to do something; it answers line by line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **about}).encode() + b"\n")
        self._process.stdin.flush()

    def told(self) -> Iterator[Told]:
        """Its answers to one order, the last of which says that it has ended."""
        while True:
            found = self._next()
            if "error" in found:
                raise DriverError(f"{found['error']}\n{found['trace']}")
            yield found
            if "end" in found:
                return

    def ask(self, what: str, **about: Any) -> Told:
        """Tell it to do something; its last answer."""
        self.order(what, **about)
        *_, last = self.told()
        return last

    def kill(self, *, java: bool) -> list[Told]:
        """SIGKILL to Python, or to Java as well; what it still had said."""
        if java:
            end(self._process)
        else:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
        left = []
        while (line := self._lines.get(timeout=PATIENCE)) != b"":
            left.append(json.loads(line))
        return left

    def close(self) -> None:
        """End it and all that it started."""
        end(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def _next(self) -> Told:
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise DriverError("the driver says nothing any more") from None
        if not line:
            raise DriverError(f"the driver ended\n{self._log.read_text(errors='replace')[-3000:]}")
        found: Told = json.loads(line)
        return found


class Drivers:
    """The driver of a cluster: another is started when there is none."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, str] | None = None) -> None:
        self.cluster, self._settings = cluster, settings or {}
        self._driver: Driver | None = None

    def get(self) -> Driver:
        """A driver that is up."""
        if self._driver is None or not self._driver.is_alive:
            self.close()
            self._driver = Driver(self.cluster, self._settings)
        return self._driver

    def another(self) -> Driver:
        """A fresh driver; what is left of the one before is ended once that is up."""
        killed, self._driver = self._driver, None
        try:
            self._driver = Driver(self.cluster, self._settings)
        finally:
            if killed is not None:
                killed.close()
        return self._driver

    def close(self) -> None:
        """End it."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None


def plainly(drivers: Drivers, name: str, store: Path) -> float:
    """Run a case undisturbed; how many seconds it took."""
    began = time.monotonic()
    drivers.get().ask("run", case=name, store=str(store), first=0)
    taken = time.monotonic() - began
    must_be_after(name, store, len(CASES[name].steps))
    must_be_sound(drivers, store)
    return taken


def losing_an_executor(drivers: Drivers, name: str, store: Path, chance: random.Random) -> None:
    """Run a case; while its first job runs, or after its first step, one executor is killed."""
    driver, killed = drivers.get(), False
    before = _eventually(lambda: drivers.cluster.executors)
    driver.order("run", case=name, store=str(store), first=0)
    for told in driver.told():
        if not killed and ("job" in told or "done" in told):
            time.sleep(chance.random() * 0.3 if "job" in told else 0)
            _kill_one(drivers.cluster, before, chance)
            killed = True
    assert killed
    must_be_after(name, store, len(CASES[name].steps))
    must_be_sound(drivers, store)


def losing_the_driver(
    drivers: Drivers, name: str, store: Path, chance: random.Random, seconds: float
) -> None:
    """Kill the driver within `seconds` after a step began; another takes over.

    Each step that the killed driver had told as done is there, and at most one more, whole.
    """
    driver, case = drivers.get(), CASES[name]
    driver.order("run", case=name, store=str(store), first=0)
    told = [next(driver.told())]
    time.sleep(chance.random() * seconds)
    told += driver.kill(java=chance.random() < 0.5)
    done = sum("done" in each for each in told)
    fresh = drivers.another()
    must_be_sound(drivers, store)
    found = steps_done(name, store)
    assert found & {done, done + 1}, f"{done} steps were told, those there are {sorted(found)}"
    fresh.ask("run", case=name, store=str(store), first=max(found))
    must_be_after(name, store, len(case.steps))
    assert ev.verify(str(store)).ok


def must_be_sound(drivers: Drivers, store: Path) -> None:
    """Every file is whole, and every view is its query: asked of the cluster."""
    assert drivers.get().ask("audit", store=str(store))["ok"]
    assert ev.verify(str(store)).ok


def must_be_after(name: str, store: Path, steps: int) -> None:
    """The store is what so many steps make of plain tables."""
    assert steps in steps_done(name, store), f"not what {steps} steps make"


def steps_done(name: str, store: Path) -> set[int]:
    """After how many steps of a case plain tables hold just what the store holds.

    More than one number, where a step changes no table.
    """
    case = CASES[name]
    with ev.open(str(store), engine="duckdb", read_only=True) as db:
        held = {each: db.read(each).to_arrow() for each in (*DECLARATIONS, *case.views)}
    found = set()
    with duckdb.connect() as plain:
        fill(plain, case)
        for steps in range(len(case.steps) + 1):
            if all(_is(plain, case.views.get(each, f"FROM {each}"), held[each]) for each in held):
                found.add(steps)
            if steps < len(case.steps) and case.steps[steps].model:
                plain.execute(case.steps[steps].model).fetchall()
    return found


def fill(plain: duckdb.DuckDBPyConnection, case: Case) -> None:
    """The tables that a case begins with, in DuckDB."""
    plain.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for table, columns in DECLARATIONS.items():
        plain.execute(f"CREATE TABLE {table} ({columns})")
        if case.filled:
            plain.execute(f"INSERT INTO {table} {FILLED[table]}")


def made_store(folder: Path, case: Case) -> Path:
    """A store with the tables and views that a case begins with, made without Spark."""
    with ev.open(str(folder), engine="duckdb") as db, duckdb.connect() as plain:
        fill(plain, case)
        for table, columns in DECLARATIONS.items():
            db.sql(f"CREATE TABLE {table} ({columns})")
            if case.filled:
                db.insert(table, plain.sql(f"FROM {table}").to_arrow_table())
        for view, text in case.views.items():
            db.sql(f"CREATE MATERIALIZED VIEW {view} AS {text}")
    return folder


def _is(plain: duckdb.DuckDBPyConnection, query: str, held: Any) -> bool:
    """Whether a query gives just these rows, as bags."""
    plain.register("held", held)
    parts = (f"(FROM held EXCEPT ALL ({query}))", f"(({query}) EXCEPT ALL FROM held)")
    return all(not plain.execute(f"SELECT 1 FROM {part} LIMIT 1").fetchall() for part in parts)


def _kill_one(cluster: Cluster, among: list[int], chance: random.Random) -> None:
    for process in chance.sample(among, len(among)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            return
    raise AssertionError("no executor was there to be killed")


def _eventually(what: Callable[[], list[int]]) -> list[int]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("nothing came")
