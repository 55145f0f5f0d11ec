"""Two engines, one meaning: a store written by one is continued by the other."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

import everview as ev
from e2e.checking import differences
from e2e.shapes import query, shapes_for
from e2e.test_views import World
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.duckdb.engine import DuckDBEngine
from everview.errors import UserError
from everview.runtime import memory_budget
from everview.store.store import Store


def contents(db) -> dict[str, Counter]:
    return {name: Counter(db.read(name).rows()) for name in (*db.catalog.tables, *db.catalog.views)}


def continued(db, queries, seed) -> World:
    """The world of a store that was opened again."""
    world = World(db, seed, declare=False)
    world.queries = dict(queries)
    return world


@pytest.mark.spark
def test_both_engines_answer_alike_and_as_plain_spark_does(spark, tmp_path):
    with (
        ev.open(str(tmp_path / "s"), spark=spark) as one,
        ev.open(str(tmp_path / "d"), engine="duckdb") as other,
    ):
        worlds = [World(db, seed=3) for db in (one, other)]
        for world in worlds:
            world.transact(0)
            for shape in shapes_for("duckdb"):
                world.view(f"v_{shape}", query(shape, "t"))
        for number in range(1, 4):
            for world in worlds:
                world.transact(number)
            assert contents(one) == contents(other)
        assert differences(one, worlds[0].queries) == []


@pytest.mark.spark
def test_engines_take_turns_on_one_store(spark, tmp_path):
    path, queries = str(tmp_path / "store"), {}
    for turn in range(4):
        engine = {"spark": spark} if turn % 2 == 0 else {"engine": "duckdb"}
        with ev.open(path, **engine) as db:
            if turn == 0:
                world = World(db, 0)
                for shape in ("join", "union", "average", "doubles"):
                    world.view(f"v_{shape}", query(shape, "u"))
                queries = world.queries
            world = continued(db, queries, seed=turn)
            world.transact(turn)
            world.transact(turn + 1)
            if turn == 2:
                db.compact()
            assert differences(db, queries) == []


def test_what_is_in_memory_follows_the_store_through_everything(tmp_path):
    """Compaction, refused and lost transactions, dropped views: memory and files agree."""
    with ev.open(str(tmp_path), engine="duckdb") as db:
        world = World(db, seed=5)
        for shape in ("join", "group", "union", "average"):
            world.view(f"v_{shape}", query(shape, "p"))
        for number in range(18):  # enough for compaction by itself
            world.transact(number)
            if number % 5 == 1:
                with pytest.raises(UserError):
                    db.delete("t", [(99, "1.00", "never")])
            if number % 7 == 2:
                db.compact()
            if number == 10:
                db.sql("DROP VIEW v_join")
                del world.queries["v_join"]
                world.view("v_join", query("self_join", "p"))
            world.check()


def test_a_transaction_that_loses_the_race_leaves_no_trace_in_memory(tmp_path):
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, v INT)")
        db.sql("CREATE VIEW g AS SELECT k, SUM(v) AS s FROM t GROUP BY k")
        db.insert("t", [(1, 1)])
        real, db.store.commit = db.store.commit, _lost
        with pytest.raises(UserError):
            db.insert("t", [(1, 10)])
        db.store.commit = real
        db.insert("t", [(1, 100)])
        assert db.read("g").rows() == [(1, 101)]
        assert db.audit().ok


def _lost(_manifest, _note) -> None:
    raise UserError("S007", "another writer was first", remedy="begin again")


def test_more_than_the_memory_given_is_spilled(tmp_path, monkeypatch):
    import pyarrow as pa

    monkeypatch.setattr(memory_budget, "CALCULATING_MIN_BYTES", 0)
    monkeypatch.setattr(memory_budget, "THREAD_MIN_BYTES", 0)
    store = Store.create_or_open(str(tmp_path))
    with Database(Handle(store, DuckDBEngine(memory=120_000_000), store.writer_lock())) as db:
        db.sql("CREATE TABLE t (k BIGINT, w STRING)")
        db.sql("CREATE VIEW j AS SELECT a.k, a.w FROM t a JOIN t b ON a.k = b.k AND a.w = b.w")
        rows = 300_000
        words = pa.array([f"{number:0200d}" for number in range(1000)]).take(
            pa.array([number % 1000 for number in range(rows)])
        )
        db.insert("t", pa.table({"k": pa.array(range(rows)), "w": words}))
        db.insert("t", [(5, f"{5:0200d}"), (rows + 1, "x")])
        assert db.sql("SELECT COUNT(*) AS n FROM j").rows() == [(rows + 1 + 3,)]


def test_the_embedded_engine_needs_neither_spark_nor_java(tmp_path):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('pyspark', 'pandas'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import everview as ev\n"
        f"db = ev.open({str(tmp_path)!r}, engine='duckdb')\n"
        "db.sql('CREATE TABLE t (a INT)')\n"
        "db.sql('CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a')\n"
        "db.sql('INSERT INTO t VALUES (1), (1); UPDATE t SET a = 2; SELECT * FROM v')\n"
        "assert db.audit().ok\n"
        "print(db.read('v').rows())\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[(2, 2)]"


QUERIES = {
    "SELECT k FROM t ORDER BY k": [(None,), (1,), (1,), (2,), (3,)],
    "SELECT k FROM t ORDER BY k DESC LIMIT 2": [(3,), (2,)],
    "SELECT k FROM t ORDER BY k DESC NULLS FIRST LIMIT 2 OFFSET 1": [(3,), (2,)],
    "SELECT s FROM t ORDER BY v DESC, 1": [("d",), ("c",), ("b",), ("a",), ("a",)],
    "SELECT k, SUM(v) AS x FROM t GROUP BY k ORDER BY SUM(v) DESC LIMIT 1": [(3, 30)],
    "SELECT k AS a FROM t WHERE k > 1 UNION ALL SELECT 0 ORDER BY a": [(0,), (2,), (3,)],
    "SELECT DISTINCT s FROM t ORDER BY s DESC LIMIT 1": [("d",)],
    "VALUES (1, 'x'), (2, NULL)": [(1, "x"), (2, None)],
}


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_may_order_and_cut_its_rows(open_db, tmp_path, text):
    with open_db(tmp_path) as db:
        db.sql("CREATE TABLE t (k INT, v INT, s STRING)")
        db.insert("t", [(1, 1, "a"), (1, 1, "a"), (2, 20, "c"), (3, 30, "d"), (None, 5, "b")])
        assert db.sql(text).rows() == QUERIES[text]


def test_a_spark_session_is_not_for_the_embedded_engine(tmp_path):
    with pytest.raises(UserError) as caught:
        ev.open(str(tmp_path), engine="duckdb", spark=object())
    assert caught.value.code == "E002"
    with pytest.raises(UserError) as caught:
        ev.open(str(tmp_path), engine="sqlite")
    assert caught.value.code == "E002"


def test_in_as_a_value_is_true_or_false_as_spark_has_it(open_db, tmp_path):
    with open_db(tmp_path) as db:
        db.sql("CREATE TABLE a (x INT); CREATE TABLE n (x INT)")
        db.sql(
            "CREATE VIEW v AS SELECT x, x IN (SELECT x FROM n) AS i,"
            " x NOT IN (SELECT x FROM n) AS o, NOT (x NOT IN (SELECT x FROM n)) AS b FROM a"
        )
        db.insert("a", [(1,), (2,), (None,)])
        assert set(db.read("v").rows()) == {
            (1, False, True, False),
            (2, False, True, False),
            (None, False, True, False),
        }
        db.insert("n", [(1,), (None,)])
        assert set(db.read("v").rows()) == {
            (1, True, False, True),
            (2, False, False, False),
            (None, False, False, False),
        }
        db.delete("n", [(None,)])
        assert db.audit().ok


def test_nothing_is_computed_of_a_row_that_is_not_there_any_more(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT)")
        db.insert("t", [(0,), (2,)])
        db.delete("t", [(0,)])
        assert db.sql("SELECT 10 / k AS q FROM t").rows() == [(5.0,)]
        db.sql("CREATE VIEW v AS SELECT 10 / k AS q FROM t")
        assert db.audit().ok
        db.sql("BEGIN; INSERT INTO t VALUES (0), (5); DELETE FROM t WHERE k = 0")
        found = db.sql("SELECT 10 / k AS q FROM t").rows()
        db.sql("COMMIT")
        assert sorted(found) == sorted(db.read("v").rows()) == [(2.0,), (5.0,)]
        assert db.audit().ok


ONCE_A_ZERO = """
CREATE TABLE t (j INT, k INT);
CREATE TABLE u (j INT, x INT);
CREATE VIEW shown AS SELECT u.x, 10 / t.k AS q FROM t JOIN u ON t.j = u.j;
CREATE VIEW kept AS SELECT t.k, u.x FROM t JOIN u ON t.j = u.j WHERE 10 / (t.k + u.x - 7) > 0;
CREATE VIEW paired AS SELECT t.k, u.x FROM t JOIN u ON t.j = u.j AND 10 / (t.k + u.x - 7) > 0;
CREATE VIEW summed AS SELECT t.j, SUM(10 / t.k) AS q FROM t JOIN u ON t.j = u.j GROUP BY t.j;
CREATE VIEW spread AS
  SELECT e.q FROM t JOIN u ON t.j = u.j LATERAL VIEW EXPLODE(array(10 / t.k)) e AS q;
