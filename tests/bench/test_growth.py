"""The bench of growth, small: it measures every cell, and tells when a view is wrong."""

from __future__ import annotations

import json

import pytest

from bench import growth
from everview.database.audit_report import Audit


def small(folder, *more: str) -> list[str]:
    return ["--quick", "--results", str(folder), "--classes", "no view,group", *more]


def test_each_class_is_measured_at_each_size(tmp_path, capsys):
    assert growth.main(small(tmp_path)) == 0
    rows = json.loads((tmp_path / "growth-duckdb.json").read_text())
    assert {(r["class"], r["keys"], r["factor"]) for r in rows} == {
        (view, keys, factor)
        for view in ("no view", "group")
        for keys in ("recent", "random")
        for factor in (1, 2)
    }
    fetched = {(r["class"], r["keys"], r["factor"]): r["rows_fetched"] for r in rows}
    assert all(r["ms"] >= r["best_ms"] > 0 for r in rows)
    for keys in ("recent", "random"):
        assert fetched["group", keys, 2] > fetched["no view", keys, 2]
        assert fetched["group", keys, 2] < 1.5 * fetched["group", keys, 1]
    assert "| group | recent |" in capsys.readouterr().out


def test_a_view_that_differs_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Audit, "ok", property(lambda audit: False))
    assert growth.main(small(tmp_path)) == 1
    assert "group, 2×: the view differs from its query" in capsys.readouterr().err


def test_recent_and_random_changes_share_no_line():
    options = growth._options(["--quick"])
    lines = growth.tables(0.01)["lineitem"]
    recent, random = growth._trades(lines, options).values()
    newest = min(recent.change(100).deleted.column("l_orderkey").to_pylist())
    oldest = max(random.change(100).deleted.column("l_orderkey").to_pylist())
    assert oldest <= newest


def test_a_class_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit):
        growth.main(["--classes", "filter,sort"])
    assert "sort is none of no view, filter" in capsys.readouterr().err


def test_what_was_not_counted_is_not_told_as_a_number():
    assert (growth._middle([3, 1, 2]), growth._middle([3, None, 2])) == (2, None)
    assert (growth._told(1200), growth._told(None)) == ("1,200", "not counted")
