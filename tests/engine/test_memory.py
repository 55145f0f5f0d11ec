"""What is held takes the part of the memory that it may have, and no more."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import everview as ev
from everview.engine import memory
from everview.engine.duckdb import hot, runs


def test_a_container_has_what_it_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_LIMIT", limit)
    whole = memory.machine_bytes.__wrapped__()
    assert whole > 0
    limit.write_text("max\n")
    assert memory.machine_bytes.__wrapped__() == whole
    limit.write_text("1000000\n")
    assert memory.machine_bytes.__wrapped__() == 1_000_000


def test_relations_beyond_the_part_are_mapped_and_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MANY", 100)
    monkeypatch.setattr(hot, "MANY", 100)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        held: hot.Hot = db.engine._hot  # type: ignore[attr-defined]
        held.most = 40_000
        db.sql("CREATE TABLE a (k BIGINT PRIMARY KEY, v INT); CREATE TABLE b (k BIGINT, v INT)")
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT a.v, COUNT(*) AS n, MAX(b.v) AS m"
            " FROM a JOIN b ON a.k = b.k GROUP BY a.v"
        )
        for table in ("a", "b"):
            db.insert(table, pa.table({"k": range(3000), "v": [each % 7 for each in range(3000)]}))
        for number in range(4):
            db.upsert("a", [(number, 3)])
            db.delete("b", [(number, number % 7)])
            db.insert("b", [(5000 + each, each) for each in range(200)])
        every = [run for each in held._held.values() for run in each.runs]
        assert 0 < sum(run.resident for run in every) <= held.most
        assert any(len(run) > 100 and not run.resident for run in every)
        assert db.audit().ok
