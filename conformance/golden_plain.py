"""What plain Spark answers to the queries of a golden file after every batch of its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from random import Random
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from conformance.cases import Case, Change, Row, Table
from conformance.fixtures import disturb
from conformance.golden import Candidate, World
from conformance.plain import THREADS, uncompiled
from conformance.printed import is_printed
from conformance.values import decode_row, difference, encode_row, rows_of

Encoded = list[list[Any]]
_SPARK_FAILS = (PySparkException, Py4JJavaError)
_CONDITION = re.compile(r"\[([A-Z][A-Z_.]+)\]")
_ORDER_MATTERS = re.compile(
    r"\b(over|limit|asof|first|last|first_value|last_value|any_value|collect_list|collect_set|array_agg"
    r"|listagg|string_agg|max_by|min_by|mode)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answered:
    """Plain Spark's answers to one candidate.

    `left_out` says why it is no measure of Everview. `batches` has the encoded rows after every
    change, None where Spark's answer depends on the order of rows. `fails` says that some batch
    before the last makes Spark fail. `printed` is whether the last is what the file has.
    """

    id: str
    sql: str
    types: tuple[str, ...] = ()
    batches: tuple[Encoded | None, ...] = ()
    left_out: str | None = None
    fails: bool = False
    printed: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """A world with its tables, its rows as changes, and the answers to its candidates."""

    id: str
    tables: tuple[Table, ...]
    changes: tuple[Change, ...]
    answers: tuple[Answered, ...]


def judge_worlds(
    worlds: Sequence[World], session: SparkSession, done: Callable[[Judged], None]
) -> None:
    """Judge many worlds, two at a time; `done` is called with each verdict in this thread."""
    idle: SimpleQueue[SparkSession] = SimpleQueue()
    for _ in range(THREADS):
        idle.put(session)

    def work(numbered: tuple[int, World]) -> Judged:
        mine = idle.get()
        try:
            return judge(numbered[1], uncompiled(mine.newSession()), f"golden_{numbered[0]}")
        finally:
            idle.put(mine)

    with ThreadPoolExecutor(THREADS) as pool:
        for verdict in pool.map(work, enumerate(worlds)):
            done(verdict)


def judge(world: World, session: SparkSession, database: str) -> Judged:
    """Set the world up in a database of its own, and ask its queries after every change."""
    session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    session.sql(f"CREATE DATABASE {database}")
    session.sql(f"USE {database}")
    try:
        for statement in world.setup:
            session.sql(statement)
        tables = _Tables(session, world.reads())
        return _judged(world, tables, session)
    finally:
        session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


def _judged(world: World, tables: _Tables, session: SparkSession) -> Judged:
    """With mixed rows among the batches, unless one is such that a query cannot be computed."""
    for perturbed in (True, False):
        tables.clear()
        changes = tables.changes(world.id, perturbed=perturbed)
        answers = _answers(world, tables, changes, session)
        if not any(each.fails for each in answers):
            break
    return Judged(world.id, tables.declared, changes, answers)


def _answers(
    world: World, tables: _Tables, changes: Sequence[Change], session: SparkSession
) -> tuple[Answered, ...]:
    asked = {each.id: _Asked(each, session) for each in world.candidates}
    for key, value in world.settings:
        session.conf.set(key, value)
    for change in changes or [Change((), ())]:
        tables.apply(change)
        for each in asked.values():
            each.ask()
        for arranged in (tables.turned_around, tables.shuffled):
            with arranged():
                for each in asked.values():
                    each.ask_again()
    if world.settings:
        for key, _ in world.settings:
            session.conf.unset(key)
        for each in asked.values():
            each.ask_without_settings()
    return tuple(each.answered() for each in asked.values())


class _Tables:
    """The relations of a world as temporary views whose rows come and go."""

    def __init__(self, session: SparkSession, names: Iterable[str]) -> None:
        self.session = session
        frames = {name: session.table(name) for name in names}
        whole = {name: frame.toArrow() for name, frame in frames.items()}
        self.frames, self.arrow = frames, {name: each.schema for name, each in whole.items()}
        self.given = {name: rows_of(each) for name, each in whole.items()}
        self.declared = tuple(_declared(name, frame) for name, frame in frames.items())
        self.rows: dict[str, list[Row]] = {}

    def clear(self) -> None:
        self.rows = {name: [] for name in self.frames}
        for name in self.frames:
            self._refresh(name)

    def changes(self, seed: str, *, perturbed: bool) -> tuple[Change, ...]:
        """The rows of the world in batches, with rows that come and go again."""
        case = Case(seed, "spark_golden", self.declared)
        rows = {name: rows for name, rows in self.given.items() if rows}
        steps = disturb(case, rows, perturbed=perturbed).steps
        return tuple(step for step in steps if isinstance(step, Change))

    def apply(self, change: Change) -> None:
        for name, row in change.insert:
            self.rows[name].append(row)
        for name, row in change.delete:
            self.rows[name].remove(row)
        for name in sorted({name for name, _ in change.insert + change.delete}):
            self._refresh(name)

    def turned_around(self) -> AbstractContextManager[None]:
        """The rows in the opposite order, for a moment."""
        return self._arranged(lambda rows: rows[::-1])

    def shuffled(self) -> AbstractContextManager[None]:
        """The rows in an order of no meaning: a frame may be the same from either end."""
        return self._arranged(lambda rows: Random(len(rows)).sample(rows, len(rows)))

    @contextmanager
    def _arranged(self, order: Callable[[list[Row]], list[Row]]) -> Iterator[None]:
        kept = self.rows
        self.rows = {name: order(rows) for name, rows in kept.items()}
        for name in kept:
            self._refresh(name)
        yield
        self.rows = kept
        for name in kept:
            self._refresh(name)

    def _refresh(self, name: str) -> None:
        columns = list(zip(*self.rows[name], strict=True)) or [()] * len(self.arrow[name])
        arrays = [
            pa.array(list(map(_for_arrow, values)), field.type)
            for values, field in zip(columns, self.arrow[name], strict=True)
        ]
        made = pa.Table.from_arrays(arrays, schema=self.arrow[name])
        frame = self.session.createDataFrame(made, schema=self.frames[name].schema)
        frame.createOrReplaceTempView(name)


def _for_arrow(value: Any) -> Any:
    """A map as the pairs that Arrow makes one of; a struct has names for keys and stays."""
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return list(value.items())
    return value


def _declared(name: str, frame: DataFrame) -> Table:
    columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema)
    body = ", ".join(f"`{column}` {type_}" for column, type_ in columns)
    return Table(name, f"CREATE TABLE {name} ({body})", columns)


class _Asked:
    """A candidate while it is being asked."""

    def __init__(self, candidate: Candidate, session: SparkSession) -> None:
        self.candidate = candidate
        self.session = session
        self.types: tuple[str, ...] = ()
        self.batches: list[Encoded | None] = []
        self.rows: list[Row] = []
        self.problem: str | None = None
        self.fails = False
        self.left_out: str | None = None

    def ask(self) -> None:
        self.fails |= self.problem is not None
        self.problem = None
        try:
            self.batches.append(self._rows())
        except (*_SPARK_FAILS, NotImplementedError, pa.ArrowException) as problem:
            self.problem = f"plain Spark fails: {_condition(problem)}"
            self.batches.append(None)

    def ask_again(self) -> None:
        """With the rows in another order: an answer that depends on it is no measure."""
        last = self.batches[-1]
        if last is not None and _ORDER_MATTERS.search(self.candidate.sql):
            kept = self.rows
            if _bag(self._rows()) != _bag(last):
                self.batches[-1] = None
            self.rows = kept

    def ask_without_settings(self) -> None:
        """A query that the file's settings make another one is not a query of ours."""
        last = self.batches[-1]
        try:
            if last is not None and _bag(self._rows()) != _bag(last):
                self.left_out = "a setting of the file changes the answer"
        except _SPARK_FAILS:
            # The settings only let Spark read it: what it means is as they say.
            return

    def answered(self) -> Answered:
        found, left_out = self.candidate, self.left_out or self.problem
        if left_out is not None:
            return Answered(found.id, found.sql, left_out=left_out)
        missing, surplus = difference(found.expected, self.rows, is_printed)
        return Answered(
            found.id,
            found.sql,
            self.types,
            tuple(self.batches),
            fails=self.fails,
            printed=not (missing or surplus),
        )

    def _rows(self) -> Encoded:
        frame = self.session.sql(self.candidate.sql)
        self.types = tuple(field.dataType.simpleString() for field in frame.schema)
        self.rows = rows_of(frame.toArrow())
        return [encode_row(row) for row in self.rows]


