"""An engine's gear may never change an answer."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

from e2e.every_type import COLUMNS, NAMES, NULLS, ROW
from e2e.shapes import query
from e2e.test_engines import check_rows_that_cancel
from e2e.test_views import World
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.spark import compaction, fetch, frames, loop_following, recursion
from everview.engines.spark.engine import SparkEngine
from everview.engines.spark.relations import as_frame
from everview.errors import UserError
from everview.store import segments
from everview.store.store import Store

pytestmark = pytest.mark.spark

GEARS = {
    "slices read by the driver": {"memory": 0},
    "slices fetched by Spark jobs": {"driver_bytes": -1, "memory": 0},
    "slices fetched by jobs where the files left are large": {
        "driver_bytes": 2_500,
        "memory": 0,
    },
    "Spark SQL throughout": {"large_rows": -1},
}
FORCED = (
    (recursion, "ITERATION_ROWS", 0),
    (recursion, "REACHED_ROWS", 0),
    (loop_following, "FOLLOWED_ROWS", -1),
    (compaction, "EXECUTORS_MIN_ROWS", 0),
    (frames, "COLLECTED_MAX_ROWS", 0),
)
"""From how many rows on executors do something, set to none."""
CHOSEN = ("join", "three_tables", "union", "average", "global", "doubles", "spark_only", "cte")


def opened(path, spark, **settings) -> Database:
    store = Store.create_or_open(str(path))
    return Database(Handle(store, SparkEngine(spark, **settings), store.writer_lock()))


@pytest.mark.parametrize(
    ("gear", "files"),
    [
        *(pytest.param(gear, "one file", marks=pytest.mark.slow) for gear in GEARS),
        *((gear, "own") for gear in GEARS),
    ],
)
def test_every_gear_gives_the_answers_of_plain_spark_sql(spark, tmp_path, request, gear, files):
    if files == "own":
        request.getfixturevalue("own_files")
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 5)
        patch.setattr(fetch, "TASK_BYTES", 400)
    with opened(tmp_path, spark, **GEARS[gear]) as db:
        world = World(db, seed=7)
        world.transact(0)
        for shape in CHOSEN if gear.startswith("slices") else CHOSEN[1:5]:
            world.view(f"v_{shape}", query(shape, "p"))
        for number in range(1, 3):
            world.transact(number)
            world.check()


def test_answers_are_the_same_where_executors_do_all_that_they_may(spark, tmp_path, monkeypatch):
    for module, name, value in FORCED:
        monkeypatch.setattr(module, name, value)
    edges = {(n, n // 2) for n in range(1, 9)}
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql("CREATE TABLE e (a INT, b INT, PRIMARY KEY (a, b))")
        db.insert("e", sorted(edges))
        db.sql("CREATE VIEW n AS SELECT b, COUNT(*) AS n FROM e GROUP BY b")
        db.sql(
            "CREATE VIEW r AS WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e UNION "
            "SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT a, b FROM r"
        )
        with db.transaction() as tx:
            tx.upsert("e", spark.createDataFrame([(0, 8), (8, 4)], "a INT, b INT"))
            tx.delete("e", keys=spark.createDataFrame([(5, 2)], "a INT, b INT"))
        db.compact()
        edges = (edges | {(0, 8)}) - {(5, 2)}
        reached = set(edges)
        while more := {(a, d) for a, b in reached for c, d in edges if b == c} - reached:
            reached |= more
        assert sorted(db.read("e").rows()) == sorted(edges)
        assert Counter(db.read("n").rows()) == Counter(Counter(b for _, b in edges).items())
        assert sorted(db.read("r").rows()) == sorted(reached)


@pytest.mark.parametrize("gear", GEARS)
def test_no_gear_computes_anything_of_rows_that_cancel(spark, tmp_path, gear):
    with opened(tmp_path, spark, **GEARS[gear]) as db:
        check_rows_that_cancel(db)


def test_gears_can_change_from_one_transaction_to_the_next(spark, tmp_path):
    with opened(tmp_path, spark) as db:
        world = World(db, seed=11)
        for shape in ("group", "average", "doubles", "distinct"):
            world.view(f"v_{shape}", query(shape, "t"))
        world.transact(0)
        settings = [{"large_rows": -1}, {}, {"driver_bytes": -1, "memory": 0}, {}]
        queries, seed = world.queries, 12
    for change in settings:
        with opened(tmp_path, spark, **change) as db:
            world = World(db, seed, declare=False)
            world.queries = queries
            seed += 1
            world.transact(1)
            world.check()


def test_what_executors_write_and_what_the_driver_writes_is_read_alike(spark, tmp_path):
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {COLUMNS})")
        db.sql(f"CREATE VIEW v AS SELECT {NAMES}, COUNT(*) AS n FROM t GROUP BY {NAMES}")
        db.insert("t", [(1, *ROW), (2, *ROW), (3, *NULLS)])
        assert Counter(db.read("v").rows()) == Counter([(*ROW, 2), (*NULLS, 1)])
    with opened(tmp_path, spark) as db:
        db.delete("t", [(1, *ROW)])
        db.insert("t", [(4, *NULLS)])
        assert Counter(db.read("v").rows()) == Counter([(*ROW, 1), (*NULLS, 2)])
        assert len(db.changes("v").rows()) == 6
        assert db.audit().ok


@pytest.mark.parametrize("large_rows", [-1, 1000])
def test_long_decimals_are_summed_with_all_their_digits(spark, tmp_path, large_rows):
    with opened(tmp_path, spark, large_rows=large_rows) as db:
        db.sql("CREATE TABLE t (x DECIMAL(28,8), y DECIMAL(36,10), z DECIMAL(38,30))")
        db.sql("CREATE VIEW v AS SELECT SUM(x) AS x, SUM(y) AS y, SUM(DISTINCT z) AS z FROM t")
        row = ("1.12345678", "1.0123456789", "1.012345678901234567890123456789")
        db.insert("t", [row, row, row, (None, None, "2.000000000000000000000000000001")])
        db.delete("t", [row])
        assert db.read("v").rows() == [
            (
                Decimal("2.24691356"),
                Decimal("2.0246913578"),
                Decimal("3.012345678901234567890123456790"),
            )
        ]
        assert db.audit().ok


@pytest.mark.parametrize("gear", GEARS)
def test_what_is_refused_is_refused_in_every_gear_with_the_rows_at_fault(spark, tmp_path, gear):
    with opened(tmp_path, spark, **GEARS[gear]) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL); CREATE TABLE u (a INT)")
        db.sql("CREATE VIEW n AS SELECT COUNT(*) AS n FROM t")
        db.insert("t", [(1, 1), (2, 2)])
        epoch = db.epoch
        for table, deleted, inserted, code in (
            ("t", [], [(1, 7)], "T010"),
            ("t", [(2, 2)], [(3, None)], "T012"),
            ("u", [(5,)], [], "T011"),
        ):
            tx = db.transaction()
            tx.delete(table, deleted)
            tx.insert(table, inserted)
            with pytest.raises(UserError) as caught:
                tx.commit()
            assert caught.value.code == code
        assert db.epoch == epoch
        assert db.read("n").rows() == [(2,)]


def test_rows_after_a_piece_without_any_reach_spark(spark):
    piece = pa.table({"k": pa.array([1, 2], pa.int32())})
    rows = pa.concat_tables([piece, piece.slice(0, 0), piece.slice(0, 1)])
    assert sorted(row.k for row in as_frame(spark, rows).collect()) == [1, 1, 2]


def test_rows_without_columns_are_counted(spark, tmp_path):
    """A view may need to know only how many rows there are of what it reads."""
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql("CREATE TABLE t (a INT); CREATE TABLE u (s STRING, c FLOAT)")
        db.sql(
            "CREATE VIEW v AS SELECT DENSE_RANK() OVER (PARTITION BY q.r ORDER BY q.r) AS w "
            "FROM (SELECT TRY_CAST(u.s AS DECIMAL(10, 2)) AS r FROM u RIGHT JOIN t ON u.c > 1) q "
            "WHERE q.r IS NULL"
        )
        assert db.read("v").rows() == []
        db.sql("INSERT INTO t VALUES (1), (1), (2); INSERT INTO u VALUES ('7', 2.0), ('x', 3.0)")
        assert db.audit().ok
        db.sql("DELETE FROM u WHERE s = 'x'")
        assert db.audit().ok
