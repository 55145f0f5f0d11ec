"""Gate 1: what plain Spark answers, run once over the tables as they stand after every batch."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from queue import SimpleQueue
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from conformance.cases import Case, Change, Check, Drop, Row, Statement, Table, View
from conformance.fixtures import disturb
from conformance.inserts import delete_query, insert_query
from conformance.values import difference, encode_row, rows_of, written

THREADS = 2
Answers = dict[str, list[list[Any]]]


@dataclass(frozen=True, slots=True)
class Plain:
    """Plain Spark's verdict on a case.

    `left_out` says why the case is no measure of Everview, or is None. `case` has every change as
    rows, and `answers` the encoded rows of every view after each step that may change one.
    """

    case: Case
    left_out: str | None
    answers: Mapping[int, Answers]


class LeftOutError(Exception):
    """Plain Spark does not answer what the suite recorded."""


def judge(case: Case, session: SparkSession) -> Plain:
    """Replay the case on plain Spark."""
    try:
        if case.disturbed:
            return _disturbed(case, session)
        return _replay(case, session)
    except LeftOutError as problem:
        return Plain(case, str(problem), {})
    except PySparkException as problem:
        return Plain(case, f"plain Spark fails: {_condition(problem)}", {})
    except NotImplementedError as problem:
        return Plain(case, f"plain Spark fails: {problem}", {})


def _condition(problem: PySparkException) -> str:
    """The name of an error condition, without the words about this one query."""
    return problem.getCondition() or type(problem).__name__


def _disturbed(case: Case, session: SparkSession) -> Plain:
    """First the recorded answer over the recorded rows; then the same rows in several batches."""
    rows = _inserted(_replay(case, session).case)
    try:
        return _replay(disturb(case, rows, perturbed=True), session)
    except PySparkException:
        # A mixed row may be one that the query cannot compute, like a division by zero.
        return _replay(disturb(case, rows, perturbed=False), session)


def _inserted(case: Case) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for step in case.steps:
        if isinstance(step, Change):
            for table, row in step.insert:
                rows.setdefault(table, []).append(row)
    return rows


def _replay(case: Case, session: SparkSession) -> Plain:
    world = _World(session)
    steps = []
    answers: dict[int, Answers] = {}
    try:
        for number, step in enumerate(case.steps):
            match step:
                case Table():
                    world.create(step)
                case View():
                    world.view(step)
                    answers[number] = world.answers([step.name])
                case Drop():
                    world.drop(step.name)
                case Statement() | Change():
                    step = world.as_rows(step)
                    world.apply(step)
                    answers[number] = {} if case.disturbed else world.answers()
                case Check():
                    world.check(step)
            steps.append(step)
    finally:
        world.clear()
    return Plain(replace(case, steps=tuple(steps)), None, answers)


class _World:
    """The tables and views of one case as temporary views of a session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.tables: dict[str, Table] = {}
        self.rows: dict[str, Counter[str]] = {}
        self.views: dict[str, View] = {}

    def create(self, table: Table) -> None:
        if table.query is not None:
            frame = self.session.sql(table.query)
            columns = tuple((f.name, f.dataType.simpleString()) for f in frame.schema)
            table, rows = replace(table, columns=columns), rows_of(frame.toArrow())
        else:
            rows = []
        self.tables[table.name] = table
        self.rows[table.name] = Counter(_row_literal(row) for row in rows)
        self._refresh(table.name)

    def view(self, view: View) -> None:
        self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW `{view.name}` AS {view.query}")
        self.views[view.name] = view

    def drop(self, name: str) -> None:
        self.session.catalog.dropTempView(name)
        self.views.pop(name, None)
        self.tables.pop(name, None)

    def as_rows(self, step: Statement | Change) -> Change:
        if isinstance(step, Change):
            return step
        table = self.tables[step.table]
        removes = step.sql.lstrip().upper().startswith("DELETE")
        query = (delete_query if removes else insert_query)(step.sql, table)
        pairs = tuple((table.name, row) for row in rows_of(self.session.sql(query).toArrow()))
        return Change(pairs, ()) if removes else Change((), pairs)

    def apply(self, change: Change) -> None:
        for name, row in change.insert:
            self.rows[name][_row_literal(row)] += 1
        for name, row in change.delete:
            self._remove(name, _row_literal(row))
        for name in sorted({name for name, _ in change.insert + change.delete}):
            self._refresh(name)

    def _remove(self, table: str, row: str) -> None:
        if self.rows[table][row] <= 0:
            raise LeftOutError("the case deletes a row that is not there")
        self.rows[table][row] -= 1

    def _refresh(self, name: str) -> None:
        table = self.tables[name]
        columns = ", ".join(
            f"CAST(c{i} AS {type_}) AS `{column}`"
            for i, (column, type_) in enumerate(table.columns)
        )
        names = ", ".join(f"c{i}" for i in range(len(table.columns)))
        rows = [row for row, count in self.rows[name].items() for _ in range(count)]
        nothing = f"({', '.join('NULL' for _ in table.columns)})"
        values = f"VALUES {', '.join(rows or [nothing])} AS given({names})"
        where = "" if rows else " WHERE false"
        self.session.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW `{name}` AS SELECT {columns} FROM {values}{where}"
        )

    def answer(self, view: str) -> list[list[Any]]:
        found = self.session.sql(f"SELECT * FROM `{view}`").toArrow()
        return [encode_row(row) for row in rows_of(found)]

    def answers(self, names: Iterable[str] | None = None) -> Answers:
        """The rows of views, but for those where Spark's answer is one of several.

        Where rows tie, a window or a LIMIT takes them as they come: the same rows in another order
        may have another answer, and then it is no measure.
        """
        asked = list(self.views) if names is None else list(names)
        found = {name: self.answer(name) for name in asked}
        if not any(_TAKES_ROWS_AS_THEY_COME.search(view.query) for view in self.views.values()):
            return found
        self._turn_around()
        again = {name: self.answer(name) for name in asked}
        self._turn_around()
        return {name: rows for name, rows in found.items() if _bag(rows) == _bag(again[name])}

    def _turn_around(self) -> None:
        """The rows of every table in the opposite order."""
        for name, rows in self.rows.items():
            self.rows[name] = Counter(dict(reversed(rows.items())))
            self._refresh(name)

    def check(self, check: Check) -> None:
        found = rows_of(self.session.sql(check.query).toArrow())
        missing, surplus = difference(check.expected, found, written(check.null))
        if missing or surplus:
            raise LeftOutError("plain Spark answers otherwise than recorded")

    def clear(self) -> None:
        for name in (*self.views, *self.tables):
            self.session.catalog.dropTempView(name)


