"""A damaged view is repaired by declaring it again with the same text."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

import everview as ev

LARGE = "CREATE OR REPLACE VIEW large AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k"
SETUP = f"""
CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);
{LARGE};
CREATE VIEW over AS SELECT SUM(n) AS n FROM large
"""


@pytest.fixture
def path(tmp_path, own_files):
    path = str(tmp_path / "store")
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
        db.insert("t", [(n, n % 3, n) for n in range(9)])
        db.insert("t", [(n, n % 3, n) for n in range(9, 12)])
    return path


def right(db) -> None:
    assert Counter(db.read("large").rows()) == Counter([(0, 4, 9), (1, 4, 10), (2, 4, 11)])
    assert db.read("over").rows() == [(12,)]
    db.upsert("t", [(11, 0, 1)])
    assert Counter(db.read("large").rows()) == Counter([(0, 5, 9), (1, 4, 10), (2, 3, 8)])
    db.upsert("t", [(11, 2, 11)])
    assert db.audit().ok


def test_a_view_with_wrong_rows_is_repaired(path):
    with ev.open(path, engine="duckdb") as db:
        now = db.store.latest()
        for name in db.store.latest().relations:
            if name != "t":
                relation = now.relations[name]
                now = replace(
                    now,
                    relations={
                        **now.relations,
                        name: replace(relation, segments=relation.segments[:-1]),
                    },
                )
        db.store.commit(replace(now, epoch=now.epoch + 1, parent=now.epoch))
    with ev.open(path, engine="duckdb") as db:
        assert not db.audit("large").ok
        before = db.epoch
        db.sql(LARGE)
        assert db.epoch == before + 1
        right(db)
    with ev.open(path, engine="duckdb") as db:
        right(db)


@pytest.mark.parametrize("how", ["removed", "torn", "flipped"])
@pytest.mark.parametrize("which", ["view", "states"])
def test_a_view_whose_files_are_damaged_is_repaired(path, how, which):
    with ev.open(path, engine="duckdb", read_only=True) as db:
        relations = db.store.latest().relations
        names = ["large"] if which == "view" else sorted(relations.keys() - {"t", "large", "over"})
        assert names
        files = [db.store.absolute(f.path) for name in names for f in relations[name].files]
    for file in files:
        if how == "removed":
            os.remove(file)
            continue
        with open(file, "r+b") as changed:
            if how == "torn":
                changed.truncate(20)
            else:
                changed.seek(os.path.getsize(file) // 2)
                changed.write(b"\xff\x00\xff\x00")
    with ev.open(path, engine="duckdb") as db:
        db.sql(LARGE)
        assert not db.store.verify(db.store.latest())
        right(db)


def test_a_view_that_is_right_is_not_written(path):
    with ev.open(path, engine="duckdb") as db:
        before = {n: r.segments for n, r in db.store.latest().relations.items()}
        db.sql(LARGE)
        assert {n: r.segments for n, r in db.store.latest().relations.items()} == before
