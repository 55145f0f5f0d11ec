"""Random transactions through every shape of view and every pair of shapes, on every engine."""

from __future__ import annotations

import random

import pytest

import everview as ev
from cases import THOROUGH
from e2e.checking import differences
from e2e.shapes import NEEDS_SPARK, SHAPES, query, shapes_for

KEYS = [None, 0, 1, 2, 3]
AMOUNTS = [None, "0.00", "1.25", "-3.10", "7.00"]
WORDS = [None, "", "p", "q", "ß"]


class World:
    """Two tables without keys and one with, and a seeded source of changes."""

    def __init__(self, db, seed: int, *, declare: bool = True) -> None:
        self.db = db
        self.random = random.Random(seed)
        if declare:
            db.sql(
                "CREATE TABLE t (k INT, v DECIMAL(10,2), s STRING);"
                "CREATE TABLE u (k INT, v DECIMAL(10,2), s STRING);"
                "CREATE TABLE p (id BIGINT PRIMARY KEY, k INT, v DECIMAL(10,2), s STRING)"
            )
        self.queries: dict[str, str] = {}

    def view(self, name: str, text: str) -> None:
        self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        self.queries[name] = text

    def row(self):
        pick = self.random.choice
        return (pick(KEYS), pick(AMOUNTS), pick(WORDS))

    def transact(self, number: int) -> None:
        """Insert, delete and update rows of several tables; now and then empty a table."""
        with self.db.transaction() as tx:
            for table in ("t", "u"):
                present = sorted(self.db.read(table).rows(), key=repr)
                if present and number % 4 == 2:
                    tx.delete(table, present)
                    continue
                gone = self.random.sample(present, min(len(present), self.random.randint(0, 3)))
                tx.delete(table, gone)
                tx.insert(table, [self.row() for _ in range(self.random.randint(0, 5))])
                # an update: the same rows again with another amount
                tx.insert(table, [(row[0], "7.00", row[2]) for row in gone[:1]])
            ids = self.random.sample(range(6), 3)
            tx.upsert("p", [(i, *self.row()) for i in ids])

    def check(self) -> None:
        assert differences(self.db, self.queries) == []


def seeds(config_seed: str) -> int:
    return sum(map(ord, config_seed))


@pytest.fixture
def world(open_db, tmp_path, request):
    db = open_db(tmp_path / "store")
    yield World(db, seeds(request.node.name))
    db.close()


ALL = tuple(SHAPES)


@pytest.mark.parametrize("lower", ALL)
def test_a_view_and_some_views_over_it_equal_their_queries(world, lower):
    """Some of the pairs, each shape above as often as the others."""
    start, apart = ALL.index(lower), 16 if world.db.engine.name == "spark" else 10
    uppers = [ALL[(start + step) % len(ALL)] for step in range(0, len(ALL), apart)]
    pairs_hold(world, lower, uppers, 3)


@pytest.mark.parametrize("shape", sorted(NEEDS_SPARK))
def test_what_only_spark_can_answer_is_refused_by_name(tmp_path, shape):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, 0)
        with pytest.raises(ev.UserError) as caught:
            world.view("v", query(shape, "t"))
        assert caught.value.code == "E011"
        assert "soundex" in caught.value.problem


@pytest.mark.slow
@pytest.mark.parametrize("lower", ALL)
def test_a_view_and_every_view_over_it_equal_their_queries(world, lower):
    pairs_hold(world, lower, ALL, 4)


def pairs_hold(world, lower, uppers, transactions) -> None:
    able = shapes_for(world.db.engine.name)
    if lower not in able:
        pytest.skip("refused by the embedded engine")
    world.transact(0)
    world.view("base", query(lower, "t"))
    for upper in (each for each in uppers if each in able):
        world.view(f"over_{upper}", query(upper, "base"))
    world.check()
    for number in range(1, transactions + 1):
        world.transact(number)
        world.check()


def test_views_made_before_any_row_arrives_equal_their_queries(world):
    for shape in shapes_for(world.db.engine.name):
        world.view(f"v_{shape}", query(shape, "p"))
    world.check()
    for number in range(2 if world.db.engine.name == "spark" and not THOROUGH else 4):
        world.transact(number)
        world.check()
    assert world.db.audit().ok
