"""Cases that are folded into one test are all tried, and all that fail are named."""

from __future__ import annotations

import pytest

import cases
from cases import check_each, sampled


def test_every_case_is_tried_and_every_failure_named():
    tried = []

    def check(case: int) -> None:
        tried.append(case)
        if case == 1:
            with pytest.raises(KeyError):
                pass
        assert case != 2, "two is wrong"
        if case == 3:
            raise ValueError("three")

    with pytest.raises(pytest.fail.Exception) as failure:
        check_each(range(5), check)
    assert tried == [0, 1, 2, 3, 4]
    shown = str(failure.value)
    assert shown.startswith("3 of 5 cases")
    assert "two is wrong" in shown
    assert "ValueError: three" in shown
    assert "DID NOT RAISE" in shown


def test_no_cases_are_a_failure():
    with pytest.raises(AssertionError):
        check_each([], print)


def test_a_sample_has_some_of_all_cases_and_those_that_are_always_asked(monkeypatch):
    monkeypatch.setattr(cases, "THOROUGH", False)
    assert sampled(range(40), "duckdb") == list(range(40))
    assert sampled(range(40), "spark", always=lambda case: case < 2) == [0, 1, 10, 30]
    monkeypatch.setattr(cases, "THOROUGH", True)
    assert sampled(range(40), "spark") == list(range(40))
