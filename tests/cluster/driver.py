"""A driver on a cluster: it does what it is told, line by line, and tells each step.

    python -m cluster.driver MASTER SETTINGS

A line of input is JSON: {"do": "run", "case": …, "store": …, "first": 0}. Answers are JSON, too:
`begun` and `done` with the number of a step, `job` when one is seen running, `end` or `error`.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from cluster.standalone import SHORT_LIVED
from cluster.worlds import CASES, Case
from e2e.test_gears import FORCED, GEARS, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # A worker that lost an executor starts another; the driver need not wait for long.
    "spark.task.maxFailures": "8",
}
LOOKS_EVERY = 0.01
_TELLING = Lock()


def main(master: str, settings: str) -> None:
    """Connect, then obey until the input ends."""
    spark = _session(master, json.loads(settings))
    tell(up=True)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            ORDERS[order.pop("do")](spark, **order)
        except BaseException as problem:
            tell(error=f"{type(problem).__name__}: {problem}", trace=traceback.format_exc())


def tell(**what: Any) -> None:
    """One line on standard output."""
    with _TELLING:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def run(spark: SparkSession, case: str, store: str, first: int) -> None:
    """The steps of a case from the `first` on."""
    wanted: Case = CASES[case]
    settings = {} if wanted.gear is None else GEARS[wanted.gear]
    jobs = 0
    with _thresholds(forced=wanted.forced), opened(store, spark, **settings) as db:
        for number, step in enumerate(wanted.steps[first:], first):
            tell(begun=number)
            with _Watched(spark) as seen:
                step.act(db, spark)
            jobs += seen.jobs
            tell(done=number)
    tell(end=True, jobs=jobs)


def audit(spark: SparkSession, store: str) -> None:
    """Whether every view is its query, asked of the cluster."""
    with opened(store, spark) as db:
        tell(end=True, ok=db.audit().ok, epoch=db.epoch)


def imports(spark: SparkSession, names: list[str]) -> None:
    """Which modules can be imported where tasks run, by executor."""
    context = spark.sparkContext

    def tried(_: int) -> tuple[str, dict[str, bool]]:
        import importlib
        import os
        import time

        found = {}
        for name in names:
            try:
                importlib.import_module(name)
                found[name] = True
            except ImportError:
                found[name] = False
        time.sleep(0.3)  # so that every executor gets a part
        return os.environ.get("SPARK_EXECUTOR_DIRS", str(os.getppid())), found

    parts = context.parallelize(range(8), 8).map(tried).collect()
    tell(end=True, found=[found for _, found in parts], places=len({place for place, _ in parts}))


@contextmanager
def _thresholds(*, forced: bool) -> Iterator[None]:
    """Leave everything to executors for the time of the block, if that is `forced`."""
    with ExitStack() as patched:
        for module, name, value in FORCED if forced else ():
            patched.enter_context(patch.object(module, name, value))
        yield


class _Watched:
    """Tells when a job is seen running for the first time, and counts those that were."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self.jobs = 0

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        seen: set[int] = set()
        while not self._over.wait(LOOKS_EVERY):
            for job in self._tracker.getActiveJobsIds():
                if not seen:
                    tell(job=job)
                seen.add(job)
        self.jobs = len(seen)


def _session(master: str, settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("everview on a cluster")
    session = builder.config(map=SETTINGS | settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


ORDERS = {"run": run, "audit": audit, "imports": imports}

if __name__ == "__main__":
    main(*sys.argv[1:])
