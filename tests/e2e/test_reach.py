"""A view that this engine cannot keep fresh closes neither its store nor other views."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from click.testing import CliRunner

import everview as ev
from everview.cli.main import main
from everview.store.store import Store

SETUP = """
CREATE TABLE t (k INT, s STRING);
CREATE TABLE other (k INT, v INT);
CREATE VIEW far AS SELECT k, upper(s) AS x FROM t;
CREATE VIEW over_far AS SELECT x, COUNT(*) AS n FROM far GROUP BY x;
CREATE VIEW by_text AS SELECT s, COUNT(*) AS n FROM t GROUP BY s;
CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM other GROUP BY k;
CREATE VIEW joined AS SELECT a.k, b.v FROM other a JOIN other b ON a.v = b.k;
INSERT INTO t VALUES (1, 'abc'), (2, 'x');
INSERT INTO other VALUES (1, 2), (2, 1)
"""


@pytest.fixture
def location(tmp_path):
    """A store with a view that only Spark knows how to keep fresh, as if Spark had made it."""
    path = str(tmp_path / "store")
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
    store = Store.open_existing(path)
    latest = store.latest()
    text = json.dumps(latest.catalog).replace("upper(s)", "soundex(s)")
    following = latest.advance(epoch=latest.epoch + 1, created="t", bases={}, changes={})
    store.commit(replace(following, catalog=json.loads(text)))
    return path


@contextmanager
def refused(code: str):
    with pytest.raises(ev.UserError) as caught:
        yield caught
    assert caught.value.code == code, caught.value.render()


def test_it_opens_and_everything_is_read(location):
    with ev.open(location, engine="duckdb") as db:
        assert sorted(db.read("far").rows()) == [(1, "ABC"), (2, "X")]
        assert sorted(db.sql("SELECT x FROM over_far ORDER BY x").rows()) == [("ABC",), ("X",)]
        assert sorted(db.changes("far").to_arrow().column_names) == ["_epoch", "_w", "k", "x"]
        shown = {each.name: each for each in db.status()}
        assert shown["far"].rows == 2
        assert "not by this engine" in shown["far"].refresh
        assert "soundex" in shown["far"].refresh
        assert "reads far" in shown["over_far"].refresh
        assert shown["sums"].refresh == "incremental"
        db.history()


def test_transactions_that_do_not_touch_it_work(location):
    with ev.open(location, engine="duckdb") as db:
        db.insert("other", [(1, 5)])
        db.sql("DELETE FROM other WHERE k = 2")
        assert sorted(db.read("sums").rows()) == [(1, 7)]
        db.sql("CREATE VIEW more AS SELECT k, MAX(v) AS m FROM other GROUP BY k")
        db.compact()
        assert db.read("more").rows() == [(1, 5)]
    with ev.open(location, engine="duckdb") as db:
        assert sorted(db.read("sums").rows()) == [(1, 7)]
        assert sorted(db.read("far").rows()) == [(1, "ABC"), (2, "X")]


@pytest.mark.parametrize("way", ["insert", "delete", "statement"])
def test_others_are_refused_by_the_name_of_the_view(location, way):
    with ev.open(location, engine="duckdb") as db:
        before = db.epoch
        with refused("E015") as caught:
            if way == "insert":
                db.insert("t", [(3, "y")])
            elif way == "delete":
                db.delete("t", [(1, "abc")])
            else:
                db.sql("BEGIN; INSERT INTO other VALUES (9, 9); DELETE FROM t; COMMIT")
        assert "the view far" in caught.value.problem
        assert "soundex" in caught.value.problem
        assert "spark" in caught.value.remedy
        assert db.epoch == before
        db.insert("other", [(1, 1)])


def test_what_is_over_it_is_neither_made_nor_replaced(location):
    with ev.open(location, engine="duckdb") as db:
        before = db.epoch
        with refused("E015") as caught:
            db.sql("CREATE VIEW more AS SELECT x FROM far")
        assert "reads far" in caught.value.problem
        with refused("E015"):
            db.explain("far")
        with refused("C003"):
            db.sql("DROP TABLE t")
        assert db.epoch == before
        db.sql("DROP VIEW over_far; DROP VIEW far; INSERT INTO t VALUES (3, 'y')")
        assert sorted(db.read("by_text").rows()) == [("abc", 1), ("x", 1), ("y", 1)]


def test_audit_says_which_it_could_not_check(location):
    with ev.open(location, engine="duckdb") as db:
        found = {each.view: each for each in db.audit()}
        assert not db.audit().ok
        assert "soundex" in found["far"].unchecked
        assert "far" in found["over_far"].unchecked
        assert found["sums"].ok
        with refused("E015"):
            db.audit("far")
    ran = CliRunner().invoke(main, ["audit", location, "--engine", "duckdb"])
    assert ran.exit_code == 1
    assert "NOT CHECKED" in ran.output


def test_it_keeps_its_states_until_it_is_in_reach_again(location):
    with ev.open(location, engine="duckdb") as db:
        held = set(db.store.latest().relations)
        db.sql(
            "CREATE VIEW more AS SELECT k FROM other WHERE v > 1; INSERT INTO other VALUES (7, 7)"
        )
        assert held <= set(db.store.latest().relations)


def test_a_store_that_tells_nothing_of_its_views_still_refuses(location):
    store = Store.open_existing(location)
    latest = store.latest()
    plain = {key: value for key, value in latest.catalog.items() if key != "known"}
    following = latest.advance(epoch=latest.epoch + 1, created="t", bases={}, changes={})
    store.commit(replace(following, catalog=plain))
    with pytest.raises(ev.UserError):
        ev.open(location, engine="duckdb")


@pytest.mark.spark
def test_what_spark_made_the_embedded_engine_opens(spark, tmp_path):
    path = str(tmp_path / "store")
    with ev.open(path, spark=spark) as db:
        db.sql(SETUP.replace("upper(s)", "soundex(s)"))
    with ev.open(path, engine="duckdb") as db:
        expected = sorted(db.read("far").rows())
        db.insert("other", [(4, 4)])
        with refused("E015"):
            db.insert("t", [(3, "y")])
    with ev.open(path, spark=spark) as db:
        db.insert("t", [(3, "Robert")])
        assert sorted(db.read("far").rows()) == sorted([*expected, (3, "R163")])
        assert db.audit().ok


def bumped(n):
    return None if n is None else n + 1


@pytest.mark.spark
def test_a_function_in_python_may_come_with_opening_or_stay_away(spark, tmp_path):
    path = str(tmp_path / "store")
    given = {"bump_it": (bumped, "int")}
    with ev.open(path, spark=spark.newSession(), functions=given) as db:
        db.sql("CREATE TABLE t (k INT); CREATE TABLE u (k INT)")
        db.sql("CREATE VIEW v AS SELECT bump_it(k) AS x FROM t; INSERT INTO t VALUES (1)")
        assert db.read("v").rows() == [(2,)]
    with ev.open(path, spark=spark.newSession()) as db:
        assert db.read("v").rows() == [(2,)]
        db.insert("u", [(1,)])
        with refused("E015") as caught:
            db.insert("t", [(5,)])
        assert "the view v" in caught.value.problem
        assert "bump_it" in caught.value.problem
        assert "functions=" in caught.value.remedy
        db.function("bump_it", bumped, "int", deterministic=True)
        db.insert("t", [(5,)])
        assert sorted(db.read("v").rows()) == [(2,), (6,)]
    with ev.open(path, spark=spark.newSession(), functions=given) as db:
        db.insert("t", [(7,)])
        assert sorted(db.read("v").rows()) == [(2,), (6,), (8,)]
        assert db.audit().ok


def test_functions_are_refused_by_the_embedded_engine(tmp_path):
    with refused("E012"):
        ev.open(str(tmp_path / "store"), engine="duckdb", functions={"f": (bumped, "int")})
