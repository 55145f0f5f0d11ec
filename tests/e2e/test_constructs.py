"""Every construct that is maintained, against recomputation after every transaction."""

from __future__ import annotations

import pytest

import everview as ev
from e2e.constructs import CONSTRUCTS
from e2e.test_views import World


@pytest.fixture
def world(open_db, tmp_path):
    db = open_db(tmp_path / "store")
    yield World(db, seed=5)
    db.close()


SOME = 15
"""How many constructs share a world: one question to Spark is asked for all of them."""


@pytest.mark.parametrize("first", list(CONSTRUCTS)[::SOME])
def test_every_construct_equals_recomputation_after_every_transaction(world, first):
    world.transact(0)
    start = list(CONSTRUCTS).index(first)
    for name, text in list(CONSTRUCTS.items())[start : start + SOME]:
        world.view(name, text)
    world.check()
    for number in range(1, 5):
        world.transact(number)
        world.check()
    assert world.db.audit().ok


def test_a_join_condition_of_a_subquery_may_read_the_query_around_it(tmp_path):
    """Spark refuses these, so the expected rows stand here."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, v INT); CREATE TABLE u (k INT, v INT)")
        db.sql(
            "CREATE VIEW inner_on AS SELECT k FROM t WHERE EXISTS "
            "(SELECT 1 FROM u a JOIN u b ON a.k = b.k AND b.v = t.v);"
            "CREATE VIEW left_on AS SELECT k, (SELECT COUNT(b.k) FROM u a "
            "LEFT JOIN u b ON a.k = b.k AND b.v = t.v) AS n FROM t"
        )
        db.insert("t", [(1, 5), (2, 6), (None, 7)])
        db.insert("u", [(1, 5), (1, 6), (None, 7)])
        assert sorted(db.read("inner_on").rows()) == [(1,), (2,)]
        assert sorted(db.read("left_on").rows(), key=str) == [(1, 2), (2, 2), (None, 0)]
        db.delete("u", [(1, 6)])
        assert db.read("inner_on").rows() == [(1,)]
        assert sorted(db.read("left_on").rows(), key=str) == [(1, 1), (2, 0), (None, 0)]


@pytest.mark.parametrize("function", ["kurtosis", "skewness"])
def test_an_aggregate_that_only_spark_answers_is_refused_by_name(tmp_path, function):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, v INT)")
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW m AS SELECT k, {function}(v) AS m FROM t GROUP BY k")
        assert caught.value.code == "E011"
        assert function in caught.value.problem


def test_the_greatest_value_follows_inserts_without_reading_the_group(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, k INT, v INT)")
        db.sql("CREATE VIEW m AS SELECT k, MAX(v) AS v, COUNT(*) AS n FROM t GROUP BY k")
        db.insert("t", [(i, 1, i) for i in range(50)])

        def rows_read() -> list[str]:
            fetches = [line for line in db.explain("m").splitlines() if "fetch t__by_k" in line]
            return [line.partition("-- ")[2] for line in fetches]

        db.insert("t", [(50, 1, 70), (51, 2, None)])
        assert rows_read() == ["0 rows last time"]
        assert sorted(db.read("m").rows()) == [(1, 70, 51), (2, None, 1)]
        db.delete("t", [(50, 1, 70)])
        assert rows_read() == ["51 rows last time"]
        assert sorted(db.read("m").rows()) == [(1, 49, 50), (2, None, 1)]
        db.delete("t", [(51, 2, None)])
        assert db.read("m").rows() == [(1, 49, 50)]
