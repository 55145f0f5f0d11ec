"""Every construct that is maintained, against recomputation after every transaction."""

from __future__ import annotations

import dataclasses
from collections import Counter

import duckdb
import pytest

import everview as ev
from e2e.constructs import BEYOND_SPARK, CONSTRUCTS
from e2e.test_views import World
from everview.analysis.sign import Sign, sign
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.duckdb.engine import DuckDBEngine
from everview.expr.types import Column
from everview.plan.build import join
from everview.plan.nodes import Plan, Source
from everview.store.manifest import Relation
from everview.store.store import Store


@pytest.fixture
def world(open_db, tmp_path):
    db = open_db(tmp_path / "store")
    yield World(db, seed=5)
    db.close()


SOME = 15
"""How many constructs share a world: one question to Spark is asked for all of them."""
SAMPLED = 3
"""Of so many worlds, one follows each step as a statement in `make test`."""


@pytest.mark.parametrize("first", list(CONSTRUCTS)[::SOME])
def test_every_construct_equals_recomputation_after_every_transaction(world, first):
    world.transact(0)
    start = list(CONSTRUCTS).index(first)
    chosen = list(CONSTRUCTS.items())[start : start + SOME]
    for name, text in chosen:
        world.view(f"v_{name}", text)
    world.check()
    for number in range(1, 5):
        world.transact(number)
        world.check()
    assert world.db.audit().ok


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.slow] * (number % SAMPLED > 0))
        for number, first in enumerate(list(CONSTRUCTS)[::SOME])
    ],
)
def test_every_construct_is_right_where_each_step_is_a_statement(tmp_path, first):
    store = Store.create_or_open(str(tmp_path / "store"))
    with Database(Handle(store, DuckDBEngine(vector_max_rows=-1), store.writer_lock())) as db:
        world = World(db, seed=6)
        world.transact(0)
        start = list(CONSTRUCTS).index(first)
        for name, text in list(CONSTRUCTS.items())[start : start + SOME]:
            world.view(f"v_{name}", text)
        for number in range(1, 4):
            world.transact(number)
        world.check()


def test_what_spark_cannot_say_equals_what_duckdb_answers(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, seed=8)
        for name, text in BEYOND_SPARK.items():
            world.view(f"v_{name}", text)
        for number in range(6):
            world.transact(number)
            t, u = db.read("t").to_arrow(), db.read("u").to_arrow()
            with duckdb.connect() as plain:
                plain.register("t", t)
                plain.register("u", u)
                for name, text in BEYOND_SPARK.items():
                    assert Counter(db.read(f"v_{name}").rows()) == Counter(
                        plain.sql(text).fetchall()
                    )
        world.check()


TIES = (
    "SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS n, SUM(v) OVER (ORDER BY k ROWS 1 PRECEDING) AS z"
)


def test_an_audit_reads_the_text_itself_where_spark_does_not_or_may_answer_otherwise(world):
    world.db.sql(
        f"CREATE VIEW ties AS {TIES} FROM t;"
        "CREATE VIEW every AS SELECT k FROM t WHERE v >= ALL (SELECT v FROM u WHERE u.k = t.k);"
        "CREATE VIEW mixed AS SELECT (SELECT COUNT(u.v) * t.k FROM u) AS n FROM t;"
        "CREATE VIEW beside AS SELECT s, (SELECT COUNT(*) FROM t a WHERE a.s = b.s) AS m, "
        "COUNT(k) AS n FROM t b GROUP BY ALL"
    )
    for number in range(3):
        world.transact(number)
        world.db.insert("t", [(1, "1.00", "a"), (1, "2.00", "b"), (1, "3.00", "c")])
        assert world.db.audit().ok


def test_an_audit_finds_what_is_wrong_with_views_that_it_reads_itself(world, monkeypatch):
    world.db.sql("CREATE VIEW every AS SELECT k FROM t WHERE v >= ALL (SELECT v FROM u)")
    world.db.insert("t", [(1, "1.00", "a")])
    manifest = world.db.store.latest()
    kept = {n: r for n, r in manifest.relations.items() if n != "every"}
    damaged = dataclasses.replace(manifest, relations={**kept, "every": Relation("every", ())})
    monkeypatch.setattr(type(world.db.store), "latest", lambda self: damaged)
    (found,) = world.db.audit("every")
    assert found.missing == ((1,),)


