"""The run of Datalog cases, on programs made up for it; and the real ones."""

from __future__ import annotations

import pytest
from conformance.maintained import REFUSED, RIGHT, WRONG

from conformance import __main__ as program
from conformance import datalog

TEXT = """
.decl e(x: number, y: number) .input e
.decl f(x: number) f(3). f(4).
.decl r(x: number, y: number) .output r
r(x, y) :- e(x, y), !f(x). r(x, z) :- r(x, y), e(y, z).
"""
FACTS = {"e": [["1", "2"], ["2", "1"], ["3", "1"]]}
ANSWER = [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
HEAVY = "independent_body3"
"""It counts to a million, one iteration each."""


def test_a_program_that_comes_to_what_is_recorded_is_right() -> None:
    case = datalog.Program("made/up", TEXT, FACTS, {"r": ANSWER})
    assert datalog.run(case, "duckdb").kind == RIGHT


@pytest.mark.parametrize("recorded", [ANSWER[1:], [*ANSWER, ["3", "1"]]])
def test_a_program_that_comes_to_something_else_is_wrong(recorded: list[list[str]]) -> None:
    case = datalog.Program("made/up", TEXT, FACTS, {"r": recorded})
    outcome = datalog.run(case, "duckdb")
    assert outcome.kind == WRONG
    assert "r after all facts at once" in outcome.reason


def test_a_program_that_is_refused_is_named() -> None:
    case = datalog.Program("made/up", f"{TEXT} .comp C {{ }}", FACTS, {"r": ANSWER})
    outcome = datalog.run(case, "duckdb")
    assert (outcome.kind, outcome.reason) == (REFUSED, "a component")


def _cases() -> list[datalog.Program]:
    folder = program.SUITES / "souffle"
    if not (folder / "cases.jsonl").exists():
        pytest.skip("the suite souffle is not beside the project")
    return datalog.load(folder)


def _small(case: datalog.Program) -> bool:
    return len(case.text) < 900 and not case.id.startswith("souffle/evaluation/cprog")


def test_the_real_cases_are_all_read() -> None:
    cases = _cases()
    assert len(cases) == 54
    for case in cases:
        assert datalog.declarations(case.text).outputs


def test_small_real_cases_are_right() -> None:
    chosen = [case for case in _cases() if _small(case)][::6]
    assert chosen
    for case in chosen:
        outcome = datalog.run(case, "duckdb")
        assert outcome.kind == RIGHT, outcome


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_real_cases_are_right_or_refused_by_name() -> None:
    cases = [case for case in _cases() if HEAVY not in case.id]
    outcomes = [datalog.run(case, "duckdb") for case in cases]
    assert [outcome for outcome in outcomes if outcome.kind == WRONG] == []
    right = [outcome for outcome in outcomes if outcome.kind == RIGHT]
    assert len(right) >= 0.85 * (len(cases) + 1)
