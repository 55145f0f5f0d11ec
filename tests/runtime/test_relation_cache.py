"""Relations in memory: what transactions make of them, and what is let go."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

import everview as ev
from everview.database import upkeep
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.cache import relation_cache
from everview.runtime.cache.sorted_run import PackedRun, SortedRun, concatenate_adjacent


@pytest.fixture
def db(tmp_path):
    db = ev.open(str(tmp_path), engine="duckdb")
    db.sql(
        "CREATE TABLE t (k INT, x INT); CREATE VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k"
    )
    yield db
    db.close()


def held(db) -> dict[str, Counter]:
    """The sum of what is in memory of each relation."""
    found = {}
    for name, each in db.engine.local.cache._held.items():
        sums: Counter = Counter()
        for run in each.runs:
            rows = run.all_rows(arrow_schema(each.stored.schema).names)
            for *row, weight in zip(*rows.to_pydict().values(), strict=True):
                sums[tuple(row)] += weight
        found[name] = Counter({row: weight for row, weight in sums.items() if weight})
    return found


@pytest.mark.parametrize("many", [2, 20_000])
@pytest.mark.parametrize("summed", [0, 5, 1_000])
def test_what_is_in_memory_stays_the_sum_of_what_was_written(db, monkeypatch, summed, many):
    monkeypatch.setattr(relation_cache, "CONSOLIDATE_MIN_ROWS", summed)
    monkeypatch.setattr(relation_cache, "BUDGET_MIN_ROWS", many)
    chance, there = random.Random(7), Counter()
    for _ in range(40):
        gone = chance.sample(sorted(there.elements()), min(2, there.total()))
        come = [(chance.randrange(4), chance.randrange(3)) for _ in range(3)]
        with db.transaction() as tx:
            tx.delete("t", gone)
            tx.insert("t", come)
        there = there - Counter(gone) + Counter(come)
    assert Counter(db.read("t").rows()) == there
    db.engine.local.cache.rows("t", db.catalog.schema("t"), db.handle.snapshot())
    assert held(db)["t"] == there
    assert len(db.engine.local.cache._held["t"].later) <= relation_cache.MAX_CHANGE_RUNS


def test_what_was_emptied_and_compacted_is_in_memory_what_comes_afterwards(db):
    """Compaction leaves no segment of an empty relation, and runs in memory that add up to zero."""
    db.insert("t", [(1, 2)])
    db.insert("t", [(1, 3)])
    with db.transaction() as tx:
        tx.delete("t", [(1, 2), (1, 3)])
    db.compact()
    db.insert("t", [(1, 5)])
    db.insert("t", [(1, 7)])
    db.engine.local.cache.rows("t", db.catalog.schema("t"), db.handle.snapshot())
    assert held(db)["t"] == Counter([(1, 5), (1, 7)])
    assert db.read("v").rows() == [(1, 12)]
    assert db.audit().ok


def test_a_view_that_is_dropped_leaves_nothing_in_memory(db):
    db.insert("t", [(1, 2)])
    db.insert("t", [(1, 3)])
    assert held(db).keys() - {"t"}
    db.sql("DROP VIEW v")
    assert held(db).keys() <= {"t"}


@pytest.mark.parametrize(
    ("rows_held", "made", "kind"),
    [(10**6, 1, SortedRun), (28_000, 3, PackedRun), (3_600, 6, PackedRun)],
    ids=["roomy", "in few parts", "file by file"],
)
def test_the_files_of_a_base_lie_together_and_are_packed_as_far_as_there_is_room(
    tmp_path, monkeypatch, rows_held, made, kind
):
    monkeypatch.setattr(upkeep, "WHOLE", replace(upkeep.WHOLE, file_rows=1_000))
    given = [(number % 2_000, number) for number in range(6_000)]
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT NOT NULL, x INT NOT NULL, PRIMARY KEY (x))")
        db.insert("t", given[::2])
        db.insert("t", given[1::2])
        db.compact()
        (segment,) = db.store.latest().relations["t"].segments
        assert len(segment.files) == 6
    with ev.open(str(tmp_path), engine="duckdb") as db:
        cache = db.engine.local.cache
        cache.budget = replace(cache.budget, resident=16 * rows_held)  # about what they take
        parts: list[SortedRun] = []

        def concatenate(runs: list[SortedRun]) -> list[SortedRun]:
            parts.extend(runs)
            return concatenate_adjacent(runs)

        monkeypatch.setattr(relation_cache, "concatenate_adjacent", concatenate)
        db.delete("t", given[7:5_000:700])
        loaded = db.engine.local.cache._held["t"].loaded
        assert [type(run) for run in parts] == [kind] * made
        assert [type(run) for run in loaded] == [kind]
        assert sorted(db.read("t").rows()) == sorted({*given} - {*given[7:5_000:700]})
