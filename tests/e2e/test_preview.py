"""What a transaction will change can be seen before it is committed, and is what it changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from cases import THOROUGH
from e2e.previewing import SKETCH, VIEWS, Previewed, bag
from e2e.test_choosing import force

MODES = {
    "maintained": {},
    "without memory": {"memory": 0},
    "rebuilt": {},
}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=40 if THOROUGH else 2)
@given(seed=st.integers(0, 10**6))
def test_a_preview_is_what_the_commit_changes(tmp_path_factory, mode, seed):
    path = str(tmp_path_factory.mktemp("preview") / "store")
    with ev.open(path, engine="duckdb", **MODES[mode]) as db:
        world = Previewed(db, seed)
        ways = force(db, "recompute", "incremental", "recompute") if mode == "rebuilt" else []
        for _ in range(4):
            world.step(writes_nothing=mode != "rebuilt")
        assert mode != "rebuilt" or len(ways) > 3
        assert db.audit().ok


@pytest.mark.spark
@pytest.mark.parametrize("gear", ["small", "large"])
def test_a_preview_on_spark_is_what_the_commit_changes(spark, tmp_path, gear):
    from e2e.test_gears import opened

    few = {name: VIEWS[name] for name in ("grouped", "neither")}
    views = VIEWS if THOROUGH else few
    how = {"memory": 0} if gear == "small" else {"large_rows": -1}
    with opened(tmp_path / "store", spark, **how) as db:
        world = Previewed(db, 11, {**views, **SKETCH} if gear == "small" else few)
        world.step(writes_nothing=gear == "small")
        with db.transaction() as tx:
            rows = [(100, 1, 7), (101, None, None)]
            tx.insert("item", spark.createDataFrame(rows, "id INT, kind INT, price INT"))
            deleted, inserted = tx.preview("grouped")
            for each in (deleted, inserted, tx.read("grouped")):
                assert Counter(map(tuple, each.to_spark().collect())) == bag(each)
            value = bag(tx.read("grouped"))
        assert bag(db.read("grouped")) == value
        pair = db.changes("grouped", after=0, pair=True)
        assert Counter(map(tuple, pair.inserted.to_spark().collect())) == value
        assert pair.deleted.to_spark().collect() == []
        assert db.audit().ok


SETUP = """
CREATE TABLE t (id INT PRIMARY KEY, g INT NOT NULL);
CREATE VIEW v AS SELECT g, COUNT(*) AS n FROM t GROUP BY g;
CREATE VIEW w AS SELECT 10 / g AS x FROM t;
INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)
"""


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SETUP)
        yield db


def test_a_preview_refuses_what_the_commit_would_refuse(db):
    for change in ([(1, 5)], [(9, 0)]):
        tx, codes = db.transaction(), set()
        tx.insert("t", change)
        for look in (lambda t: t.preview("v"), lambda t: t.read("w"), lambda t: t.commit()):
            with pytest.raises(ev.UserError) as refused:
                look(tx)
            codes.add(refused.value.code)
        assert len(codes) == 1
    with db.transaction() as tx:
        tx.insert("t", [(1, 5)])
        with pytest.raises(ev.UserError, match="T010"):
            tx.preview()
        tx.delete("t", [(1, 1)])
        deleted, inserted = tx.preview("v")
        assert (sorted(deleted.rows()), sorted(inserted.rows())) == ([(1, 2)], [(1, 1), (5, 1)])


def test_many_views_cost_one_run_of_the_program(db, monkeypatch):
    runs = []
    preview = db.engine.preview
    monkeypatch.setattr(db.engine, "preview", lambda *a: runs.append(a) or preview(*a))
    with db.transaction() as tx:
        tx.insert("t", [(4, 2)])
        assert len(tx.preview()) == 2
        tx.preview("v")
        tx.read("w").rows()
        assert len(runs) == 1, "what is known is not computed again"
        tx.preview("t")
        tx.read("t").rows()
        tx.insert("t", [(5, 2)])
        assert bag(tx.read("v")) == Counter([(1, 2), (2, 3)])
        assert len(runs) == 2


def test_a_view_that_the_change_does_not_touch_costs_nothing(db, monkeypatch):
    db.sql("CREATE TABLE other (x INT); CREATE VIEW o AS SELECT COUNT(*) AS n FROM other")
    monkeypatch.setattr(db.engine, "preview", lambda *_: pytest.fail("it was run"))
    with db.transaction() as tx:
        tx.insert("t", [(4, 2)])
        assert [each.rows() for each in tx.preview("o")] == [[], []]
        assert tx.read("o").rows() == [(0,)]


def test_results_of_a_preview_outlive_the_transaction(db):
    tx = db.transaction()
    tx.insert("t", [(4, 7)])
    pair, value = tx.preview("v"), tx.read("v")
    tx.rollback()
    assert pair.inserted.rows() == [(7, 1)]
    assert bag(value) == Counter([(1, 2), (2, 1), (7, 1)])
    assert bag(db.read("v")) == Counter([(1, 2), (2, 1)])


def test_others_do_not_see_what_is_pending(db):
    with db.transaction() as tx:
        tx.insert("t", [(4, 7)])
        tx.preview()
        assert bag(db.read("v")) == Counter([(1, 2), (2, 1)])
        assert bag(db.sql("SELECT * FROM v")) == Counter([(1, 2), (2, 1)])


def test_a_statement_reads_views_as_the_statements_before_it_left_them(db):
    db.sql("BEGIN; INSERT INTO t VALUES (4, 7); INSERT INTO t SELECT g * 10, n FROM v; COMMIT")
    assert sorted(db.read("t").rows()) == [
        *((1, 1), (2, 1), (3, 2), (4, 7)),
        *((10, 2), (20, 1), (70, 1)),
    ]
    assert db.audit().ok


def test_a_preview_is_refused_where_it_means_nothing(db):
    for text in ("EXPLAIN CHANGES OF v", "EXPLAIN CHANGES OF `v`"):
        with pytest.raises(ev.UserError, match="T008") as refused:
            db.sql(text)
        assert refused.value.span is not None
    db.sql("BEGIN")
    for text in ("EXPLAIN CHANGES OF nowhere", "EXPLAIN CHANGES OF `a b`", "EXPLAIN CHANGES OF"):
        with pytest.raises(ev.UserError) as refused:
            db.sql(text)
        assert refused.value.remedy
    assert db.sql("EXPLAIN CHANGES OF v").rows() == []
    db.sql("ROLLBACK")
    tx = db.transaction()
    for bad in ("nowhere", ["v", "nowhere"], [1], 7, {"v": 1}, object()):
        with pytest.raises(ev.UserError):
            tx.preview(bad)
    tx.rollback()
    for late in (tx.preview, lambda: tx.read("v")):
        with pytest.raises(ev.UserError, match="T003"):
            late()
