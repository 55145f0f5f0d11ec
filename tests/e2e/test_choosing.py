"""Rebuilding views instead of maintaining them never changes an answer or a feed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from time import sleep

import pytest

import everview as ev
from e2e.shapes import query, shapes_for
from e2e.test_gears import opened
from e2e.test_views import World
from everview.database.cost.choose import Choice, Workload, choose
from everview.database.cost.measurements import Measurement, Measurements
from everview.runtime.cache.relation_cache import RelationCache


def force(db, *ways: str) -> list[str]:
    """Let a database take these ways in turn; the ways it took."""
    taken: list[str] = []

    def chosen(work: Workload, measured: Measurements) -> Choice:
        choose(work, measured)
        taken.append(ways[len(taken) % len(ways)])
        return Choice(taken[-1], 2.0, 1.0)

    db.handle.maintainer.chooser, db.handle.maintainer.weighed_min_rows = chosen, 0
    return taken


def told(db, name: str, after: int) -> Counter:
    """What the feed told after an epoch, as a bag of rows with weights."""
    return Counter(row[:-1] for row in db.changes(name, after=after).rows())


def follow(leader, follower, tables) -> None:
    """Apply the newest change of one database to another."""
    with follower.transaction() as tx:
        for table in tables:
            for *row, weight in told(leader, table, leader.epoch - 1).elements():
                change = tx.insert if weight > 0 else tx.delete
                change(table, [tuple(row)] * abs(weight))


SHAPES = [shape for shape in shapes_for("duckdb") if shape != "doubles"]


@pytest.mark.parametrize("ways", [("recompute",), ("recompute", "incremental")])
def test_both_ways_leave_equal_views_and_feeds(tmp_path, ways):
    with (
        ev.open(str(tmp_path / "rebuilt"), engine="duckdb") as rebuilt,
        ev.open(str(tmp_path / "kept"), engine="duckdb") as kept,
    ):
        taken = force(rebuilt, *ways)
        worlds = World(rebuilt, 5), World(kept, 5)
        for world in worlds:
            for shape in SHAPES:
                world.view(f"v_{shape}", query(shape, "p"))
            for shape in SHAPES[::4]:
                world.view(f"over_{shape}", query("group", f"v_{shape}"))
        for number in range(4):
            before = rebuilt.epoch, kept.epoch
            worlds[0].transact(number)
            if rebuilt.epoch == before[0]:
                continue
            follow(rebuilt, kept, ("t", "u", "p"))
            for view in worlds[0].queries:
                assert Counter(rebuilt.read(view).rows()) == Counter(kept.read(view).rows()), view
                assert told(rebuilt, view, before[0]) == told(kept, view, before[1]), view
        assert set(taken) == set(ways)
        assert rebuilt.audit().ok
        ways_told = {e.way for e in rebuilt.history() if e.kind == "transaction"}
        assert ways_told == set(ways)


@pytest.mark.spark
@pytest.mark.parametrize("settings", [{}, {"large_rows": -1}])
def test_both_ways_are_right_on_spark(spark, tmp_path, settings):
    with opened(tmp_path, spark, **settings) as db:
        force(db, "recompute", "incremental")
        world = World(db, 3)
        for shape in ("join", "group", "distinct"):
            world.view(f"v_{shape}", query(shape, "p"))
        for number in range(2):
            epoch, old = db.epoch, {v: Counter(db.read(v).rows()) for v in world.queries}
            world.transact(number)
            world.check()
            for view, rows in old.items():
                for *row, weight in told(db, view, epoch).elements():
                    rows[tuple(row)] += weight
                assert +rows == Counter(db.read(view).rows())


SUMS = """
CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);
CREATE VIEW sums AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY k;
CREATE VIEW top AS SELECT MAX(total) AS most FROM sums
"""


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened_:
        opened_.sql(SUMS)
        yield opened_


def test_a_change_that_is_refused_is_refused_in_both_ways(db):
    force(db, "recompute")
    db.insert("t", [(1, 1, 1)])
    epoch = db.epoch
    with pytest.raises(ev.UserError) as caught:
        db.insert("t", [(1, 2, 2), (2, 2, 2)])
    assert caught.value.code == "T010"
    assert db.epoch == epoch
    assert db.read("sums").rows() == [(1, 1, 1)]
    db.insert("t", [(2, 2, 2)])
    assert sorted(db.read("sums").rows()) == [(1, 1, 1), (2, 2, 1)]
    assert db.audit().ok


def test_what_was_built_and_not_committed_is_forgotten(db, monkeypatch):
    force(db, "recompute", "incremental")
    db.insert("t", [(1, 1, 1)])
    db.insert("t", [(2, 2, 2)])

    def lost(*_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(db.store, "commit", lost)
        with pytest.raises(RuntimeError):
            db.insert("t", [(3, 2, 3)])
    db.insert("t", [(3, 3, 3)])
    db.insert("t", [(4, 3, 4)])
    assert sorted(db.read("sums").rows()) == [(1, 1, 1), (2, 2, 1), (3, 7, 2)]
    assert db.read("top").rows() == [(7,)]
    assert db.audit().ok


def test_everything_that_was_there_may_go_and_come_back(db):
    force(db, "recompute")
    rows = [(i, i % 3, i) for i in range(20)]
    for _ in range(2):
        db.insert("t", rows)
        assert len(db.read("sums").rows()) == 3
        db.delete("t", rows)
        assert db.read("sums").rows() == []
        assert db.read("top").rows() == [(None,)]
    assert db.audit().ok


@pytest.mark.parametrize(
    ("asked", "exact"),
    [
        ("SUM(x) AS s", False),
        ("COUNT(*) AS n", True),
        ("AVG(k) AS a", True),
        ("AVG(d) AS a", False),
        ("STDDEV(k) > 1 AS wide", False),
        ("MAX(k) AS m", True),
    ],
)
def test_what_depends_on_the_order_of_addition_is_maintained(tmp_path, asked, exact):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, x DOUBLE, d DECIMAL(30,2))")
        db.sql(f"CREATE VIEW v AS SELECT {asked} FROM t")
        taken = force(db, "recompute")
        db.insert("t", [(1, 0.1, "0.10"), (2, 0.2, "0.20")])
        assert taken == ["recompute"] * exact
        assert db.history()[-1].way == ("recompute" if exact else "incremental")
        assert db.audit().ok


def test_parts_that_are_recomputed_are_like_tables_to_both_ways(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, v INT)")
        db.sql(
            "CREATE VIEW m WITH (refresh = 'auto') AS"
            " SELECT k, COUNT(*) AS n FROM t WHERE v <= (SELECT MAX(v) FROM t) GROUP BY k"
        )
        force(db, "recompute")
        db.insert("t", [(1, 1), (1, 2), (2, 5)])
        db.delete("t", [(1, 2)])
        assert sorted(db.read("m").rows()) == [(1, 1), (2, 1)]
        assert db.audit().ok


ASKED = Workload("t", 50_000, 3, {"sums": 100_000, "state": 100_000})


def test_few_rows_among_many_are_not_weighed():
    few = Workload("t", 1000, 3, {"sums": 1_000_000})
    assert choose(few, Measurements()) == Choice()


@pytest.mark.parametrize(
    ("samples", "way"),
    [
        (Measurements(changes={"t": Measurement(50_000, 10.0)}), "incremental"),
        (Measurements(changes={"t": Measurement(50_000, 5000.0)}), "recompute"),
        (
            Measurements(
                {"sums": Measurement(100_000, 9000.0)}, {"t": Measurement(50_000, 5000.0)}
            ),
            "incremental",
        ),
        (
            Measurements({"sums": Measurement(100_000, 1.0), "state": Measurement(100_000, 1.0)}),
            "recompute",
        ),
        (Measurements(), "incremental"),
    ],
)
def test_the_way_that_took_less_before_is_taken(samples, way):
    assert choose(ASKED, samples).way == way


def test_spark_sql_is_expected_to_build_faster_than_to_maintain_until_it_was_measured():
    large = replace(ASKED, large=True)
    assert choose(large, Measurements()).way == "recompute"
    assert (
        choose(large, Measurements(changes={"t": Measurement(50_000, 10.0)})).way == "incremental"
    )


def test_what_few_rows_took_is_not_multiplied():
    one = Measurements(changes={"t": Measurement(1, 50.0)})
    assert choose(ASKED, one).incremental <= 50.0 + choose(ASKED, Measurements()).incremental


def test_a_build_is_expected_to_read_what_the_change_brings(db):
    asked: list[Workload] = []

    def noted(work: Workload, measured: Measurements) -> Choice:
        asked.append(work)
        return choose(work, measured)

    db.handle.maintainer.chooser = noted
    db.insert("t", [(i, i % 10, i) for i in range(3000)])
    db.delete("t", [(i, i % 10, i) for i in range(1000)])
    assert [max(each.builds.values()) for each in asked] == [3000, 4000]
    assert [each.rows for each in asked] == [3000, 1000]


def test_what_is_fetched_for_checks_is_not_counted_for_the_views(tmp_path, monkeypatch):
    asked: list[Workload] = []
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        db.sql("CREATE VIEW v AS SELECT * FROM t WHERE n > 3")
        db.sql("CREATE VIEW w AS SELECT a.id, b.n FROM t AS a JOIN t AS b ON a.id = b.id")
        db.handle.maintainer.chooser = lambda work, _: asked.append(work) or Choice()
        db.handle.maintainer.weighed_min_rows = 0
        fetched = RelationCache.lookup

        def slowly(*given):
            sleep(0.5)
            return fetched(*given)

        monkeypatch.setattr(RelationCache, "lookup", slowly)
        db.insert("t", [(1, 5), (2, 6)])
        assert [work.fetches for work in asked] == [0]
        assert db.history()[-1].views_ms < 500
        assert db.audit().ok


def test_a_way_that_is_not_taken_is_tried_again_some_day(db):
    rows = [(i, i % 10, i) for i in range(2000)]
    force(db, "recompute")
    for change in (db.insert, db.delete) * 2:
        change("t", rows)
    expected = Measurements.of(db.store.latest().note).changes["t"]
    assert expected.rows == 2000
    assert expected.milliseconds == pytest.approx(2.0 * 0.9)
    db.handle.maintainer.chooser = choose
    for change in (db.insert, db.delete) * 2:
        change("t", rows)
    assert "incremental" in {e.way for e in db.history() if e.epoch > db.epoch - 4}


def test_what_is_loaded_once_is_not_expected_again(tmp_path, monkeypatch):
    """A store that was just opened has nothing in memory; what loading takes says nothing."""
    rows = [(key, key % 7) for key in range(5_000)]
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)")
        db.insert("t", rows)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT n, COUNT(*) AS many FROM t GROUP BY n")
    load = RelationCache._load

    def slowly(*given):
        loaded = load(*given)
        given[0].load_ms += 60_000
        return loaded

    monkeypatch.setattr(RelationCache, "_load", slowly)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        for number in range(2):
            db.delete("t", rows[number * 2_000 : (number + 1) * 2_000])
        first, second = (e for e in db.history()[-4:] if e.view is None)
        assert first.load_ms > 60_000
        assert first.views_ms < 60_000
        assert second.load_ms is None
        assert second.expected_incremental_ms < 60_000
        assert db.audit().ok


def test_a_large_change_is_weighed_and_its_outcome_is_told(db):
    db.insert("t", [(i, i % 10, i) for i in range(3000)])
    db.delete("t", [(i, i % 10, i) for i in range(3000)])
    newest = db.history()[-1]
    assert newest.expected_incremental_ms > 0
    assert newest.expected_recompute_ms > 0
    assert newest.views_ms > 0
    assert newest.way in ("incremental", "recompute")
    samples = Measurements.of(db.store.latest().note)
    assert samples.builds.keys() >= {"sums", "top"}
    db.compact()
    assert Measurements.of(db.store.latest().note) == samples
    db.sql("DROP VIEW top; DROP VIEW sums")
    assert Measurements.of(db.store.latest().note).builds == {}
