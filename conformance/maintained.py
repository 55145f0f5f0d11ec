"""Gate 2: the views that Everview maintains, against plain Spark's answer after every batch."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import everview as ev
from conformance.cases import Case, Change, Check, Drop, Statement, Table, View
from conformance.plain import Answers, Plain
from conformance.refusals import construct
from conformance.values import decode_row, difference, is_value, rows_of, written
from everview.database.database import Database
from everview_fuzz.temporary_folder import temporary_folder

RIGHT, REFUSED, WRONG, LEFT_OUT = "right", "refused", "wrong", "left out"
_COMPUTING = "E010"
"""The code of an error about values; any other error about rows of a case is our fault."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case on one engine: the kind, why, and the queries not put to it."""

    case: str
    kind: str
    reason: str = ""
    unasked: int = 0


class DifferenceError(Exception):
    """A maintained view is not what plain Spark answers."""


def maintain(plain: Plain, engine: str, spark: Any = None) -> Outcome:
    """Run a case on an engine; what plain Spark cannot run must not crash us either."""
    case = plain.case
    with temporary_folder() as folder:
        try:
            outcome = _run(plain, folder / "store", engine, spark)
        except DifferenceError as problem:
            outcome = Outcome(case.id, WRONG, str(problem))
        except Exception:
            outcome = Outcome(case.id, WRONG, f"crashed\n{traceback.format_exc()}")
    if plain.left_out is None or "crashed" in outcome.reason:
        return outcome
    return Outcome(case.id, LEFT_OUT, plain.left_out)


def _run(plain: Plain, store: Path, engine: str, spark: Any) -> Outcome:
    given = {} if spark is None else {"spark": spark}
    with closing(ev.open(str(store), engine=engine, **given)) as db:
        run = _Run(plain, db, every_batch=engine != "spark")
        run.all_steps(plain.case)
        return run.outcome()


class _Run:
    """One case on one database: what was refused so far, and what was never asked."""

    def __init__(self, plain: Plain, db: Database, *, every_batch: bool) -> None:
        self.plain = plain
        self.db = db
        self.every_batch = every_batch
        self.views: list[str] = []
        self.collects = False
        self.refusals: list[str] = []
        self.unasked = 0
        self.ended = False

    def outcome(self) -> Outcome:
        kind = REFUSED if self.refusals else RIGHT
        reason = self.refusals[0] if self.refusals else ""
        return Outcome(self.plain.case.id, kind, reason, self.unasked)

    def all_steps(self, case: Case) -> None:
        for number, step in enumerate(case.steps):
            match step:
                case Table():
                    self._declare(step.sql)
                case View():
                    self._view(step)
                    self._compare(number)
                case Drop():
                    self._drop(step)
                case Change():
                    self._change(step)
                    self._compare(number)
                case Check():
                    self._check(step)
                case Statement():
                    # Only a case that plain Spark cannot replay still has changes as SQL.
                    self._declare(step.sql)
            if self.ended:
                return
        self._audit()

    def _declare(self, sql: str) -> None:
        """A table that is refused ends the case: nothing can be said without it."""
        try:
            self.db.sql(sql)
        except ev.UserError as problem:
            self.refusals.append(construct(problem))
            self.ended = True

    def _view(self, view: View) -> None:
        """A view that is refused is left out, the others go on."""
        try:
            replacing = "OR REPLACE " if view.replaces else ""
            self.db.sql(f"CREATE {replacing}MATERIALIZED VIEW {view.name} AS {view.query}")
            self.views.append(view.name)
            self.collects |= collects(view.query)
        except ev.UserError as problem:
            self.refusals.append(construct(problem))

    def _drop(self, drop: Drop) -> None:
        if drop.name in self.views or drop.kind == "table":
            self.db.sql(f"DROP {drop.kind.upper()} {drop.name}")
        if drop.name in self.views:
            self.views.remove(drop.name)

    def _change(self, change: Change) -> None:
        try:
            with self.db.transaction() as tx:
                for table, rows in by_table(change.delete).items():
                    tx.delete(table, rows)
                for table, rows in by_table(change.insert).items():
                    tx.insert(table, rows)
        except ev.UserError as problem:
            if problem.code != _COMPUTING and self.plain.left_out is None:
                raise
            self.refusals.append(construct(problem))
            self.ended = True

    def _compare(self, number: int) -> None:
        """Every view against plain Spark's rows after this step, and against its own query."""
        if self.ended:
            return
        answers: Answers = self.plain.answers.get(number, {})
        for name, rows in answers.items():
            if name in self.views:
                found = rows_of(self.db.read(name).to_arrow())
                expected = [decode_row(row) for row in rows]
                if self.collects:
                    found, expected = map(in_order, (found, expected))
                must_be_empty(f"{name} after step {number}", expected, found)
        if self.every_batch:
            self._audit()

    def _audit(self) -> None:
        for view in self.db.audit():
            if not view.ok:
                raise DifferenceError(
                    f"audit of {view.view}: missing {view.missing[:3]}, surplus {view.surplus[:3]}"
                )

    def _check(self, check: Check) -> None:
        if self.refusals or self.plain.left_out is not None:
            return
        try:
            found = self._ask(check.query)
        except ev.UserError:
            # A query is not a view: that it is refused says nothing about the views.
            self.unasked += 1
            return
        missing, surplus = difference(check.expected, found, written(check.null))
        if missing or surplus:
            raise DifferenceError(f"{check.query}: missing {missing[:3]}, surplus {surplus[:3]}")

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        result = self.db.sql(query)
        assert result is not None
        return rows_of(result.to_arrow())


def collects(query: str) -> bool:
    """Whether a query makes arrays of the values of a group, which Spark takes as they come."""
    return re.search(r"\b(collect_list|collect_set|array_agg)\b", query, re.IGNORECASE) is not None


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with their arrays sorted: Spark collects values as they come, Everview in order."""
    return [tuple(sorted(v, key=repr) if isinstance(v, list) else v for v in row) for row in rows]


def must_be_empty(what: str, expected: Sequence[Any], found: Sequence[Any]) -> None:
    """Refuse rows that are not the expected ones, as bags."""
    missing, surplus = difference(expected, found, is_value)
    if missing or surplus:
        raise DifferenceError(f"{what}: missing {missing[:3]}, surplus {surplus[:3]}")


def by_table(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, list[Any]]:
    """The rows of each table, in the order given."""
    tables: dict[str, list[Any]] = {}
    for table, row in pairs:
        tables.setdefault(table, []).append(row)
    return tables
