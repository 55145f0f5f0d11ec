"""Plain Spark judges what views hold, and finds a text that is misread as often as it is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp

from everview.database import audit_query
from everview.expr.types import Column
from everview.lang.sql.lower import query
from everview_fuzz.case import Case, Change, Table, Transaction, View
from everview_fuzz.check.oracle import Claim, Oracle
from everview_fuzz.check.plain_spark import Question
from everview_fuzz.check.run import Outcome, judge, run
from everview_fuzz.check.ties import refined
from plain_spark import Digests, Recorded, digest, question_key

ANSWERS = Path(__file__).with_name("answers.json")
VIEWS = {
    "denied": "SELECT a FROM s1 WHERE NOT (a IN (SELECT c FROM s2))",
    "member": "SELECT a, a IN (SELECT c FROM s2) AS i FROM s1 WHERE a IS NOT NULL",
    "either": "SELECT a FROM s1 WHERE a > 9 OR a IN (SELECT c FROM s2)",
    "first": "SELECT o, FIRST_VALUE(v) OVER (ORDER BY o) AS f FROM e",
    "total": "SELECT o, SUM(v) FILTER (WHERE c = 'a') OVER (ORDER BY o) AS f FROM e",
    "nulls": "SELECT c, COUNT(v) AS n, COUNT(*) AS m FROM e GROUP BY c",
}
CASE = Case(
    0,
    0,
    (
        Table("s1", (Column("a", "int"),)),
        Table("s2", (Column("c", "int"),)),
        Table("e", (Column("o", "int"), Column("c", "string"), Column("v", "int"))),
        *(View(name, query) for name, query in VIEWS.items()),
        Transaction((Change("insert", "s1", ((None,), (5,), (8,), (11,))),)),
        Transaction(
            (
                Change("insert", "s2", ((7,), (8,))),
                Change("insert", "e", ((1, "a", 10), (2, "b", 20), (3, "a", None), (4, "b", 40))),
            )
        ),
        Transaction((Change("insert", "s2", ((None,),)), Change("delete", "e", ((1, "a", 10),)))),
    ),
)


def outcome(folder: Path) -> Outcome:
    """The case, run on the embedded engine."""
    found = run(CASE, ("duckdb",), folder)
    assert (found.failure, found.refused) == (None, {})
    return found


def test_the_answers_recorded_are_those_of_the_views(tmp_path):
    found = outcome(tmp_path)
    made = len(found.claims)
    judge(found, Oracle(Recorded(ANSWERS)))
    assert found.failure is None
    assert (found.tally.right, found.tally.claims) == (made, made)


@pytest.mark.spark
def test_the_answers_recorded_are_those_of_spark(plain_spark, tmp_path):
    recorded = Recorded(ANSWERS, plain_spark)
    found = outcome(tmp_path)
    judge(found, Oracle(recorded))
    assert found.failure is None
    assert recorded.outdated == []


def negated_false(node: exp.Expr) -> exp.Expr:
    """NOT of an IN that is not known, taken for NOT of a false one."""
    if isinstance(node, exp.Not) and node.find(exp.In):
        known = exp.Coalesce(this=node.this.copy(), expressions=[exp.false()])
        return exp.Not(this=known)
    return node


def forgotten_filter(node: exp.Expr) -> exp.Expr:
    """FILTER over a window, left out."""
    return node.this if isinstance(node, exp.Filter) else node


def counted_nulls(node: exp.Expr) -> exp.Expr:
    """COUNT of a column, taken for COUNT of rows."""
    return exp.Count(this=exp.Star()) if isinstance(node, exp.Count) else node


FAULTS = {
    "denied": negated_false,
    "total": forgotten_filter,
    "nulls": counted_nulls,
}


@pytest.fixture
def planted(request, monkeypatch):
    """A front end that misreads, whose plans are kept apart from those of the right one."""
    desugared = query.desugared
    monkeypatch.setattr(query, "desugared", lambda tree: desugared(tree.transform(request.param)))
    audit_query._lowered.cache_clear()
    yield
    audit_query._lowered.cache_clear()


@pytest.mark.parametrize(
    ("planted", "view"), [(fault, view) for view, fault in FAULTS.items()], indirect=["planted"]
)
def test_a_misread_text_is_found_though_the_audit_reads_it_in_the_same_way(planted, view, tmp_path):
    found = outcome(tmp_path)
    verdicts = Oracle(Recorded(ANSWERS)).judge(found.claims)
    assert view in {each.claim.view for each in verdicts if each.word == "wrong"}


NUMBERS = pa.table({"k": pa.array([1, 1], pa.int32()), "v": pa.array([5, 6], pa.int32())})


def claim(query: str, rows: list[int], type_: str = "int") -> Claim:
    held = pa.table({"x": pa.array(rows, pa.int32())})
    return Claim(0, "duckdb", "w", query, (Column("x", type_),), held, {"t": NUMBERS})


FIRST = "SELECT FIRST_VALUE(v) OVER (ORDER BY k) AS x FROM t"
VERDICTS = {
    "right": claim("SELECT v AS x FROM t", [6, 5]),
    "wrong": claim("SELECT v AS x FROM t", [6, 6]),
    "types": claim("SELECT CAST(v AS BIGINT) AS x FROM t", [5, 6]),
    "open": claim(FIRST, [6, 6]),
    "unread": claim("SELECT v AS x FROM nowhere", [5]),
}


@pytest.mark.spark
def test_what_depends_on_the_order_of_rows_is_open_and_all_else_is_judged(plain_spark):
    verdicts = Oracle(plain_spark).judge(list(VERDICTS.values()))
    assert [verdict.word for verdict in verdicts] == list(VERDICTS)


SAME = pa.table({"k": pa.array([1, 1, 1], pa.int32()), "v": pa.array([7, 5, 6], pa.int32())})
FOLLOWING = "ORDER BY k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
TIED = (
    f"SELECT SUM(v) OVER ({FOLLOWING}) + 0 * ROW_NUMBER() OVER (ORDER BY k, v) AS x FROM t",
    "SELECT v - LEAD(v) OVER (ORDER BY k) + 0 * COUNT(v) OVER (ORDER BY k, v) AS x FROM t",
)
FIRST_OF_PEERS = (
    "SELECT FIRST_VALUE(v) OVER (ORDER BY k) AS x, RANK() OVER (ORDER BY v) AS r FROM t"
)
UNTIED = (
    "SELECT SUM(v) OVER (ORDER BY v ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS x FROM t",
    "SELECT CAST(RANK() OVER (ORDER BY k) AS BIGINT) AS x FROM t",
)


@pytest.mark.spark
def test_an_answer_among_rows_that_tie_is_open_and_no_other_is(plain_spark):
    """The first window sorts the rows, so the order in which they arrive changes nothing."""
    claims = [
        Claim(0, "duckdb", "w", text, (Column("x", "bigint"),), held, {"t": SAME})
        for text in (*TIED, *UNTIED)
        for held in [pa.table({"x": pa.array([99, 98, 97], pa.int64())})]
    ]
    words = [verdict.word for verdict in Oracle(plain_spark).judge(claims)]
    assert words[: len(TIED)] == ["open"] * len(TIED)
    assert words[len(TIED) :] == ["wrong"] * len(UNTIED)


@pytest.mark.spark
def test_the_first_of_rows_that_tie_is_open_whichever_window_is_computed_before(plain_spark):
    held = pa.table({"x": pa.array([6, 6, 6], pa.int32()), "r": pa.array([1, 2, 3], pa.int32())})
    schema = (Column("x", "int"), Column("r", "int"))
    wrong = held.set_column(1, "r", pa.array([1, 2, 4], pa.int32()))
    text = FIRST_OF_PEERS.replace("(ORDER BY k)", "(ORDER BY v)")
    claims = [
        Claim(0, "duckdb", "w", FIRST_OF_PEERS, schema, held, {"t": SAME}),
        Claim(0, "duckdb", "w", text, schema, wrong, {"t": SAME}),
    ]
    assert [verdict.word for verdict in Oracle(plain_spark).judge(claims)] == ["open", "wrong"]


@pytest.mark.spark
def test_windows_may_put_equal_rows_in_different_orders(plain_spark):
    """Spark keeps the order of the window before, so the second of two equal rows is one row."""
    text = (
        "SELECT LAG(v) OVER (ORDER BY k, v) AS x, NTH_VALUE(k, 2) OVER (PARTITION BY k, v ORDER BY "
        "k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS r FROM t"
    )
    twice = pa.table({"k": pa.array([1, 1, 1], pa.int32()), "v": pa.array([5, 6, 6], pa.int32())})
    schema = (Column("x", "int"), Column("r", "int"))
    held = [
        pa.table({"x": pa.array(x, pa.int32()), "r": pa.array(r, pa.int32())})
        for x, r in (([None, 5, 6], [None, 1, None]), ([None, 5, 6], [None, None, 1]))
    ]
    claims = [Claim(0, "duckdb", "w", text, schema, rows, {"t": twice}) for rows in held]
    assert {verdict.word for verdict in Oracle(plain_spark).judge(claims)} == {"right", "open"}


@pytest.mark.parametrize(
    ("text", "finer"),
    [
        (UNTIED[0], True),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS x FROM t", True),
        ("SELECT v AS x FROM t ORDER BY v LIMIT 1", True),
        (UNTIED[1], False),
        ("SELECT SUM(v) OVER (ORDER BY k) AS x FROM t", False),
        ("SELECT SUM(v) OVER (ORDER BY k RANGE 1 PRECEDING) AS x FROM t", False),
        ("SELECT v AS x FROM t", False),
    ],
)
def test_only_orders_that_decide_between_rows_are_made_finer(text, finer):
    assert (refined(text, 1) is not None) == finer


def test_a_view_that_holds_other_rows_than_spark_answered_is_denied(tmp_path):
    path, held = tmp_path / "answers.json", VERDICTS["right"]
    key = question_key(Question(held.query, held.relations))
    path.write_text(json.dumps({key: digest(held.rows)}), encoding="utf-8")
    assert Digests(path).denied([held, VERDICTS["types"]]) == []
    assert Digests(path).denied([VERDICTS["wrong"]]) == ["w"]
