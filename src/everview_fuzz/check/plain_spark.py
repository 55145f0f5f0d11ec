"""Plain Spark: what it answers itself to a text over tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from everview.engines.spark import actions
from everview.engines.spark.session import session_for
from everview.expr.quoting import spark_name
from everview.expr.types import Column, Schema

SETTINGS = {
    # For a handful of rows, compiling code costs more than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
KEPT_FRAMES = 64
"""How many tables a session holds on to, because the next question often reads the same."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text as the user wrote it, the relations it may name, and the functions it may call.

    `functions` are statements after CREATE OR REPLACE TEMPORARY.
    """

    text: str
    relations: Mapping[str, pa.Table]
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows, and the columns as Spark types them."""

    schema: Schema
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Spark refuses the text, or fails on the values: `condition` is the name it has for that."""

    condition: str
    problem: str


Reply: TypeAlias = Answer | NoAnswer


class PlainSpark:
    """Sessions in which texts are asked as they are, a thread for each."""

    def __init__(self, given: SparkSession | None = None, threads: int = 2) -> None:
        self._base, self._stops = session_for(given)
        self._sessions = [_Session(_session(self._base)) for _ in range(threads)]

    def close(self) -> None:
        """Stop Spark, if it was started for this."""
        if self._stops:
            self._base.stop()

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """A reply to each question, in order; those next to each other share a session."""
        size = -(-len(questions) // len(self._sessions)) or 1
        parts = [questions[at : at + size] for at in range(0, len(questions), size)]
        with ThreadPoolExecutor(len(self._sessions)) as pool:
            replies = pool.map(_Session.replies, self._sessions, parts)
            return [reply for part in replies for reply in part]


def _session(base: SparkSession) -> SparkSession:
    session = base.newSession()
    for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
        session.conf.set(key, base.conf.get(key) or "")
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    return session


@dataclass(slots=True)
class _Session:
    """A Spark session, with the tables and functions that it knows already."""

    session: SparkSession
    frames: dict[int, tuple[pa.Table, DataFrame]] = field(default_factory=dict)
    registered: dict[str, pa.Table] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def replies(self, questions: Sequence[Question]) -> list[Reply]:
        return [self._reply(question) for question in questions]

    def _reply(self, question: Question) -> Reply:
        try:
            for name in set(self.registered) - set(question.relations):
                self.session.catalog.dropTempView(name)
                del self.registered[name]
            for name, rows in question.relations.items():
                self._register(name, rows)
            self._declare(question.functions)
            frame = self.session.sql(question.text)
            columns = (Column(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
            return Answer(tuple(columns), actions.collect(_numbered(frame)))
        except PySparkException as problem:
            condition = problem.getCondition() or type(problem).__name__
            return NoAnswer(condition, str(problem).strip().partition("\n")[0])
        except Py4JJavaError as problem:
            return NoAnswer(str(problem.java_exception.getClass().getName()), str(problem)[:300])

    def _register(self, name: str, rows: pa.Table) -> None:
        if self.registered.get(name) is rows:
            return
        if id(rows) not in self.frames:
            while len(self.frames) >= KEPT_FRAMES:
                del self.frames[next(iter(self.frames))]
            # The table is held as well: its id is its own only as long as it is there.
            types = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
            # Spark takes a piece without rows, after one that has some, for the end.
            whole = rows.combine_chunks() if rows.num_rows else rows.schema.empty_table()
            self.frames[id(rows)] = rows, self.session.createDataFrame(whole, types)
        self.frames[id(rows)][1].createOrReplaceTempView(spark_name(name))
        self.registered[name] = rows

    def _declare(self, functions: Sequence[str]) -> None:
        for each in functions:
            name = each.partition("(")[0]
            if self.declared.get(name) != each:
                self.session.sql(f"CREATE OR REPLACE TEMPORARY {each}")
                self.declared[name] = each


def _numbered(frame: DataFrame) -> DataFrame:
    """Columns by number: a result may have a name twice, an Arrow table may not."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