@pytest.mark.parametrize("function", ["kurtosis", "skewness"])
def test_an_aggregate_that_only_spark_answers_is_refused_by_name(tmp_path, function):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, v INT)")
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW m AS SELECT k, {function}(v) AS m FROM t GROUP BY k")
        assert caught.value.code == "E011"
        assert function in caught.value.problem


@pytest.mark.spark
def test_distinct_values_are_listed_beside_others_that_are_counted(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (k INT, s STRING)")
        db.sql("INSERT INTO t VALUES (1, 'b'), (1, 'a'), (1, 'b'), (2, NULL), (3, 'z')")
        listed = "LISTAGG(DISTINCT s, ',') WITHIN GROUP (ORDER BY s{})"
        columns = f"COUNT(DISTINCT s) AS n, {listed.format('')} AS l, {listed.format(' DESC')} AS m"
        db.sql(f"CREATE VIEW v AS SELECT k, {columns} FROM t GROUP BY k")
        assert db.audit().ok
        db.sql("INSERT INTO t VALUES (1, 'c'), (2, 'x'), (4, NULL); DELETE FROM t WHERE k = 3")
        rows = [(1, 3, "a,b,c", "c,b,a"), (2, 1, "x", "x"), (4, 0, None, None)]
        assert Counter(db.read("v").rows()) == Counter(rows)
        assert db.audit().ok


def test_an_audit_does_not_ask_for_what_nobody_reads(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 2), (NULL, 3)")
        inner = "SELECT b, TRY_DIVIDE(a, a - 1) AS unread FROM t"
        db.sql(f"CREATE VIEW v AS SELECT q.b FROM ({inner}) AS q JOIN t AS r ON q.b = r.b")
        assert db.audit().ok
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW w AS SELECT q.unread FROM ({inner}) AS q")
        assert caught.value.code == "E011"


def test_the_greatest_value_follows_inserts_without_reading_the_group(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, k INT, v INT)")
        db.sql("CREATE VIEW m AS SELECT k, MAX(v) AS v, COUNT(*) AS n FROM t GROUP BY k")
        db.insert("t", [(i, 1, i) for i in range(50)])

        def rows_read() -> list[str]:
            fetches = [
                line for line in db.explain("m", "program").splitlines() if "fetch t__by_k" in line
            ]
            return [line.partition("-- ")[2] for line in fetches]

        db.insert("t", [(50, 1, 70), (51, 2, None)])
        assert rows_read() == ["0 rows last time, not asked for"]
        assert sorted(db.read("m").rows()) == [(1, 70, 51), (2, None, 1)]
        db.delete("t", [(50, 1, 70)])
        assert rows_read() == ["51 rows last time, from memory"]
        assert sorted(db.read("m").rows()) == [(1, 49, 50), (2, None, 1)]
        db.delete("t", [(51, 2, None)])
        assert db.read("m").rows() == [(1, 49, 50)]


@pytest.mark.parametrize("query", ["v DESC, id LIMIT 3", "v DESC, id LIMIT 2 OFFSET 1"])
def test_the_first_rows_follow_a_change_without_reading_the_others(open_db, tmp_path, query):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        db.sql(f"CREATE VIEW m AS SELECT id, v FROM t ORDER BY {query}")
        db.insert("t", [(i, i) for i in range(50)])

        def rows_read() -> list[str]:
            fetches = [s for s in db.explain("m", "program").splitlines() if "fetch t (" in s]
            return [s.partition("-- ")[2] for s in fetches if "whole" in s]

        db.insert("t", [(50, 70), (51, None), (52, 1)])
        db.sql("DELETE FROM t WHERE id < 20")
        db.sql("UPDATE t SET v = v + 30 WHERE id = 48")
        assert rows_read() == [""]
        assert db.audit().ok
        db.sql("DELETE FROM t WHERE id = 50")
        assert rows_read() != [""]
        assert db.audit().ok


def test_the_sign_of_many_joins_is_known_in_time():
    plan: Plan = Source("t", (Column("c0", "int"),))
    for number in range(1, 60):
        plan = join(plan, Source("t", (Column(f"c{number}", "int"),)))
    assert sign(plan) is Sign.POSITIVE
