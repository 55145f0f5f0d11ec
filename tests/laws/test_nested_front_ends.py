"""One nested question asked as a comprehension, in NRC⁺ and in SQL has one answer.

The tables are bags without NULL in what is compared: there `=` of SQL and `==` are the same. What
CPython makes of the comprehension over lists of the rows is the answer.
"""

# Records are written as the other languages name their components.
# ruff: noqa: C408

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any

import pytest

import everview as ev
from cases import THOROUGH
from everview.database.database import Database

Row = tuple[int, ...]
VALUES = range(4)
SEEDS = range(8) if THOROUGH else range(1)
CHANGES = 20 if THOROUGH else 3
MODES = ("auto", "shredded", "inline") if THOROUGH else ("auto",)
Pair = make_dataclass("Pair", ["a", "b"], frozen=True)


@dataclass(frozen=True)
class Question:
    """The same question in each language, over `r` and `s` with whole numbers `a` and `b`."""

    function: Callable[..., Any]
    calculus: str
    sql: str


def partners(r, s):
    return [dict(a=x.a, bs=[y.b for y in s if y.a == x.b]) for x in r]


def deep(r, s):
    return [
        dict(a=x.a, rows=[dict(b=y.b, more=[z.a + x.a for z in r if z.b == y.b]) for y in s])
        for x in r
        if x.b > 1
    ]


def several(r, s):
    return [dict(b=x.b, one=[y.a for y in s if y.a < x.a], all=[z.b for z in s]) for x in r]


def sums(r, s):
    return [dict(a=x.a, rows=[dict(a=y.a, b=y.b) for y in s if y.a == x.a]) for x in r]


QUESTIONS = {
    "partners": Question(
        partners,
        "for x in r union sng(⟨a: x.a, bs: for y in s where y.a == x.b union sng(y.b)⟩)",
        "SELECT x.a, ARRAY(SELECT y.b FROM s y WHERE y.a = x.b) AS bs FROM r x",
    ),
    "deep": Question(
        deep,
        "for x in r where x.b > 1 union sng(⟨a: x.a, rows: for y in s union"
        " sng(⟨b: y.b, more: for z in r where z.b == y.b union sng(z.a + x.a)⟩)⟩)",
        "SELECT x.a, ARRAY(SELECT struct(y.b AS b, ARRAY(SELECT z.a + x.a FROM r z"
        " WHERE z.b = y.b) AS more) FROM s y) AS rows FROM r x WHERE x.b > 1",
    ),
    "several": Question(
        several,
        "for x in r union sng(⟨b: x.b, one: for y in s where y.a < x.a union sng(y.a),"
        " `all`: for z in s union sng(z.b)⟩)",
        "SELECT x.b, MULTISET(SELECT y.a FROM s y WHERE y.a < x.a) AS one,"
        " MULTISET(SELECT z.b FROM s z) AS `all` FROM r x",
    ),
    "grouped": Question(
        sums,
        "for x in r union sng(⟨a: x.a, rows: for y in s where y.a == x.a union sng(⟨a: y.a,"
        " b: y.b⟩)⟩)",
        "SELECT r.a, coalesce(g.rows, ARRAY()) AS rows FROM r LEFT JOIN (SELECT a,"
        " collect_list(struct(a, b)) AS rows FROM s GROUP BY a) g ON r.a = g.a",
    ),
}


def bag(rows: Any) -> Counter[Any]:
    return Counter(_value(tuple(row.values()) if isinstance(row, dict) else row) for row in rows)


def _value(value: Any) -> Any:
    """A hashable value; the elements of a list in their order, which is the same for all."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list):
        return ("list", *sorted(map(_value, value)))
    return tuple(map(_value, value)) if isinstance(value, tuple) else value


def declare(db: Database, name: str, question: Question, mode: Any) -> None:
    db.nested(question.function, name=f"python_{name}", nested=mode)
    db.nested(question.calculus, name=f"nrc_{name}", nested=mode)
    option = f"WITH (nested = '{mode}') " if name != "grouped" else ""
    db.sql(f"CREATE VIEW sql_{name} {option}AS {question.sql}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_nested_question_has_one_answer_in_every_language(seed, mode, tmp_path):
    rng = random.Random(seed)
    tables: dict[str, list[Row]] = {"r": [], "s": []}
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE r (a INT, b INT); CREATE TABLE s (a INT, b INT)")
        for name, question in QUESTIONS.items():
            declare(db, name, question, mode)
        for _ in range(CHANGES):
            with db.transaction() as tx:
                for name, rows in tables.items():
                    rng.shuffle(rows)
                    cut = rng.choice((0, 1, 2, len(rows)))
                    gone, rows[:] = rows[:cut], rows[cut:]
                    come = [
                        (rng.choice(VALUES), rng.choice(VALUES)) for _ in range(rng.choice((0, 3)))
                    ]
                    rows += come
                    tx.delete(name, gone)
                    tx.insert(name, come)
            given = [[Pair(*row) for row in rows] for rows in tables.values()]
            for name, question in QUESTIONS.items():
                wanted = bag(question.function(*given))
                for language in ("python", "nrc", "sql"):
                    assert bag(db.read(f"{language}_{name}").rows()) == wanted, (language, name)
        assert db.audit().ok
