"""The bench of assertions, small: a check reads rows by the change, not by the tables."""

from __future__ import annotations

import json

from bench import assertions


def test_a_check_reads_what_the_change_meets(tmp_path, capsys):
    assert assertions.main(["--quick", "--results", str(tmp_path)]) == 0
    (row,) = json.loads((tmp_path / "assertions-duckdb.json").read_text())
    assert 0 < row["rows_read"] <= 2 * row["changed"]
    assert row["whole_ms"] > 0
