"""The bench of policies, small: rows read are flat under one policy and grow under another."""

from __future__ import annotations

import json

from bench import policies


def test_rows_read_are_flat_under_higher_order_and_grow_under_circuit(tmp_path, capsys):
    assert policies.main(["--quick", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "policies.json").read_text())
    read = {(row["policy"], row["group"]): row["rows_read"] for row in rows}
    assert read["higher-order", 4] == read["higher-order", 16] < read["circuit", 4]
    assert read["circuit", 16] >= 2 * read["circuit", 4]
    assert all(row["ms"] > 0 for row in rows)
