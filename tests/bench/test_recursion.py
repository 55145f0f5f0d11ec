"""The bench of recursion, small: it measures every graph, and tells when a view is wrong."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bench import recursion


def test_each_graph_is_measured_with_edges_that_come_and_go(tmp_path):
    assert recursion.main(["--quick", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "recursion-duckdb.json").read_text())
    graphs = [graph.told for graph in recursion.QUICK.values()]
    assert [(r["graph"], r["change"]) for r in rows] == [
        (graph, change) for graph in graphs for change in ("inserted", "deleted")
    ]
    assert all(r["ours_ms"] > 0 and r["state_bytes"] > 0 for r in rows)
    for row in rows:
        assert row["speedup"] == pytest.approx(row["evaluated_ms"] / row["ours_ms"], 0.05, 0.01)
        quotient = row["database_ms"] / row["ours_ms"]
        assert row["database_speedup"] == pytest.approx(quotient, 0.05, 0.01)
    told = (tmp_path / "recursion-duckdb.md").read_text()
    assert "| evaluated | against evaluated | DuckDB | against DuckDB |" in told
    assert any(r["iterations"] > 1 for r in rows)


def test_a_view_that_differs_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(recursion, "_copied", lambda db, plain: _without_edges(plain))
    with pytest.raises(SystemExit, match="differs from its query"):
        recursion.main(["--quick", "--graphs", "chains", "--results", str(tmp_path)])


def _without_edges(plain) -> None:
    plain.execute("CREATE OR REPLACE TABLE e (a INT, b INT)")
    plain.execute("CREATE OR REPLACE TABLE s (n INT)")


def test_edges_come_once_and_go_once():
    graph = dataclasses.replace(recursion.QUICK["closure"])
    dice = recursion.random.Random(3)
    edges = graph.made(dice)
    before = set(edges)
    coming = recursion._coming(graph, edges, 20, dice)
    assert len(set(coming)) == 20
    assert not set(coming) & before
    assert not set(recursion._going(edges, 50, dice)) & edges
