"""Every construct that is maintained, against recomputation after every transaction."""

from __future__ import annotations

from itertools import islice

import pytest

import everview as ev
from e2e.constructs import CONSTRUCTS
from e2e.test_views import World

TOGETHER = 17
"""So many constructs are maintained in one store."""


@pytest.fixture
def world(open_db, tmp_path):
    db = open_db(tmp_path / "store")
    yield World(db, seed=5)
    db.close()


@pytest.mark.parametrize("first", range(0, len(CONSTRUCTS), TOGETHER))
def test_every_construct_equals_recomputation_after_every_transaction(world, first):
    world.transact(0)
    for name, text in islice(CONSTRUCTS.items(), first, first + TOGETHER):
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
