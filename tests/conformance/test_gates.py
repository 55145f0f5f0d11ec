"""The two gates, on a suite made up for it; and the real one, a case in fifty."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conformance.cases import Case, Change, Check, Table, View, change, parse_table
from conformance.maintained import LEFT_OUT, REFUSED, RIGHT, WRONG, Outcome, maintain
from conformance.plain import Plain, judge
from conformance.values import encode_row

from conformance import __main__ as program
from conformance import fixtures, openivm, report
from everview.database.database import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = parse_table("CREATE TABLE t (k INT, v INT)")
TOTALS = View("totals", "SELECT k, SUM(v) AS total FROM t GROUP BY k")


def simple(check: tuple[tuple[str, ...], ...], *views: View) -> Case:
    steps = (
        TABLE,
        *(views or (TOTALS,)),
        change("t", [], [(1, 10), (1, 5), (2, None)]),
        change("t", [(1, 10)], [(2, 7)]),
        Check("SELECT * FROM totals ORDER BY k", check, "NULL"),
    )
    return Case("made/up", "openivm", steps)


def answered(case: Case, **answers: list[tuple[Any, ...]]) -> Plain:
    """The verdict plain Spark would give, had it answered this after the last change."""
    last = max(i for i, step in enumerate(case.steps) if isinstance(step, Change))
    rows = {view: [encode_row(row) for row in found] for view, found in answers.items()}
    return Plain(case, None, {last: rows})


RIGHT_CASE = simple((("1", "5"), ("2", "7")))


# Gate 2


def test_a_view_that_agrees_after_every_batch_is_right() -> None:
    assert maintain(answered(RIGHT_CASE, totals=[(1, 5), (2, 7)]), "duckdb").kind == RIGHT


@pytest.mark.parametrize("rows", [[(1, 5)], [(1, 5), (2, 7), (2, 7)], [(1, 5), (2, 8)]])
def test_a_view_that_plain_spark_answers_otherwise_is_wrong(rows: list[Any]) -> None:
    outcome = maintain(answered(RIGHT_CASE, totals=rows), "duckdb")
    assert outcome.kind == WRONG
    assert "totals after step 3" in outcome.reason


def test_a_recorded_answer_that_is_not_given_is_wrong() -> None:
    outcome = maintain(answered(simple((("1", "5"), ("2", "8")))), "duckdb")
    assert outcome.kind == WRONG
    assert "('2', '8')" in outcome.reason


def test_a_crash_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Database, "read", crash)
    outcome = maintain(answered(RIGHT_CASE, totals=[]), "duckdb")
    assert outcome.kind == WRONG
    assert "ZeroDivisionError" in outcome.reason


def test_a_crash_is_wrong_even_where_plain_spark_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = replace(answered(RIGHT_CASE), left_out="plain Spark fails")
    assert maintain(left_out, "duckdb").kind == LEFT_OUT
    monkeypatch.setattr(Database, "transaction", lambda _: 1 // 0)
    assert maintain(left_out, "duckdb").kind == WRONG


def test_an_error_about_rows_is_ours_when_plain_spark_takes_them() -> None:
    steps = (TABLE, change("t", [(1, 1)], []))
    assert maintain(Plain(Case("made/up", "openivm", steps), None, {}), "duckdb").kind == WRONG


def test_a_refused_view_names_its_construct_and_does_not_hide_a_wrong_one() -> None:
    refused = View("noise", "SELECT k, random() AS r FROM t")
    case = simple((), refused, TOTALS)
    outcome = maintain(answered(case, totals=[(1, 5), (2, 7)]), "duckdb")
    assert outcome.kind == REFUSED
    assert "never the same twice" in outcome.reason
    assert maintain(answered(case, totals=[(1, 5)]), "duckdb").kind == WRONG


def test_a_refused_table_is_a_refusal_of_the_case() -> None:
    table = parse_table("CREATE TABLE n (parts INTERVAL DAY)")
    outcome = maintain(Plain(Case("made/up", "openivm", (table,)), None, {}), "duckdb")
    assert (outcome.kind, outcome.reason) == (REFUSED, "a column of type INTERVAL DAY")


# Gate 1


@pytest.mark.spark
def test_plain_spark_leaves_out_what_it_answers_otherwise(spark: SparkSession) -> None:
    session = spark.newSession()
    right = judge(RIGHT_CASE, session)
    assert right.left_out is None
    assert right.answers[2] == {"totals": [encode_row((1, 15)), encode_row((2, None))]}
    assert right.answers[3] == {"totals": [encode_row((1, 5)), encode_row((2, 7))]}
    wrong = judge(simple((("1", "5"), ("2", "8"))), session)
    assert wrong.left_out == "plain Spark answers otherwise than recorded"
    broken = judge(simple((), View("totals", "SELECT nothing FROM t")), session)
    assert broken.left_out == "plain Spark fails: UNRESOLVED_COLUMN.WITH_SUGGESTION"


@pytest.mark.spark
def test_the_batches_made_up_around_rows_end_where_the_rows_do(spark: SparkSession) -> None:
    record = {
        "id": "made/up",
        "tables": ["CREATE TABLE t (k INT, v STRING)"],
        "data": ["INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO t (v) VALUES ('c')"],
        "views": [{"name": "w", "query": "SELECT v, COUNT(*) AS n FROM t GROUP BY v"}],
        "output_view": "w",
        "expected": [["a", "1"], ["b", "1"], ["c", "1"]],
    }
    verdict = judge(fixtures._case(record), spark.newSession())
    assert verdict.left_out is None
    changes = [step for step in verdict.case.steps if isinstance(step, Change)]
    assert len(changes) == 4
    assert any(each.delete for each in changes)
    final = sorted(verdict.answers[verdict.case.steps.index(changes[-1])]["w"])
    assert final == [encode_row((v, 1)) for v in "abc"]
    assert maintain(verdict, "duckdb").kind == RIGHT


# The program


def made_up_suite(folder: Path) -> Path:
    """A suite of two cases in the format of openivm: one right, one with a wrong answer."""
    table = {"kind": "table", "name": "t", "spark": TABLE.sql}
    view = {"kind": "view", "name": "w", "spark": "SELECT v FROM t WHERE v > 1", "sql": ""}
    delta = {"table": "t", "delete": [], "insert": [[1, 1], [2, 2]]}
    dml = {"kind": "dml", "name": "t", "delta": delta, "spark": ""}
    lines = []
    for name, cell in (("right", "2"), ("wrong", "3")):
        query = "SELECT v FROM w"
        check = {"kind": "check", "sql": query, "spark": query, "expected": [[cell]]}
        lines.append({"id": f"made/{name}", "steps": [table, view, dml, check]})
    suite = folder / "suites" / "openivm"
    suite.mkdir(parents=True)
    text = "\n".join(json.dumps(line) for line in lines)
    (suite / "cases.jsonl").write_text(text, encoding="utf-8")
    return suite.parent


@pytest.mark.spark
def test_the_program_fails_on_a_wrong_answer_only(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(program, "start", lambda: spark)
    cache = tmp_path / "cache"
    asked = ["--suites", str(made_up_suite(tmp_path)), "--cache", str(cache), "--engine", "duckdb"]
    assert program.main(asked) == 0
    assert "| openivm | duckdb |     2 |        1 |       0 |     0 |     1 |" in (
        capsys.readouterr().out
    )
    (kept,) = cache.iterdir()
    text = kept.read_text(encoding="utf-8")
    kept.write_text(text.replace('[["i", "2"]]', '[["i", "9"]]'), encoding="utf-8")
    monkeypatch.setattr(program, "start", lambda: pytest.fail("answers were kept"))
    assert program.main(asked) == 1
    assert "WRONG made/right on duckdb: w after step 2" in capsys.readouterr().out


def test_no_suites_is_said_and_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["--suites", str(tmp_path)]) == 0
    assert "nothing was run" in capsys.readouterr().out


def test_the_page_counts_each_kind_and_groups_refusals() -> None:
    outcomes = (
        Outcome("a", RIGHT),
        Outcome("b", REFUSED, "EXISTS"),
        Outcome("c", REFUSED, "EXISTS"),
        Outcome("d", REFUSED, "a | b"),
        Outcome("e", LEFT_OUT, "plain Spark fails"),
    )
    text = report.page([report.Tally("openivm", "duckdb", 5, outcomes)])
    assert "| openivm | duckdb |     5 |        1 |       3 |     0 |     1 |" in text
    assert "| EXISTS | 2 | `b` |\n| a \\| b | 1 | `d` |" in text
    assert "| plain Spark fails | 1 | `e` |" in text


# The real suites


def _suite(name: str) -> Path:
    folder = program.SUITES / name
    if not (folder / "cases.jsonl").exists():
        pytest.skip(f"the suite {name} is not beside the project")
    return folder


def test_the_real_suites_are_read_whole() -> None:
    cases = [*openivm.load(_suite("openivm")), *fixtures.load(_suite("spark_fixtures"))]
    assert len(cases) == 289 + 265
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert any(isinstance(step, Table | View) for step in case.steps)


@pytest.mark.slow
@pytest.mark.spark
def test_a_sample_of_the_real_suites_is_never_wrong(spark: SparkSession) -> None:
    cases = [*openivm.load(_suite("openivm")), *fixtures.load(_suite("spark_fixtures"))][::50]
    session = spark.newSession()
    outcomes = [maintain(judge(case, session), "duckdb") for case in cases]
    assert [outcome for outcome in outcomes if outcome.kind == WRONG] == []
    assert [outcome for outcome in outcomes if outcome.kind == RIGHT] != []
