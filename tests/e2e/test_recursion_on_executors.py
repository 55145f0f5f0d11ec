"""A recursion on Spark gives the same rows wherever its iterations run, and leaves no files."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from e2e.test_gears import opened
from e2e.test_jobs import counted_jobs
from e2e.test_recursion import VIEWS, change, expected
from everview.engines.spark import actions, loop_following, recursion
from everview.store.retention import retire

pytestmark = pytest.mark.spark

EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (2, 3)]
PATH = (
    "WITH RECURSIVE t(n) AS (SELECT a FROM e WHERE a = 0 UNION SELECT e.b FROM t "
    "JOIN e ON t.n = e.a) SELECT n FROM t"
)
KEYS = (
    "WITH RECURSIVE t(n) AS (SELECT a FROM e WHERE b IS NULL UNION SELECT e.b FROM t "
    "JOIN e ON t.n <=> e.a) SELECT n FROM t"
)


@pytest.mark.parametrize(
    ("iteration_rows", "reached_rows", "views"),
    [
        (0, 0, ("reach", "ways")),
        (4, 10, ("squared", "odd")),
        pytest.param(500_000, 3, ("allowed", "counted"), marks=pytest.mark.slow),
    ],
    ids=["all on executors", "some", "few added and many reached"],
)
def test_iterations_on_executors_reach_what_python_does(
    spark, tmp_path, monkeypatch, iteration_rows, reached_rows, views
):
    monkeypatch.setattr(recursion, "ITERATION_ROWS", iteration_rows)
    monkeypatch.setattr(recursion, "REACHED_ROWS", reached_rows)
    monkeypatch.setattr(loop_following, "FOLLOWED_ROWS", -1)
    rng = random.Random(iteration_rows + reached_rows)
    e, f = Counter(EDGES), Counter[tuple[int, int]]()
    with opened(tmp_path, spark, large_rows=-1) as db:
        declare(db)
        for name in views:
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        gone, came = change(rng, e, 9)
        with db.transaction() as tx:
            tx.delete("e", gone)
            tx.insert("e", [*came, (0, 1)])
            tx.insert("f", [(1, 2)])
        e[0, 1] += 1
        f[1, 2] += 1
        wanted = expected(e, f)
        for name in views:
            assert Counter(db.read(name).rows()) == wanted[name], name
    assert scratch_files(tmp_path) == []


@pytest.mark.parametrize("kind", ["files", "checkpoints"])
def test_rows_with_nulls_come_once_on_executors(spark, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(recursion, "ITERATION_ROWS", 0)
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        db.insert("e", [(0, 1), (1, None), (None, 0), (None, None)])
        if kind == "files":
            db.sql(f"CREATE MATERIALIZED VIEW v AS {KEYS}")
        rows = db.read("v").rows() if kind == "files" else db.sql(KEYS).rows()
        assert Counter(rows) == Counter([(0,), (1,), (None,)])


def test_a_large_change_that_moves_little_of_a_recursion_is_followed(spark, tmp_path):
    with opened(tmp_path, spark, large_rows=-1) as db:
        declare(db)
        db.sql(f"CREATE MATERIALIZED VIEW reach AS {VIEWS['reach']}")
        db.sql(f"CREATE MATERIALIZED VIEW counted AS {VIEWS['counted']}")
        e = Counter(EDGES)
        for gone, came in (([(2, 0)], [(3, 4)]), ([(2, 3), (2, 3)], [(4, 0), (0, None)])):
            with db.transaction() as tx:
                tx.delete("e", gone)
                tx.insert("e", came)
            e.subtract(gone)
            e.update(came)
            assert db.store.read(db.epoch).note["iterations"]
            assert db.audit().ok


def test_a_change_that_moves_too_much_of_a_recursion_is_recomputed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_following, "FOLLOWED_ROWS", 1)
    with opened(tmp_path, spark, large_rows=-1) as db:
        declare(db)
        db.sql(f"CREATE MATERIALIZED VIEW reach AS {VIEWS['reach']}")
        with db.transaction() as tx:
            tx.delete("e", [(2, 0)])
            tx.insert("e", [(3, 4), (4, 5), (5, 6)])
        assert not db.store.read(db.epoch).note.get("iterations")
        assert db.audit().ok


def test_an_iteration_is_few_queries_and_what_is_killed_leaves_nothing_that_counts(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(recursion, "ITERATION_ROWS", 0)
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        db.insert("e", [(n, n + 1) for n in range(6)])
        pins = []
        write = actions.write_sorted

        def noted(frame, path, sort, **how):
            if "loop-iterations" in path:
                pins.append(path)
            return write(frame, path, sort, **how)

        monkeypatch.setattr(actions, "write_sorted", noted)
        with counted_jobs(spark) as jobs:
            db.sql(f"CREATE MATERIALIZED VIEW v AS {PATH}")
        assert db.audit().ok
        iterations = 8
        assert len(pins) == iterations
        assert jobs[0] <= 4 * iterations + 20

        def killed(frame, path, sort, **how):
            if len(pins) > iterations + 2:
                raise KeyboardInterrupt
            return noted(frame, path, sort, **how)

        monkeypatch.setattr(actions, "write_sorted", killed)
        monkeypatch.setattr(db.store.folder.__class__, "remove", lambda *_: None)
        epoch = db.epoch
        with pytest.raises(KeyboardInterrupt):
            db.sql(f"CREATE MATERIALIZED VIEW w AS {PATH.replace('a = 0', 'a = 1')}")
        assert scratch_files(tmp_path)
        assert db.epoch == epoch
        monkeypatch.undo()
        assert db.audit().ok
        db.insert("e", [(9, 9)])
        retire(db.store, 1)
        assert scratch_files(tmp_path) == []
        assert db.audit().ok


def declare(db) -> None:
    """Two tables of edges, one with a cycle and a row that is there twice."""
    db.sql("CREATE TABLE e (a INT, b INT)")
    db.sql("CREATE TABLE f (a INT, b INT)")
    db.insert("e", EDGES)


def scratch_files(path: Path) -> list[Path]:
    """What is left of iterations."""
    return [each for each in path.rglob("*") if each.is_file() and "loop-iterations" in str(each)]
