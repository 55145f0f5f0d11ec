"""The embedded benchmark, small: it measures every case, and tells when answers differ."""

from __future__ import annotations

import json

import pytest
from bench.tpch import Change, Trade, tables

from bench import embedded


def test_both_sides_and_a_recomputation_agree(capsys):
    assert embedded.main(["--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(c["views"], c["rows"]) for c in found["comparisons"]] == [
        (1, 1),
        (1, 1000),
        (3, 1),
        (3, 1000),
    ]
    assert all(c["ratio"] > 0 for c in found["comparisons"])
    assert [u["further"] for u in found["untouched"]] == [0, 2]
    assert found["different"] == []


def test_a_lost_change_is_told(capsys, monkeypatch):
    sound = embedded._apply

    def faulty(db, change: Change) -> None:
        sound(db, Change(change.deleted, change.inserted.slice(0, 0)))

    monkeypatch.setattr(embedded, "_apply", faulty)
    assert embedded.main(["--quick"]) == 1
    assert "revenue_by_customer: the two sides or a recomputation differ" in capsys.readouterr().err


def test_the_same_seed_changes_the_same():
    lines = tables(0.01)["lineitem"]
    one, other, third = (Trade(lines, seed).change(10) for seed in (1, 1, 2))
    assert (one.deleted, one.inserted) == (other.deleted, other.inserted)
    assert one.deleted != third.deleted
    assert (one.deleted.num_rows, one.inserted.num_rows) == (6, 7)


@pytest.mark.parametrize(("ours", "slow"), [(2.0, False), (2.1, True)])
def test_twice_as_long_is_the_limit(ours, slow):
    by_hand, took = embedded.Times.of([1.0, 1.0]), embedded.Times.of([ours, ours])
    comparisons = tuple(embedded.Comparison(1, rows, 2, by_hand, took) for rows in (1, 1000))
    report = embedded.Report(1.0, comparisons, (), ())
    assert [c.rows for c in report.slow] == ([1000] if slow else [])
