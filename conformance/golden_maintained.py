"""The queries of a golden file as maintained views, against plain Spark after every batch."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import everview as ev
from conformance.golden_plain import Answered, Judged
from conformance.maintained import (
    LEFT_OUT,
    REFUSED,
    RIGHT,
    WRONG,
    DifferenceError,
    Outcome,
    by_table,
    collects,
    in_order,
    must_be_empty,
)
from conformance.refusals import construct
from conformance.values import decode_row, rows_of
from everview.database.database import Database
from everview_fuzz.temporary_folder import temporary_folder


def maintain_world(judged: Judged, engine: str, spark: Any = None) -> list[Outcome]:
    """What becomes of every candidate, in their order; all of them are views of one store."""
    asked = [each for each in judged.answers if each.left_out is None]
    outcomes = _outcomes(judged, asked, engine, spark)
    return [
        outcomes.get(each.id) or Outcome(each.id, LEFT_OUT, each.left_out or "")
        for each in judged.answers
    ]


def _outcomes(
    judged: Judged, asked: Sequence[Answered], engine: str, spark: Any
) -> dict[str, Outcome]:
    """The candidates in one store; where that fails, in two, so that a fault finds its view."""
    if not asked:
        return {}
    with temporary_folder() as folder:
        try:
            return _run(judged, asked, folder / "store", engine, spark)
        except Exception as problem:
            if len(asked) == 1:
                return {asked[0].id: _failed(asked[0], problem)}
    half = len(asked) // 2
    return {
        **_outcomes(judged, asked[:half], engine, spark),
        **_outcomes(judged, asked[half:], engine, spark),
    }


def _failed(each: Answered, problem: Exception) -> Outcome:
    if isinstance(problem, ev.UserError):
        return Outcome(each.id, REFUSED, construct(problem))
    if isinstance(problem, DifferenceError):
        return Outcome(each.id, WRONG, str(problem))
    return Outcome(each.id, WRONG, f"crashed\n{''.join(traceback.format_exception(problem))}")


def _run(
    judged: Judged, asked: Sequence[Answered], store: Path, engine: str, spark: Any
) -> dict[str, Outcome]:
    given = {} if spark is None else {"spark": spark}
    with closing(ev.open(str(store), engine=engine, **given)) as db:
        run = _Run(db)
        for table in judged.tables:
            db.sql(table.sql)
        run.declare(asked[::2])
        for number, change in enumerate(judged.changes):
            with db.transaction() as tx:
                for name, rows in by_table(change.delete).items():
                    tx.delete(name, rows)
                for name, rows in by_table(change.insert).items():
                    tx.insert(name, rows)
            if number == 0:
                run.declare(asked[1::2])
            run.compare(number)
        if not judged.changes:
            run.declare(asked[1::2])
            run.compare(0)
        run.audit()
    return run.outcomes


class _Run:
    """The views of one store: those that are maintained, and what became of each."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.views: dict[str, Answered] = {}
        self.outcomes: dict[str, Outcome] = {}

    def declare(self, asked: Sequence[Answered]) -> None:
        """Half of the views before the first row, the other half after the first batch."""
        for each in asked:
            name = f"view_{len(self.outcomes)}"
            columns = ", ".join(f"c{i}" for i in range(len(each.types)))
            self.outcomes[each.id] = Outcome(each.id, RIGHT)
            try:
                self.db.sql(f"CREATE MATERIALIZED VIEW {name} ({columns}) AS {each.sql}")
                self.views[name] = each
            except ev.UserError as problem:
                self.outcomes[each.id] = Outcome(each.id, REFUSED, construct(problem))
            except Exception as problem:
                self.outcomes[each.id] = _failed(each, problem)

    def compare(self, number: int) -> None:
        """Every view against plain Spark's rows after this change."""
        for name, each in self.views.items():
            rows = each.batches[number]
            if rows is None or self.outcomes[each.id].kind != RIGHT:
                continue
            found = rows_of(self.db.read(name).to_arrow())
            expected = [decode_row(row) for row in rows]
            if collects(each.sql):
                found, expected = map(in_order, (found, expected))
            try:
                must_be_empty(f"after batch {number}", expected, found)
            except DifferenceError as problem:
                self.outcomes[each.id] = Outcome(each.id, WRONG, str(problem))

    def audit(self) -> None:
        for audited in self.db.audit():
            each = self.views[audited.view]
            if not audited.ok and self.outcomes[each.id].kind == RIGHT:
                reason = f"audit: missing {audited.missing[:3]}, surplus {audited.surplus[:3]}"
                self.outcomes[each.id] = Outcome(each.id, WRONG, reason)


def only(judged: Judged, names: set[str]) -> Judged:
    """The world with only the candidates of these names."""
    return replace(judged, answers=tuple(each for each in judged.answers if each.id in names))
