"""The bench of nested views, small: it measures both views, and tells when one is wrong."""

from __future__ import annotations

import json

import pytest

from bench import nested


def test_movies_and_elements_are_measured(tmp_path):
    assert nested.main(["--quick", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "nested-duckdb.json").read_text())
    bags, movies = rows[:4], rows[4:]
    assert [each["elements"] for each in bags] == [1] * 4
    assert [each["flat"] for each in bags] == [0] * 4
    assert [each["flat"] for each in movies] == [1, 1]
    assert all(each["elements"] == 2 * each["rows_read"] for each in movies[:1])
    assert all(each["recomputed_ms"] > 0 and each["speedup"] > 0 for each in movies)
    assert "| a movie comes |" in (tmp_path / "nested-duckdb.md").read_text()


def test_a_view_that_differs_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(nested, "_recomputed", lambda *_: (1.0, 0))
    with pytest.raises(SystemExit, match="elements, and its query 0"):
        nested.main(["--quick", "--results", str(tmp_path)])
