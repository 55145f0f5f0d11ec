"""The Spark session that queries run in: the user's own, or a local one."""

from __future__ import annotations

import logging
import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from everview.errors import UserError

# Every refused query is also logged as JSON on stderr; the error that we raise says it better.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

_OFF = (
    *("runSQLOnFiles", "variable.substitute", "parser.escapedStringLiterals", "caseSensitive"),
    *("ansi.doubleQuotedIdentifiers", "parser.quotedRegexColumnNames"),
)
"""What would let a text read files and settings, or end a string or a name elsewhere."""
_OURS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    **{f"spark.sql.{name}": "false" for name in _OFF},
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
}


def session_for(given: SparkSession | None) -> tuple[SparkSession, bool]:
    """A session of our own beside the one given, and whether closing it should stop Spark.

    Settings and temporary views are ours alone; the user's session keeps its own.
    """
    base = given or SparkSession.getActiveSession()
    session = (base or _local()).newSession()
    for key, value in _OURS.items():
        session.conf.set(key, value)
    return session, base is None


def _local() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("everview")
    for key, value in (_LOCAL | _OURS).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkException as problem:
        raise UserError(
            "E001",
            f"Spark did not start: {problem}",
            remedy="install Java 17 or newer and set JAVA_HOME, or pass spark=<SparkSession>",
        ) from problem
    session.sparkContext.setLogLevel("ERROR")
    return session
