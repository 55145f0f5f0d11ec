"""A budget bounds what is held between transactions, and changes no answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

import everview as ev
from e2e.shapes import SHAPES, query, shapes_for
from e2e.test_views import World
from everview.runtime.cache.relation_cache import IN_USE_EPOCHS

CHOSEN = ("join", "three_tables", "group", "average", "distinct", "doubles", "union", "global")
BUDGETS = {"nothing": 0, "tiny": 4_000, "small": "40KB", "by default": None}


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(
            size, id=name, marks=pytest.mark.slow if name in ("tiny", "by default") else ()
        )
        for name, size in BUDGETS.items()
    ],
)
def test_any_budget_gives_the_same_answers_and_is_kept(open_db, tmp_path, memory):
    with open_db(tmp_path, memory=memory) as db:
        world = World(db, seed=3)
        world.transact(0)
        for shape in CHOSEN:
            world.view(f"v_{shape}", query(shape, "p"))
        for number in range(1, 6):
            world.transact(number)
            world.check()
            assert db.memory.held <= db.memory.budget
            assert memory is None or db.memory.budget < 50_000
        db.compact()
        assert db.memory.held <= db.memory.budget
        world.transact(7)
        world.check()
        assert (db.memory.held > 0) is (memory != 0)
        assert db.audit().ok


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0, 10_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_view_is_followed_under_a_budget(open_db, tmp_path, shape, memory):
    with open_db(tmp_path, memory=memory) as db:
        if shape not in shapes_for(db.engine.name):
            pytest.skip("only Spark answers it")
        world = World(db, seed=5)
        world.transact(0)
        world.view("v", query(shape, "p"))
        world.view("w", query(shape, "t"))
        for number in range(1, 5):
            world.transact(number)
            world.check()
            assert db.memory.held <= memory


def tables(db, count: int, rows: int) -> None:
    """Tables of one size, each with a view that is looked up by key."""
    for number in range(count):
        db.sql(
            f"CREATE TABLE t{number} (k BIGINT PRIMARY KEY, v BIGINT);"
            f"CREATE VIEW v{number} AS SELECT v, COUNT(*) AS n, MAX(k) AS m"
            f" FROM t{number} GROUP BY v"
        )
        db.insert(f"t{number}", pa.table({"k": range(rows), "v": [k % 50 for k in range(rows)]}))


def held(db) -> set[str]:
    """The tables that are in memory."""
    return {each.name for each in db.status() if each.kind == "table" and each.held}


def test_the_least_recently_used_relations_leave(open_db, tmp_path):
    with open_db(tmp_path, memory=120_000) as db:
        tables(db, 4, 1_000)
        seen = set()
        for number in range(4):
            for turn in range(2 * IN_USE_EPOCHS):
                db.upsert(f"t{number}", [(turn, None), (turn + 500, turn)])
                assert db.memory.held <= 120_000
            assert f"t{number}" in held(db), "what is in use is held"
            seen |= held(db)
            assert db.audit().ok
        assert seen == {"t0", "t1", "t2", "t3"}
        assert "t0" not in held(db), "what nobody used has left"


def test_relations_that_exceed_the_budget_together_do_not_take_turns(open_db, tmp_path):
    """Otherwise every transaction would load each of them."""
    with open_db(tmp_path, memory=64_000) as db:
        tables(db, 4, 1_000)
        for turn in range(5):
            before = held(db)
            with db.transaction() as tx:
                for number in range(4):
                    tx.upsert(f"t{number}", [(turn, None)])
            assert turn == 0 or held(db) == before
            assert db.memory.held <= 64_000
        assert set() < held(db) < {"t0", "t1", "t2", "t3"}
        assert db.audit().ok


def test_a_relation_that_does_not_fit_is_not_loaded(open_db, tmp_path):
    with open_db(tmp_path, memory=30_000) as db:
        tables(db, 1, 5_000)
        for turn in range(3):
            db.upsert("t0", [(turn, None), (9_000 + turn, 3)])
            db.delete("t0", [(4_000 + turn, turn)])
        assert held(db) == set()
        assert db.memory.held <= 30_000
        assert db.audit().ok
        assert "in the driver" in db.explain("v0", "program")


def test_what_grows_beyond_the_budget_leaves(open_db, tmp_path):
    with open_db(tmp_path, memory=60_000) as db:
        tables(db, 1, 100)
        db.upsert("t0", [(1, None)])
        assert held(db) == {"t0"}
        for turn in range(1, 6):
            rows = range(turn * 1_000, turn * 1_000 + 900)
            db.insert("t0", pa.table({"k": rows, "v": rows}))
            assert db.memory.held <= 60_000
        db.upsert("t0", [(2, None)])
        assert held(db) == set()
        assert db.audit().ok


@pytest.mark.parametrize("memory", [0, 60_000, None])
def test_a_recursion_is_followed_under_any_budget(open_db, tmp_path, memory):
    with open_db(tmp_path, memory=memory) as db:
        db.datalog(
            ".decl edge(x: number, y: number)  .input edge\n"
            ".decl reach(x: number, y: number)  .output reach\n"
            "reach(x, y) :- edge(x, y).\n"
            "reach(x, z) :- reach(x, y), edge(y, z).",
            {"edge": [(1, 2), (2, 3), (3, 1), (3, 4)]},
        )
        db.delete("edge", [(3, 1)])
        assert db.audit().ok
        db.insert("edge", [(4, 1), (5, 5)])
        assert db.audit().ok
        assert db.memory.held <= db.memory.budget
        assert len(db.read("reach").rows()) == 17


def test_after_a_refused_transaction_the_budget_is_still_there(open_db, tmp_path):
    with open_db(tmp_path, memory=50_000) as db:
        tables(db, 1, 10)
        for turn in range(3):
            with pytest.raises(ev.UserError):
                db.insert("t0", [(turn, 1)])
            db.upsert("t0", [(turn, 7)])
            assert (db.memory.budget, db.memory.given) == (50_000, True)
            assert db.memory.held <= 50_000
        assert db.audit().ok


@pytest.mark.parametrize(
    "memory", [-1, "-1", "2 gigs", "", "GB", "1.5", 1.5, True, b"2GB", "nan", "1e9", [2], "２GB"]
)
def test_what_is_no_size_is_refused_with_a_remedy(tmp_path, memory):
    with pytest.raises(ev.UserError) as caught:
        ev.open(str(tmp_path), engine="duckdb", memory=memory)
    assert caught.value.code == "X002"
    assert "memory" in caught.value.problem
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("memory", "bytes_"),
    [
        (0, 0),
        ("0", 0),
        ("512MB", 512 << 20),
        ("2GB", 2 << 30),
        (" 2 gb ", 2 << 30),
        ("1.5GiB", 3 << 29),
        ("64k", 64 << 10),
        (123_456, 123_456),
    ],
)
def test_a_size_is_bytes_or_text(tmp_path, memory, bytes_):
    with ev.open(str(tmp_path), engine="duckdb", memory=memory) as db:
        assert (db.memory.budget, db.memory.held, db.memory.given) == (bytes_, 0, True)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        assert db.memory.budget > 0
        assert not db.memory.given
