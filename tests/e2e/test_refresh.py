"""Views that recompute a part equal their queries after every transaction, and are said to."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev
from e2e.test_views import World
from everview.database import queries, recompute_blocks
from everview.database.catalog import catalog
from everview.expr.types import Column
from everview.lang.sql.recompute.partition_query import Divided, Part

# An aggregate whose answer is the same every time, and that has no derivative worth its state.
SKETCH = "SELECT k, approx_count_distinct(v) AS z FROM {} GROUP BY k"
VIEWS = {
    "whole": SKETCH.format("t"),
    "joined": f"SELECT u.v, s.z FROM u LEFT JOIN ({SKETCH.format('t')}) s ON s.k = u.k",
    "shared": f"WITH s AS ({SKETCH.format('t')}) SELECT a.k, b.z FROM s a JOIN s b USING (k)",
    "branch": "SELECT k, CAST(v AS BIGINT) AS z FROM u UNION ALL SELECT k, approx_count_distinct(v)"
    " FROM t GROUP BY k",
    "recursive": "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 3)"
    " SELECT r.n, t.v FROM r JOIN t ON t.k = r.n",
    "correlated": "SELECT k, (SELECT approx_count_distinct(u.v) FROM u WHERE u.k = t.k) AS z"
    " FROM t",
    "plain": "SELECT k, SUM(v) AS z FROM t GROUP BY k",
    "over_view": SKETCH.format("plain_t"),
}


@pytest.mark.spark
def test_recomputed_parts_and_views_over_them_equal_their_queries(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        world = World(db, seed=7)
        world.transact(0)
        world.view("plain_t", "SELECT k, v FROM t WHERE k > 0")
        for name, text in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'auto') AS {text}")
            world.queries[name] = text
        world.view("over", "SELECT z, COUNT(*) AS n FROM joined GROUP BY z")
        world.check()
        for number in range(1, 4):
            world.transact(number)
            world.check()
        assert all(db.audit(name).ok for name in ("over", "over_view"))
        refreshes = {each.name: each.refresh for each in db.status() if each.kind == "view"}
        recomputed = {name for name, how in refreshes.items() if how.startswith("recompute: ")}
        assert recomputed >= {"whole", "joined", "shared", "branch", "correlated", "over_view"}
        assert {refreshes[name] for name in ("plain", "plain_t", "over")} == {"incremental"}
        assert "approx" in refreshes["joined"]
        told = db.explain("over", "program")
        assert "recompute when t changes  -- the aggregate approx" in told
        assert "publish over" in told
    refused_by_the_embedded_engine(tmp_path)


def refused_by_the_embedded_engine(tmp_path):
    """The store that Spark made: all can be read, what needs Spark cannot be changed."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        before = db.epoch
        assert db.read("whole").rows() is not None
        assert "recompute" in {e.name: e.refresh for e in db.status()}["whole"]
        for attempt in (lambda: db.insert("t", [(1, "1.00", "a")]), lambda: db.audit("whole")):
            with pytest.raises(ev.UserError) as caught:
                attempt()
            assert caught.value.code == "E011"
            assert "cannot recompute" in caught.value.problem
        assert db.epoch == before
        db.upsert("p", [(1, 1, "1.00", "a")])


@pytest.mark.spark
def test_a_replaced_view_keeps_the_part_that_stays_the_same(spark, tmp_path):
    part = SKETCH.format("t")
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        World(db, seed=7).transact(0)
        declare = "CREATE OR REPLACE VIEW v WITH (refresh = 'auto') AS SELECT {} FROM ({}) q"
        db.sql(declare.format("k", part))
        [name] = db.catalog.parts
        before = db.store.latest().relations[name].segments
        db.sql(declare.format("k, z", part))
        assert db.store.latest().relations[name].segments == before
        frame = spark.range(3).selectExpr(
            "CAST(id AS INT) AS k", "CAST(rand() AS DECIMAL(10, 2)) AS v", "'a' AS s"
        )
        db.insert("t", frame)
        assert db.audit().ok
        db.sql("CREATE OR REPLACE VIEW v AS SELECT k FROM t")
        assert not db.catalog.parts
        assert name not in db.store.latest().relations


