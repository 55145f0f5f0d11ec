"""The benchmark of choosing: either way is taken when it is asked for, and all of it is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from bench.choosing import Figure, markdown

from bench import choosing


def test_a_view_is_measured_as_chosen_and_in_either_way(tmp_path, capsys):
    asked = ["--scale", "0.01", "--changes", "10%", "--views", "q12", "--rounds", "1"]
    code = choosing.main([*asked, "--out", str(tmp_path / "out"), "--data", str(tmp_path / "data")])
    (row,) = json.loads((tmp_path / "out" / "choosing-duckdb.json").read_text())
    assert (row["view"], row["change"], row["engine"]) == ("q12", "10%", "duckdb")
    assert row["way"] in ("incremental", "recompute")
    assert min(row["chosen_ms"], row["incremental_ms"], row["recompute_ms"]) > 0
    figure = Figure(**row)
    assert code == (1 if figure.over > choosing.LIMIT else 0)
    assert (tmp_path / "out" / "choosing-duckdb.md").read_text().startswith("| engine |")
    assert "q12" in capsys.readouterr().out


def test_a_choice_is_held_against_the_better_way():
    figure = Figure("duckdb", 1.0, "10%", "q01", "incremental", 70.0, 60.0, 40.0)
    assert figure.over == pytest.approx(1.5)
    assert "| 1.50 |" in markdown([figure])
    assert replace(figure, way="recompute").over == 1
    assert replace(figure, incremental_ms=20.0).over == 1


def test_what_is_always_maintained_is_held_against_that():
    figure = Figure("duckdb", 1.0, "10%", "q01", "incremental", 30.0, 20.0, None)
    assert figure.over == 1
    assert "| – | 1.00 |" in markdown([figure])


def test_an_unknown_view_is_refused(capsys):
    with pytest.raises(SystemExit):
        choosing.main(["--views", "q99"])
    assert "there is no view q99" in capsys.readouterr().err
