"""The same queries without Everview: plain Spark over Parquet, or DuckDB over its own tables.

Both read the tables as all transactions leave them, and keep their answer: Spark as Parquet files,
DuckDB as a table of its database.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb

from bench.answers import Row
from bench.tables import KEYS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
}


class Plain(Protocol):
    """Whoever answers a query from the tables alone."""

    def recompute(self, name: str, text: str) -> None:
        """Evaluate a query and keep its answer in the place of an older one."""

    def answer(self, name: str) -> list[Row]:
        """What was kept."""

    def close(self) -> None:
        """Give the memory back."""


class PlainDuckDB:
    """A database file with native tables."""

    def __init__(self, database: Path) -> None:
        spark_order = "nulls_first_on_asc_last_on_desc"
        self._connection = duckdb.connect(str(database), config={"default_null_order": spark_order})

    def recompute(self, name: str, text: str) -> None:
        """Evaluate a query into a table."""
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {text}").fetchall()

    def answer(self, name: str) -> list[Row]:
        """The rows of the table."""
        return self._connection.execute(f"FROM {name}").fetchall()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


class PlainSpark:
    """Parquet files, one for each table."""

    def __init__(self, session: SparkSession, database: Path, folder: Path) -> None:
        self._folder = folder
        self._session = session.newSession()
        for key, value in SETTINGS.items():
            self._session.conf.set(key, value)
        folder.mkdir()
        with duckdb.connect(str(database), read_only=True) as connection:
            for name in KEYS:
                connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")
        for name in KEYS:
            file = str(folder / f"{name}.parquet")
            self._session.read.parquet(file).createOrReplaceTempView(name)

    def recompute(self, name: str, text: str) -> None:
        """Evaluate a query into Parquet files."""
        self._session.sql(text).write.mode("overwrite").parquet(str(self._folder / f"of-{name}"))

    def answer(self, name: str) -> list[Row]:
        """The rows of the files."""
        rows = self._session.read.parquet(str(self._folder / f"of-{name}")).collect()
        return [tuple(row) for row in rows]

    def close(self) -> None:
        """Leave the session to whoever started it."""
        for name in KEYS:
            self._session.catalog.dropTempView(name)


def started() -> SparkSession:
    """A local Spark on two cores, with what a careful user would set."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in {
        **SETTINGS,
        "spark.driver.memory": "8g",
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
