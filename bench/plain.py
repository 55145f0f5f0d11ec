"""The same queries without Everview: plain Spark over Parquet, or DuckDB over its own tables.

Both read the tables as all transactions leave them, and keep their answer: Spark as Parquet files,
DuckDB as a table of its database. DuckDB has a process of its own, so that its memory is not ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

from bench import resource_usage
from bench.compare_answers import Row
from bench.prepared import Plan
from bench.refresh import CHANGED, Refresh
from bench.tables import KEYS
from everview.runtime.memory_budget import part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
}


@dataclass(frozen=True)
class Taken:
    """What one evaluation took."""

    ms: float
    bytes_read: int


class Plain(Protocol):
    """Whoever answers a query from the tables alone."""

    @property
    def apart(self) -> Collection[int]:
        """The processes that are not ours."""

    def recompute(self, name: str, text: str) -> Taken:
        """Evaluate a query and keep its answer in the place of an older one."""

    def answer(self, name: str) -> list[Row]:
        """What was kept."""

    def close(self) -> None:
        """Give the memory back."""


class PlainDuckDB:
    """A database file with native tables, open in another process."""

    def __init__(self, database: Path) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, database), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def apart(self) -> Collection[int]:
        """The process that has the database open."""
        return () if self._process.pid is None else (self._process.pid,)

    def recompute(self, name: str, text: str) -> Taken:
        """Evaluate a query into a table."""
        taken: Taken = self._asked("recompute", name, text)
        return taken

    def answer(self, name: str) -> list[Row]:
        """The rows of the table."""
        rows: list[Row] = self._asked("answer", name)
        return rows

    def apply(self, plan: Plan, number: int) -> float:
        """Undo a transaction that the tables have, then commit it again; how long that took."""
        taken: float = self._asked("apply", plan, number)
        return taken

    def close(self) -> None:
        """Close the database, which has no answers any more."""
        self._asked("close")
        self._process.join()

    def _asked(self, what: str, *about: Any) -> Any:
        self._pipe.send((what, *about))
        found = self._pipe.recv()
        if isinstance(found, Exception):
            raise found
        return found


BESIDE = 1 / 4
"""The part of the memory for DuckDB: all tables, and what its queries need, fit in at scale 10."""


class _Native:
    """The database where it is open."""

    def __init__(self, database: Path) -> None:
        spark_order = "nulls_first_on_asc_last_on_desc"
        settings = {"default_null_order": spark_order, "memory_limit": f"{part(BESIDE)}B"}
        self._connection = duckdb.connect(str(database), config=settings)
        self._run("SET enable_progress_bar = false")
        self._kept: set[str] = set()

    def recompute(self, name: str, text: str) -> Taken:
        self._kept.add(name)
        return _taken(lambda: self._run(f"CREATE OR REPLACE TABLE {name} AS {text}"))

    def answer(self, name: str) -> list[Row]:
        return self._run(f"FROM {name}")

    def apply(self, plan: Plan, number: int) -> float:
        refresh = plan.load(number)
        self._commit(refresh.inverse)
        return _taken(lambda: self._commit(refresh)).ms

    def close(self) -> None:
        for name in self._kept:
            self._run(f"DROP TABLE {name}")
        self._connection.close()

    def _commit(self, refresh: Refresh) -> None:
        """What goes is found by its key, as it would be in any database."""
        self._run("BEGIN")
        for name in CHANGED:
            self._connection.register("gone", refresh.gone[name])
            self._connection.register("come", refresh.come[name])
            same = " AND ".join(f"{name}.{key} = gone.{key}" for key in KEYS[name])
            self._run(f"DELETE FROM {name} USING gone WHERE {same}")
            self._run(f"INSERT INTO {name} BY NAME FROM come")
        self._run("COMMIT")

    def _run(self, sql: str) -> list[Row]:
        return self._connection.execute(sql).fetchall()


def _serve(pipe: Connection, database: Path) -> None:
    """Answer until told to close."""
    native = _Native(database)
    what = ""
    while what != "close":
        what, *about = pipe.recv()
        try:
            found = getattr(native, what)(*about)
        except Exception as problem:
            found = problem
        pipe.send(found)


def _taken(work: Callable[[], object]) -> Taken:
    read, began = resource_usage.bytes_read(), perf_counter()
    work()
    return Taken(1000 * (perf_counter() - began), resource_usage.bytes_read() - read)


class PlainSpark:
    """Parquet files, one for each table."""

    apart: Collection[int] = ()

    def __init__(self, session: SparkSession, tables: Path, answers: Path) -> None:
        self._answers = answers
        self._session = session.newSession()
        for key, value in SETTINGS.items():
            self._session.conf.set(key, value)
        for name in KEYS:
            file = str(tables / f"{name}.parquet")
            self._session.read.parquet(file).createOrReplaceTempView(name)

    def recompute(self, name: str, text: str) -> Taken:
        """Evaluate a query into Parquet files."""
        into = str(self._answers / name)
        return _taken(lambda: self._session.sql(text).write.mode("overwrite").parquet(into))

    def answer(self, name: str) -> list[Row]:
        """The rows of the files."""
        rows = self._session.read.parquet(str(self._answers / name)).collect()
        return [tuple(row) for row in rows]

    def close(self) -> None:
        """Leave the session to whoever started it."""
        for name in KEYS:
            self._session.catalog.dropTempView(name)


def started(heap: str = "8g") -> SparkSession:
    """A local Spark on two cores, with what a careful user would set."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in {
        **SETTINGS,
        "spark.driver.memory": heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
