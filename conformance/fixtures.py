"""The cases of spark_fixtures as steps: insert-only, so changes are made up around the rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import sqlglot
from sqlglot import exp

from conformance.cases import Case, Change, Check, Row, Statement, Step, View, parse_table

NULL = "None"


def load(folder: Path) -> list[Case]:
    """Every case of the suite, in the order of its file."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [_case(json.loads(line)) for line in lines]


def _case(record: Mapping[str, Any]) -> Case:
    steps: list[Step] = [parse_table(sql) for sql in record["tables"]]
    steps += [Statement(_target(sql), sql) for sql in record["data"]]
    steps += [View(view["name"], view["query"]) for view in record["views"]]
    if record["expected"] is not None:
        expected = tuple(tuple(row) for row in record["expected"])
        steps.append(Check(f"SELECT * FROM {record['output_view']}", expected, NULL))
    return Case(record["id"], "spark_fixtures", tuple(steps), disturbed=True)


def _target(insert: str) -> str:
    tree = sqlglot.parse_one(insert, dialect="spark")
    table = tree.find(exp.Table)
    assert table is not None
    return table.name


def disturb(case: Case, rows: Mapping[str, list[Row]], *, perturbed: bool) -> Case:
    """The case with its rows in four batches, and with rows that come and go again.

    The first batch has half of the rows and the rows to be removed later; the second the other
    half; the third removes what was added and some true rows, which the fourth brings back. Half of
    the cases, by name, have their views before the first row.
    """
    first, second, third, fourth = Change((), ()), Change((), ()), Change((), ()), Change((), ())
    tables = case.tables()
    for name, present in rows.items():
        half = (len(present) + 1) // 2
        extra = [] if tables[name].keyed else _extra(present, perturbed=perturbed)
        early, late = present[:half], present[half:]
        again = present[::3]
        first = _plus(first, name, insert=[*early, *extra])
        second = _plus(second, name, insert=late, delete=extra[:1])
        third = _plus(third, name, delete=[*again, *extra[1:]])
        fourth = _plus(fourth, name, insert=again)
    views = [step for step in case.steps if isinstance(step, View)]
    checks = [step for step in case.steps if isinstance(step, Check)]
    changes = [each for each in (first, second, third, fourth) if each.insert or each.delete]
    before: list[Step] = [*views, *changes] if early_views(case) else [*changes[:1], *views]
    after: list[Step] = [] if early_views(case) else [*changes[1:]]
    return Case(case.id, case.suite, (*tables.values(), *before, *after, *checks))


def early_views(case: Case) -> bool:
    """Whether the views of the case are created before its rows arrive."""
    return crc32(case.id.encode()) % 2 == 0


def _extra(present: list[Row], *, perturbed: bool) -> list[Row]:
    """Copies of some rows, and rows with the first value of one and the rest of another."""
    copies = present[:2]
    if not perturbed:
        return copies
    mixed = [(a[0], *b[1:]) for a, b in pairwise(present)]
    return [*copies, *mixed[:3]]


def _plus(
    change: Change, table: str, *, insert: list[Row] | None = None, delete: list[Row] | None = None
) -> Change:
    return Change(
        change.delete + tuple((table, row) for row in delete or ()),
        change.insert + tuple((table, row) for row in insert or ()),
    )