def test_what_cannot_be_recomputed_as_spark_would_is_refused_by_name(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        World(db, seed=7)
        for text in (VIEWS["whole"], VIEWS["joined"], VIEWS["correlated"]):
            with pytest.raises(ev.UserError) as caught:
                db.sql(f"CREATE VIEW v WITH (refresh = 'auto') AS {text}")
            assert caught.value.code == "E011"
            assert "engine='spark'" in caught.value.remedy
        db.sql(f"CREATE VIEW v TBLPROPERTIES ('refresh' = 'auto') AS {VIEWS['plain']}")
        assert [e.refresh for e in db.status() if e.name == "v"] == ["incremental"]
        for text in ("refresh = 'sometimes'", "buckets = 3"):
            with pytest.raises(ev.UserError) as caught:
                db.sql(f"CREATE VIEW w WITH ({text}) AS {VIEWS['plain']}")
            assert caught.value.code == "Q003"
        for text, offered in ((VIEWS["whole"], True), ("SELECT k FROM t LIMIT 1", False)):
            with pytest.raises(ev.UserError) as caught:
                db.sql(f"CREATE VIEW w AS {text}")
            assert caught.value.code == "Q020"
            assert ("refresh = 'auto'" in caught.value.remedy) == offered
        for text in ("SELECT k FROM t LIMIT 1", "SELECT rand() AS x FROM t"):
            with pytest.raises(ev.UserError):
                db.sql(f"CREATE VIEW w WITH (refresh = 'auto') AS {text}")


@pytest.fixture
def parted(tmp_path, monkeypatch):
    """A database whose views with refresh = 'auto' recompute the sums they join with."""

    def always(view, text, relations, analyze, describe, columns=()):
        part = Part(
            f"{view}__part__1",
            "SELECT k, SUM(v) AS z FROM positive GROUP BY k",
            (Column("k", "int"), Column("z", "decimal(20,2)")),
            ("positive",),
            "so the test wants it",
        )
        rest = f"SELECT u.s, q.z FROM u LEFT JOIN {part.name} AS q ON q.k = u.k"
        return Divided(rest, (part,))

    monkeypatch.setattr(catalog, "divide", always)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, seed=3)
        world.transact(0)
        db.sql(
            "CREATE VIEW positive AS SELECT k, v FROM t WHERE v > 0;"
            "CREATE VIEW v WITH (refresh = 'auto') AS SELECT u.s, q.z FROM u LEFT JOIN"
            " (SELECT k, SUM(v) AS z FROM positive GROUP BY k) q ON q.k = u.k;"
            "CREATE VIEW over AS SELECT s, COUNT(z) AS n FROM v GROUP BY s"
        )
        yield world


def test_a_part_follows_its_tables_in_the_epoch_of_the_change(parted):
    db = parted.db
    for number in range(1, 9):
        parted.transact(number)
        assert db.audit().ok
        assert db.audit("over").ok
        sums = Counter(db.sql("SELECT k, SUM(v) AS z FROM positive GROUP BY k").rows())
        assert Counter(stored(db)) == sums


def stored(db):
    """The rows of the part, which queries do not see."""
    return queries.read(db.engine, "v__part__1", db._snapshot()).rows()


def test_a_part_that_nothing_under_it_changes_is_left_alone(parted, monkeypatch):
    db = parted.db

    def never(*args):
        raise AssertionError("recomputed")

    monkeypatch.setattr(recompute_blocks, "recompute", never)
    db.insert("u", [(1, "1.00", "new")])
    assert db.audit().ok
    with pytest.raises(AssertionError):
        db.insert("t", [(1, "1.00", "new")])


def test_a_failure_after_a_part_was_recomputed_leaves_the_epoch_as_it_was(parted):
    db = parted.db
    before = {name: Counter(db.read(name).rows()) for name in ("t", "v", "over")}
    epoch, held = db.epoch, stored(db)
    tx = db.transaction()
    tx.insert("t", [(1, "5.00", "x")])
    tx.insert("p", [(77, 1, None, None), (77, 2, None, None)])
    with pytest.raises(ev.UserError) as caught:
        tx.commit()
    assert caught.value.code == "T010"
    assert db.epoch == epoch
    assert {name: Counter(db.read(name).rows()) for name in before} == before
    assert Counter(stored(db)) == Counter(held)
    parted.transact(1)
    assert db.audit().ok


def test_parts_are_not_seen_and_survive_reopening_and_compaction(parted, tmp_path):
    db = parted.db
    with pytest.raises(ev.UserError):
        db.read("v__part__1")
    with pytest.raises(ev.UserError):
        db.sql("SELECT * FROM v__part__1")
    db.compact()
    db.close()
    with ev.open(str(tmp_path / "store"), engine="duckdb") as again:
        parted.db = again
        for number in range(1, 4):
            parted.transact(number)
            assert again.audit().ok
        with pytest.raises(ev.UserError) as caught:
            again.sql("DROP TABLE t")
        assert "positive" in caught.value.problem
        with pytest.raises(ev.UserError) as caught:
            again.sql("DROP VIEW positive")
        assert "read by v" in caught.value.problem
        again.sql("DROP VIEW over; DROP VIEW v; DROP VIEW positive; DROP TABLE t")
        assert not again.catalog.parts


def test_a_part_is_computed_again_when_a_view_under_it_is_replaced(parted):
    db, before = parted.db, parted.db.epoch
    db.sql("CREATE OR REPLACE VIEW positive AS SELECT k, v FROM t WHERE v > 2")
    assert db.epoch == before + 1
    assert db.audit().ok
    assert Counter(stored(db)) == Counter(
        db.sql("SELECT k, SUM(v) AS z FROM t WHERE v > 2 GROUP BY k").rows()
    )
    parted.transact(1)
    assert db.audit().ok
