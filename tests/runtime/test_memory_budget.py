"""What is held takes the part of the memory that it may have, and no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import everview as ev
from everview.errors import UserError
from everview.plan.nodes import Source
from everview.runtime import memory_budget
from everview.runtime.cache import relation_cache, sorted_run
from everview.runtime.cache.footprint import footprint


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
    monkeypatch.setattr(sorted_run, "BUDGET_MIN_ROWS", 100)
    monkeypatch.setattr(relation_cache, "BUDGET_MIN_ROWS", 100)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        held: relation_cache.RelationCache = db.engine.local.cache  # type: ignore[attr-defined]
        held.budget = replace(held.budget, resident=40_000)
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
        assert 0 < sum(run.resident for run in every) <= held.budget.resident
        assert any(len(run) > 100 and not run.resident for run in every)
        assert db.audit().ok


def test_large_relations_are_packed_and_answer_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relation_cache, "PACK_MIN_SHARE", 2**-40)
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
        held: relation_cache.RelationCache = db.engine.local.cache  # type: ignore[attr-defined]
        assert any(isinstance(run, sorted_run.PackedRun) for run in held._held["a"].loaded)
        assert dict(db.sql("SELECT t, COUNT(*) FROM a GROUP BY t").rows()) == dict(
            db.read("w").rows()
        )


@pytest.mark.parametrize("memory", [0, 1, 1_000, 1 << 20, 1 << 30, 1 << 50, None])
def test_the_parts_of_a_budget_add_up(memory: int | None) -> None:
    budget = memory_budget.memory_budget(memory)
    assert budget.cached + budget.recent == budget.held
    assert 0 <= budget.recent <= budget.held
    assert budget.resident <= budget.held
    if memory is None:
        assert (budget.calculating, budget.readable) == (None, float("inf"))
    else:
        assert (budget.held, budget.resident) == (memory, memory), "no file is mapped"
        assert budget.calculating is not None
        least = memory_budget.CALCULATING_MIN_BYTES
        assert min(least, memory_budget.part(memory_budget.CALCULATING)) <= budget.calculating
        assert budget.calculating <= memory_budget.part(memory_budget.CALCULATING)


def test_duckdb_can_compute_however_small_the_budget_is(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb", memory=0) as db:
        db.sql("CREATE TABLE a (k BIGINT, v STRING)")
        rows = pa.table({"k": range(300_000), "v": [f"text {k}" for k in range(300_000)]})
        db.insert("a", rows)
        db.sql("CREATE VIEW v AS SELECT v, COUNT(*) AS n, MAX(k) AS m FROM a GROUP BY v")
        db.delete("a", rows.slice(0, 1_000))
        assert db.sql("SELECT COUNT(*) AS n, SUM(m) AS m FROM v").rows() == [
            (299_000, sum(range(1_000, 300_000)))
        ]
        assert db.memory.held == 0


def test_rows_of_fixed_width_take_what_is_estimated(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE a (k BIGINT PRIMARY KEY, d DATE, x DECIMAL(12,2), s STRING)")
        texts = [f"text number {k}" for k in range(50_000)]
        day, amount = [date(2024, 1, 1)] * 50_000, [Decimal("1.50")] * 50_000
        db.insert("a", pa.table({"k": range(50_000), "d": day, "x": amount, "s": texts}))
        db.sql("CREATE VIEW f AS SELECT k, d, x FROM a; CREATE VIEW t AS SELECT k, s FROM a")
        found = db.handle.snapshot()
        for name, close in (("f", 1.05), ("a", 3)):
            stored = found.stored[name].schema
            size = db.engine.evaluate(Source(name, stored), found, {}).nbytes
            estimate = footprint(found.relation(name).segments, stored)
            assert size / close <= estimate <= size * close
        packed = footprint(found.relation("f").segments, found.stored["f"].schema, packed=True)
        assert packed < footprint(found.relation("f").segments, found.stored["f"].schema)
