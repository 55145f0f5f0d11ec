"""What is held takes the part of the memory that it may have, and no more."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import everview as ev
from everview.errors import UserError
from everview.runtime import memory_budget
from everview.runtime.cache import relation_cache, sorted_run


def test_a_container_has_what_it_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory_budget, "_LIMIT", limit)
    whole = memory_budget.machine_bytes.__wrapped__()
    assert whole > 0
    limit.write_text("max\n")
    assert memory_budget.machine_bytes.__wrapped__() == whole
    limit.write_text("1000000\n")
    assert memory_budget.machine_bytes.__wrapped__() == 1_000_000


def test_relations_beyond_the_part_are_mapped_and_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_run, "PARALLEL_ROWS", 100)
    monkeypatch.setattr(relation_cache, "PARALLEL_ROWS", 100)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        held: relation_cache.Hot = db.engine.local.cache  # type: ignore[attr-defined]
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


def test_large_relations_are_packed_and_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relation_cache, "LARGE", 1 << 40)
    texts = ["red", "green", "blue", ""]
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE a (k BIGINT PRIMARY KEY, d DECIMAL(15,2), t STRING, n INT, o DATE);"
            "CREATE TABLE b (k BIGINT, g INT, m STRING)"
        )
        days = [date(2026, 1, 1 + k % 28) for k in range(500)]
        rows = [
            (k, Decimal(k * 7 - 900) / 100, texts[k % 4], None if k % 5 else k, days[k])
            for k in range(500)
        ]
        db.insert("a", rows)
        db.insert("b", [(k % 450, k % 3, f"note {k}") for k in range(900)])
        view = "SELECT a.t, b.g, SUM(a.d) AS s, COUNT(a.n) AS n, MAX(a.o) AS o, MIN(b.m) AS m"
        db.sql(f"CREATE VIEW v AS {view} FROM a JOIN b ON a.k = b.k GROUP BY a.t, b.g")
        for number in range(6):
            db.upsert(
                "a", [(number, "-0.01", "blue", 1, "2026-02-01"), (600 + number, 1, "", 2, None)]
            )
            with db.transaction() as tx:
                tx.delete("b", [(number, number % 3, f"note {number}")])
                tx.delete("a", [rows[100 + number]])
                tx.insert("b", [(number, 1, "fresh"), (600 + number, 2, None)])
            assert db.audit().ok
        with pytest.raises(UserError, match="T010"):
            db.insert("a", [(7, 1, "red", 1, None)])
        db.sql("CREATE VIEW w AS SELECT t, COUNT(*) AS c FROM a GROUP BY t")
        db.delete("a", [rows[200]])
        assert db.audit().ok
        held: relation_cache.Hot = db.engine.local.cache  # type: ignore[attr-defined]
        assert any(isinstance(run, sorted_run.Tight) for run in held._held["a"].loaded)
        assert dict(db.sql("SELECT t, COUNT(*) FROM a GROUP BY t").rows()) == dict(
            db.read("w").rows()
        )