_TAKES_ROWS_AS_THEY_COME = re.compile(r"\b(over|limit)\b", re.IGNORECASE)


def _bag(rows: Iterable[Sequence[Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


def _row_literal(row: Sequence[Any]) -> str:
    return f"({', '.join(map(_literal, row))})"


def _literal(value: Any) -> str:
    """A value as SQL that a cast to the column's type makes exact."""
    match value:
        case None:
            return "NULL"
        case bool():
            return f"'{str(value).lower()}'"
        case int() | float() | Decimal() | datetime() | date():
            return f"'{value}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex()}'"
        case list():
            return f"array({', '.join(map(_literal, value))})"
        case Mapping() as pairs:
            return f"map({', '.join(f'{_literal(k)}, {_literal(v)}' for k, v in pairs.items())})"
        case _:
            return f"'{value}'"


def start() -> SparkSession:
    """A local Spark for tiny tables: two threads, few partitions, no word about failing queries."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("everview-conformance")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def judge_all(cases: Sequence[Case], session: SparkSession, done: Callable[[Plain], None]) -> None:
    """Judge many cases, two at a time; `done` is called with each verdict in this thread."""
    quick = [uncompiled(session.newSession()) for _ in range(THREADS)]
    idle: SimpleQueue[SparkSession] = SimpleQueue()
    for each in quick:
        idle.put(each)

    def work(case: Case) -> Plain:
        mine = idle.get()
        try:
            return judge(case, mine)
        finally:
            idle.put(mine)

    with ThreadPoolExecutor(THREADS) as pool:
        for verdict in pool.map(work, cases):
            done(verdict)


def uncompiled(session: SparkSession) -> SparkSession:
    """A session in which nothing is compiled: for a handful of rows, compiling is the work."""
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session
