"""The golden files: how they are cut into worlds, judged by plain Spark, and maintained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conformance.cases import Change, Table
from conformance.golden import World, load
from conformance.golden_maintained import maintain_world
from conformance.golden_plain import Answered, Judged, decoded, encoded, judge
from conformance.maintained import LEFT_OUT, REFUSED, RIGHT, WRONG
from conformance.printed import is_printed
from conformance.values import encode_row

from conformance import __main__ as program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = Table("t", "CREATE TABLE t (`a` int, `b` string)", (("a", "int"), ("b", "string")))
SETTING = "spark.sql.legacy.followThreeValuedLogicInArrayExists"
CHANGES = (
    Change((), (("t", (1, "x")), ("t", (2, "y")))),
    Change((("t", (1, "x")),), (("t", (3, "y")),)),
)


def answered(name: str, sql: str, *batches: Any, **known: Any) -> Answered:
    encoded_rows = tuple(None if rows is None else list(map(encode_row, rows)) for rows in batches)
    return Answered(name, sql, ("int",), encoded_rows, **known)


def judged(*answers: Answered) -> Judged:
    return Judged("made/up#0", (TABLE,), CHANGES, answers)


def test_every_candidate_of_a_store_has_an_outcome_of_its_own() -> None:
    world = judged(
        answered("right", "SELECT SUM(a) FROM t", [(3,)], [(5,)]),
        answered("late", "SELECT a FROM t WHERE b = 'y'", [(2,)], [(2,), (3,)]),
        answered("wrong", "SELECT SUM(a) FROM t", [(3,)], [(6,)]),
        answered("refused", "SELECT rand() FROM t", [(0.5,)], [(0.5,)]),
        answered("order", "SELECT a FROM t ORDER BY a LIMIT 1", None, None),
        answered("apart", "SELECT a FROM t", left_out="a setting of the file changes the answer"),
    )
    kinds = [outcome.kind for outcome in maintain_world(world, "duckdb")]
    assert kinds == [RIGHT, RIGHT, WRONG, REFUSED, RIGHT, LEFT_OUT]


def test_a_view_that_stops_a_transaction_does_not_take_the_others_along() -> None:
    world = judged(
        answered("a", "SELECT COUNT(*) FROM t", [(2,)], [(2,)]),
        answered("b", "SELECT 1 / (a - 3) FROM t", [(-0.5,), (-1.0,)], None),
        answered("c", "SELECT MAX(a) FROM t", [(2,)], [(3,)]),
    )
    first, second, third = maintain_world(world, "duckdb")
    assert (first.kind, second.kind, third.kind) == (RIGHT, REFUSED, RIGHT)
    assert "cannot be computed" in second.reason


def test_a_verdict_is_kept_as_it_is() -> None:
    world = judged(answered("a", "SELECT a FROM t", [(1,)], None, printed=False))
    assert decoded(json.loads(json.dumps(encoded(world)))) == world


def made_up_file(folder: Path) -> Path:
    def query(sql: str, *rows: list[str], **more: Any) -> dict[str, Any]:
        known = {"schema": "struct<x:int>", "uses": ["t"], "view_candidate": True}
        return {"kind": "query", "sql": sql, "expected": list(rows), **known, **more}

    steps = [
        {"kind": "relation", "sql": "CREATE TEMP VIEW t AS VALUES (1, 'x'), (2, NULL) t(a, b)"},
        query("SELECT a, b FROM t", ["1", "x"], ["2", "NULL"]),
        query("SELECT nothing FROM t"),
        {"kind": "query", "sql": "SELECT 1 / 0", "expected_error": "x", "error_class": "y"},
        {"kind": "command", "sql": f"SET {SETTING} = false"},
        query("SELECT exists(array(a, NULL), x -> x > 5) FROM t", ["false"], ["false"]),
        {"kind": "command", "sql": f"RESET {SETTING}"},
        query("SELECT MAX(a) FROM t", ["3"]),
        query("SELECT SUM(a) OVER (ROWS 1 PRECEDING) FROM t", ["1"], ["3"]),
    ]
    record = {"id": "made/up", "conf": [], "imports": [], "steps": steps}
    suite = folder / "spark_golden"
    suite.mkdir()
    (suite / "cases.jsonl").write_text(json.dumps(record), encoding="utf-8")
    return suite


def test_candidates_that_find_the_same_tables_share_a_world(tmp_path: Path) -> None:
    first, second = load(made_up_file(tmp_path))
    assert [each.id for each in first.candidates] == [f"made/up#{n}" for n in (1, 2, 7, 8)]
    assert [each.id for each in second.candidates] == ["made/up#5"]
    assert first.setup == second.setup
    assert (first.settings, second.settings) == ((), ((SETTING, "false"),))
    assert first.reads() == ("t",)


@pytest.mark.spark
def test_plain_spark_judges_every_candidate(tmp_path: Path, spark: SparkSession) -> None:
    worlds = load(made_up_file(tmp_path))
    found = {
        each.id.removeprefix("made/up#"): each
        for number, world in enumerate(worlds)
        for each in judge(world, spark.newSession(), f"test_golden_{number}").answers
    }
    last = found["1"].batches[-1] or []
    assert sorted(last) == [encode_row((1, "x")), encode_row((2, None))]
    assert found["1"].printed
    assert found["2"].left_out == "plain Spark fails: UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert found["5"].left_out == "a setting of the file changes the answer"
    assert not found["7"].printed
    assert found["8"].batches[-1] is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NULL", None),
        ("1.50", 1.5),
        ('{"a":1,"b":[null,"x"]}', {"a": 1, "b": [None, "x"]}),
        ("{1:2}", {1: 2}),
        ("true", True),
    ],
)
def test_a_printed_cell_is_its_value(text: str, value: Any) -> None:
    assert is_printed(text, value)
    assert not is_printed(text, "something else")
    assert not is_printed("something else", value)


def suite() -> Path:
    folder = program.SUITES / "spark_golden"
    if not (folder / "cases.jsonl").exists():
        pytest.skip("the suite spark_golden is not beside the project")
    return folder


def test_the_real_files_have_every_candidate_once() -> None:
    worlds: list[World] = load(suite())
    names = [each.id for world in worlds for each in world.candidates]
    assert len(names) == len(set(names)) == 1353


@pytest.mark.slow
@pytest.mark.spark
def test_a_sample_of_the_real_files_is_never_wrong(spark: SparkSession) -> None:
    for number, world in enumerate(load(suite())[::12]):
        verdict = judge(world, spark.newSession(), f"test_golden_{number}")
        outcomes = maintain_world(verdict, "duckdb")
        assert [outcome for outcome in outcomes if outcome.kind == WRONG] == []
