"""A row that is changed again and again costs the same every time."""

from __future__ import annotations

import pytest

import everview as ev


@pytest.mark.parametrize("key", ["id BIGINT PRIMARY KEY", "id STRING PRIMARY KEY"])
def test_what_is_fetched_of_a_row_does_not_grow_with_its_changes(tmp_path, key):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(f"CREATE TABLE t ({key}, v INT)")
        db.sql(
            "CREATE MATERIALIZED VIEW pairs AS"
            " SELECT a.id, b.v, COUNT(*) AS n FROM t a JOIN t b ON a.id = b.id GROUP BY a.id, b.v"
        )
        of = int if "BIGINT" in key else str
        db.insert("t", [(of(each), each) for each in range(50)])
        for number in range(120):
            db.upsert("t", [(of(7), number)])
        assert db.read("pairs").to_arrow().num_rows == 50
        assert db.audit().ok
        read = [each.rows_read for each in db.history(100) if each.view == "pairs"]
        assert max(read[-20:]) <= 2 * max(read[10:30])
        assert max(read) < 200
