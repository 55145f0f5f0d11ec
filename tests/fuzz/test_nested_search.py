"""The search with nested views: it finds nothing, and finds a fault that is planted."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from everview.cli.main import main
from everview.database.collections.changes import DeepChanges
from everview.lang.nested import dictionaries
from everview_fuzz.nested.search import Settings, search


def test_nested_views_are_searched_and_counted() -> None:
    shown = []
    report = search(Settings("duckdb", seed=5, seconds=600, cases=1), shown.append)
    assert (report.cases, report.findings, len(shown)) == (1, [], 1)
    assert report.views >= 1
    assert report.transactions == 4
    assert "1 cases" in report.text


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_tables_with_collections_are_searched_and_counted(number: int) -> None:
    report = search(Settings("duckdb", seed=5, seconds=600, cases=1, first=number))
    assert (report.cases, report.findings) == (1, [])
    assert report.views >= 4
    assert report.transactions == 4


def test_a_fault_in_deep_updates_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is inside an element that goes stays behind."""
    monkeypatch.setattr(DeepChanges, "_emptied_inside", lambda *_: [])
    report = search(Settings("duckdb", seed=5, seconds=600, cases=20))
    (found,) = report.findings
    assert "differs from its query" in found.reason
    assert "tx." in found.text
    assert "CREATE TABLE" in found.text


def test_a_planted_fault_is_found_and_can_be_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that is counted as often as it is used gives its collection too many elements."""
    monkeypatch.setattr(dictionaries, "distinct", lambda plan: plan)
    report = search(Settings("duckdb", seed=6, seconds=600, cases=10))
    (found,) = report.findings
    assert "CPython makes" in found.reason
    number = ["--seed", "6", "--case", str(found.number)]
    result = CliRunner().invoke(main, ["fuzz", "--nested", "--engine", "duckdb", *number])
    assert result.exit_code == 3
    assert found.reason in result.output.replace("\n# ", "\n")
    assert "def query(" in result.output
    assert f"--seed 6 --case {found.number}" in result.output