def _condition(problem: Exception) -> str:
    if isinstance(problem, PySparkException):
        return problem.getCondition() or type(problem).__name__
    if isinstance(problem, Py4JJavaError):
        named = _CONDITION.search(str(problem))
        return named[1] if named else type(problem).__name__
    return str(problem)


def _bag(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


def encoded(judged: Judged) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "id": judged.id,
        "tables": [[each.name, each.sql, each.columns] for each in judged.tables],
        "changes": [
            [[[name, encode_row(row)] for name, row in side] for side in (each.delete, each.insert)]
            for each in judged.changes
        ],
        "answers": [
            {name: getattr(each, name) for name in Answered.__dataclass_fields__}
            for each in judged.answers
        ],
    }


def decoded(record: Mapping[str, Any]) -> Judged:
    """The verdict that `encoded` encoded."""
    tables = tuple(
        Table(name, sql, tuple((column, type_) for column, type_ in columns))
        for name, sql, columns in record["tables"]
    )
    changes = tuple(
        Change(*(tuple((name, decode_row(row)) for name, row in side) for side in sides))
        for sides in record["changes"]
    )
    answers = tuple(
        Answered(**{**each, "types": tuple(each["types"]), "batches": tuple(each["batches"])})
        for each in record["answers"]
    )
    return Judged(record["id"], tables, changes, answers)
