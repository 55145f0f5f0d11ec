"""One question asked in SQL, Datalog, AGCA, algebra and as a plan in Python has one answer.

The tables are bags without NULL. An answer in SQL and one by a plan are equal as bags. Datalog and
relational algebra know sets: a row is derived once however often it follows, and a row of a table
is read once however often it is there. So their answer is the set of the rows of the others,
provided that the question does not count the copies of a row; questions with a count or a sum ask
for it over distinct rows. Relational algebra has no arithmetic, aggregates and recursion. AGCA has
a row with its multiplicity as the value, and no distinct, minimum or recursion: its answer has each
row of a bag once, with the number of its copies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import everview as ev
from cases import THOROUGH
from everview.database.database import Database
from everview.plan.build import add, distinct, filter_, group_by, join, map_, negate, project
from everview.plan.nodes import Aggregate, Fixpoint, Output, Plan, Recursive, Source
from everview.plan.traverse import schema_of

Row = tuple[int, ...]
VALUES = range(4)
CHANGES = 30 if THOROUGH else 14
SEEDS = range(8) if THOROUGH else range(1)


def of(plan: Plan, **columns: str) -> Plan:
    """Whole numbers computed from the columns of a plan."""
    return map_(plan, tuple(Output(name, "int", text) for name, text in columns.items()))


def _joined(r: Plan, s: Plan) -> Plan:
    return join(r, of(s, c="a", d="b"), (("b", "c"),))


def _aggregates(r: Plan, *aggregates: Aggregate) -> Plan:
    return group_by(distinct(r), ("a",), aggregates)


def _closure(r: Source, s: Plan) -> Plan:
    step = join(Recursive("t", r.schema), of(r, c="a", d="b"), (("b", "c"),))
    return Fixpoint("t", (("t", distinct(add(r, of(step, a="a", b="d")))),))


def _odd_ways(r: Source, s: Plan) -> Plan:
    """Pairs with a way of an odd number of edges."""

    def longer(name: str) -> Plan:
        step = join(Recursive(name, r.schema), of(r, c="a", d="b"), (("b", "c"),))
        return of(step, a="a", b="d")

    odd = distinct(add(r, longer("even")))
    return Fixpoint("odd", (("odd", odd), ("even", distinct(longer("odd")))))


def _without(r: Plan, taken: Plan) -> Plan:
    """The rows of a set that do not begin with a row of another set."""
    names = [column.name for column in schema_of(taken)]
    other = of(taken, **{f"other_{name}": name for name in names})
    both = join(r, other, tuple((name, f"other_{name}") for name in names))
    return add(r, negate(project(both, tuple(column.name for column in schema_of(r)))))


@dataclass(frozen=True)
class Question:
    """The same question in each language that has it; `rules` derive the relation `q`.

    `agca` is the definition of a view `q`.
    """

    sql: str
    rules: str
    plan: Callable[[Source, Source], Plan]
    columns: int = 2
    algebra: str = ""
    agca: str = ""


OF_DISTINCT = "FROM (SELECT DISTINCT a, b FROM r) GROUP BY a"
QUESTIONS = {
    "filter": Question(
        "SELECT a, b FROM r WHERE a < b OR b = 0",
        "q(x, y) :- r(x, y), (x < y; y = 0).",
        lambda r, s: filter_(r, "a < b OR b = 0"),
        algebra="σ[a < b OR b = 0](r)",
        agca="q[x, y] := r(x, y) * (((x < y) + (y = 0)) > 0)",
    ),
    "projection": Question(
        "SELECT b FROM r",
        "q(y) :- r(_, y).",
        lambda r, s: of(r, b="b"),
        1,
        algebra="Π[b](r)",
        agca="q[y] := r(_, y)",
    ),
    "arithmetic": Question(
        "SELECT a + 2 * b AS x, (a - b) * a AS y FROM r",
        "q(x + 2 * y, (x - y) * x) :- r(x, y).",
        lambda r, s: of(r, x="a + 2 * b", y="(a - b) * a"),
        agca="q[u, v] := r(x, y) * (u := x + 2 * y) * (v := (x - y) * x)",
    ),
    "join": Question(
        "SELECT r.a, s.b FROM r JOIN s ON r.b = s.a",
        "q(x, z) :- r(x, y), s(y, z).",
        lambda r, s: of(_joined(r, s), a="a", d="d"),
        algebra="Π[a, d](r ⋈ Π[a AS b, b AS d](s))",
        agca="q[x, z] := Sum(r(x, y) * s(y, z))",
    ),
    "join with a condition": Question(
        "SELECT r.a, s.b FROM r, s WHERE r.b = s.a AND r.a <> s.b",
        "q(x, z) :- s(y, z), x != z, r(x, y).",
        lambda r, s: of(filter_(_joined(r, s), "a <> d"), a="a", d="d"),
        algebra="Π[a, d](σ[a <> d](r ⋈ Π[a AS b, b AS d](s)))",
        agca="q[x, z] := (x <> z) * Sum(s(y, z) * r(x, y))",
    ),
    "self-join": Question(
        "SELECT one.a, two.b FROM r one JOIN r two ON one.b = two.a",
        "q(x, z) :- r(x, y), r(y, z).",
        lambda r, s: of(_joined(r, r), a="a", d="d"),
        algebra="Π[a, d](r ⋈ Π[a AS b, b AS d](r))",
        agca="q[x, z] := r(x, y) * r(y, z)",
    ),
    "product": Question(
        "SELECT r.a, s.b FROM r CROSS JOIN s",
        "q(x, y) :- r(x, _), s(_, y).",
        lambda r, s: of(join(r, of(s, c="a", d="b")), a="a", d="d"),
        algebra="Π[a](r) × Π[b](s)",
        agca="q[x, y] := r(x, _) * s(_, y)",
    ),
    "union of bags": Question(
        "SELECT a, b FROM r UNION ALL SELECT b, a FROM s",
        "q(x, y) :- r(x, y). q(x, y) :- s(y, x).",
        lambda r, s: add(r, of(s, a="b", b="a")),
        algebra="r ∪ Π[b AS a, a AS b](s)",
        agca="q[x, y] := r(x, y) + s(y, x)",
    ),
    "union of sets": Question(
        "SELECT a, b FROM r UNION SELECT a, b FROM s",
        "q(x, y) :- r(x, y); s(x, y).",
        lambda r, s: distinct(add(r, s)),
        algebra="r ∪ s",
    ),
    "difference": Question(
        "SELECT a, b FROM r EXCEPT SELECT a, b FROM s",
        "q(x, y) :- r(x, y), !s(x, y).",
        lambda r, s: _without(distinct(r), distinct(s)),
        algebra="r − s",
    ),
    "negation": Question(
        "SELECT DISTINCT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a)",
        "q(x, y) :- r(x, y), !s(x, _).",
        lambda r, s: _without(distinct(r), distinct(of(s, a="a"))),
        algebra="r − (r ⋈ Π[a](s))",
    ),
    "distinct": Question(
        "SELECT DISTINCT a FROM r",
        "q(x) :- r(x, _).",
        lambda r, s: distinct(of(r, a="a")),
        1,
        algebra="Π[a](r)",
    ),
    "count of a group": Question(
        f"SELECT a, COUNT(*) AS n {OF_DISTINCT}",
        "q(x, n) :- r(x, _), n = count : r(x, _).",
        lambda r, s: _aggregates(r, Aggregate("n", "bigint", "count")),
    ),
    "sum of a group": Question(
        f"SELECT a, SUM(b) AS n {OF_DISTINCT}",
        "q(x, n) :- r(x, _), n = sum y : r(x, y).",
        lambda r, s: _aggregates(r, Aggregate("n", "bigint", "sum", "b")),
    ),
    "least and greatest of a group": Question(
        "SELECT a, MIN(b) AS low, MAX(b) AS high FROM r GROUP BY a",
        "q(x, m, n) :- r(x, _), m = min y : r(x, y), n = max y : r(x, y).",
        lambda r, s: _aggregates(
            r, Aggregate("low", "int", "min", "b"), Aggregate("high", "int", "max", "b")
        ),
        3,
    ),
    "transitive closure": Question(
        "WITH RECURSIVE t(x, y) AS (SELECT a, b FROM r UNION"
        " SELECT t.x, r.b FROM t JOIN r ON t.y = r.a) SELECT x, y FROM t",
        "q(x, y) :- r(x, y). q(x, z) :- q(x, y), r(y, z).",
        _closure,
    ),
    "mutual recursion": Question(
        "WITH RECURSIVE w(x, y, odd) AS (SELECT a, b, 1 FROM r UNION"
        " SELECT w.x, r.b, 1 - w.odd FROM w JOIN r ON w.y = r.a)"
        " SELECT x, y FROM w WHERE odd = 1",
        ".decl even(x: number, y: number) even(x, z) :- q(x, y), r(y, z)."
        " q(x, y) :- r(x, y). q(x, z) :- even(x, y), r(y, z).",
        _odd_ways,
    ),
}


def declare(db: Database, number: int, question: Question) -> None:
    """Make a view of the question in each language."""
    if question.agca:
        db.agca(f"agca{number}{question.agca.removeprefix('q')}")
    db.sql(f"CREATE VIEW sql{number} AS {question.sql}")
    db.view(f"plan{number}", question.plan(db.source("r"), db.source("s")))
    if question.algebra:
        db.relalg(f"algebra{number}", question.algebra)
    pair = "(x: number, y: number)"
    given = "".join(f".decl {t}{pair} .input {t} " for t in "rs" if f"{t}(" in question.rules)
    columns = ", ".join(f"c{each}: number" for each in range(question.columns))
    rules = question.rules.replace("q(", f"datalog{number}(").replace("even", f"even{number}")
    db.datalog(f"{given}.decl datalog{number}({columns}) .output datalog{number} {rules}")


def changed(rng: random.Random, rows: Counter[Row]) -> tuple[list[Row], list[Row]]:
    """Rows to delete and to insert, copies of those that are there among them."""
    there = sorted(rows.elements())
    gone = rng.sample(there, rng.randint(0, min(3, len(there))))
    drawn = [(rng.choice(VALUES), rng.choice(VALUES)) for _ in range(rng.randint(0, 3))]
    again = rng.sample(there, 1) if there and rng.random() < 0.3 else []
    return gone, drawn + again


@pytest.mark.parametrize("seed", SEEDS)
def test_one_question_has_one_answer_in_every_language(seed, tmp_path):
    rng = random.Random(seed)
    tables: dict[str, Counter[Row]] = {"r": Counter(), "s": Counter()}
    answered = set()
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE r (a INT, b INT); CREATE TABLE s (a INT, b INT)")
        for number, question in enumerate(QUESTIONS.values()):
            declare(db, number, question)
        for _ in range(CHANGES):
            with db.transaction() as tx:
                for name, rows in tables.items():
                    gone, come = changed(rng, rows)
                    tx.delete(name, gone)
                    tx.insert(name, come)
                    rows.subtract(gone)
                    rows.update(come)
            for number, (name, question) in enumerate(QUESTIONS.items()):
                in_sql, in_datalog, by_plan = (
                    Counter(db.read(f"{language}{number}").rows())
                    for language in ("sql", "datalog", "plan")
                )
                assert in_sql == by_plan, name
                assert in_datalog == Counter(set(in_sql)), name
                if question.algebra:
                    assert Counter(db.read(f"algebra{number}").rows()) == in_datalog, name
                if question.agca:
                    in_agca = db.read(f"agca{number}").rows()
                    assert len(in_agca) == len(in_sql), name
                    assert {row[:-1]: row[-1] for row in in_agca} == in_sql, name
                if in_sql:
                    answered.add(name)
        assert db.audit().ok
    assert answered == set(QUESTIONS)