"""
"""A row with `k = 0` that meets a row with `x = 7` cannot be computed by any of the views."""


def check_rows_that_cancel(db):
    db.sql(ONCE_A_ZERO)
    db.insert("t", [(1, 0), (1, 5), (2, 5), (3, 0)])
    db.delete("t", [(1, 0)])
    db.insert("u", [(1, 7)])  # the row was there once
    assert db.read("shown").rows() == [(7, 2.0)]
    with db.transaction() as tx:  # it leaves as its partner comes
        tx.delete("t", [(3, 0)])
        tx.insert("u", [(3, 7)])
    db.insert("u", [(2, 7)])
    with db.transaction() as tx:  # it comes as its partner leaves
        tx.insert("t", [(2, 0)])
        tx.delete("u", [(2, 7)])
    assert db.read("shown").rows() == [(7, 2.0)]
    assert db.read("spread").rows() == [(2.0,)]
    with pytest.raises(UserError) as refused:
        db.insert("u", [(2, 7)])
    assert refused.value.code == "E010"
    assert "by zero" in refused.value.problem
    assert db.audit().ok


def test_nothing_is_computed_of_rows_that_cancel(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        check_rows_that_cancel(db)


def test_what_duckdb_cannot_plan_with_its_statistics_is_planned_without(open_db, tmp_path):
    when = "CASE WHEN b IS NULL THEN 'x' END"
    with open_db(str(tmp_path / "s")) as db:
        db.sql("CREATE TABLE t (a INT, b INT)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE {when} <> {when} OR a = 3")
        db.sql(f"CREATE MATERIALIZED VIEW w AS SELECT a FROM t WHERE {when} <> {when}")
        for values in ("(1, 2), (2, 3)", "(3, NULL)"):
            db.sql(f"INSERT INTO t VALUES {values}")
            assert db.audit().ok
        assert db.read("v").rows() == [(3,)]
        assert db.read("w").rows() == []
