"""The bench of trigger programs, small: it runs, and a program by hand agrees."""

from __future__ import annotations

import json

from bench import triggers


def test_the_bench_of_triggers_measures_batches_rows_and_growth(tmp_path, capsys):
    options = ["--quick", "--views", "03,06", "--results", str(tmp_path)]
    assert triggers.main(options) == 0
    found = {
        part: json.loads((tmp_path / f"triggers-{part}.json").read_text())
        for part in ("batches", "rows", "growth")
    }
    assert [row["view"] for row in found["batches"]] == ["q03", "q06"]
    assert all(row["tuples a second"] > 0 for row in found["batches"])
    assert all(row["ratio"] > 0 for row in found["rows"])
    entries = [row["entries per event"] for row in found["growth"] if row["view"] == "q03"]
    assert entries[-1] < 2 * entries[0]
