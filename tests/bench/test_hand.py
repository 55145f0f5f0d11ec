"""The scripts written by hand, small: they agree with us, and each side's faults are told."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from bench.delta_duckdb import DeltaDuckDB
from bench.tpch import Change

from bench import hand, three_views


def test_both_sides_agree_with_a_recomputation(tmp_path, capsys):
    assert hand.main(["--quick", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "hand-duckdb.json").read_text())
    assert [(r["side"], r["rows"]) for r in rows] == [
        ("everview", 1),
        ("by hand", 1),
        ("everview", 1000),
        ("by hand", 1000),
    ]
    assert all(r["ms"] > 0 for r in rows)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.spark
def test_all_sides_agree_on_spark(tmp_path):
    assert hand.main(["--quick", "--engine", "spark", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "hand-spark.json").read_text())
    assert {r["side"] for r in rows} == {"everview", "by hand, spark", "by hand, driver"}


@pytest.mark.parametrize(("side", "told"), [(hand.Everview, "everview"), (DeltaDuckDB, "by hand")])
def test_a_lost_change_is_told(tmp_path, capsys, monkeypatch, side, told):
    sound = side.apply

    def faulty(self, change: Change) -> None:
        sound(self, Change(change.deleted, change.inserted.slice(0, 0)))

    monkeypatch.setattr(side, "apply", faulty)
    assert hand.main(["--quick", "--results", str(tmp_path)]) == 1
    errors = capsys.readouterr().err
    assert f"{told}, by_customer: not what a recomputation answers" in errors


def test_the_ratio_is_to_the_better_one_by_hand():
    figures = [
        hand.Figure("spark", 1, side, 10, ms)
        for side, ms in ((hand.OURS, 6.0), ("by hand, spark", 8.0), ("by hand, driver", 4.0))
    ]
    assert hand.ratios(figures) == {10: 1.5}


def test_no_more_lines_are_changed_than_there_are():
    lines = pa.table({"l_orderkey": [1, 2]})
    with pytest.raises(AssertionError, match="no 3 lines"):
        next(three_views.changes(lines, {3: 1}, seed=1))
