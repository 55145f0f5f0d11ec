"""How many Spark jobs a transaction starts, counted by Spark's own status tracker."""

from __future__ import annotations

from contextlib import contextmanager
from uuid import uuid4

import pytest

from e2e.test_gears import opened
from everview.database.cost.choose import Choice

pytestmark = pytest.mark.spark


@contextmanager
def counted_jobs(spark):
    """The number of jobs started inside the block, as a list of one number."""
    group, found = f"counted {uuid4().hex}", [0]
    context = spark.sparkContext
    context.setJobGroup(group, group)
    try:
        yield found
    finally:
        found[0] = len(context.statusTracker().getJobIdsForGroup(group))
        context.setLocalProperty("spark.jobGroup.id", None)


def shop(db) -> None:
    db.sql(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT);"
        "CREATE TABLE lines (order_id BIGINT, line INT, amount DECIMAL(10,2),"
        " PRIMARY KEY (order_id, line));"
        "CREATE MATERIALIZED VIEW revenue AS"
        " SELECT o.customer, SUM(l.amount) AS total, COUNT(*) AS n"
        " FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.customer"
    )
    with db.transaction() as tx:
        tx.insert("orders", [(i, i % 7) for i in range(200)])
        tx.insert("lines", [(i, j, "1.50") for i in range(200) for j in range(3)])


def test_a_hundred_rows_under_a_join_and_group_view_start_at_most_three_jobs(
    spark, tmp_path, own_files
):
    """Every slice by Spark: no file is small enough for the driver."""
    with opened(tmp_path, spark, driver_bytes=-1, memory=0) as db:
        shop(db)
        with counted_jobs(spark) as jobs, db.transaction() as tx:
            tx.insert("lines", [(i, 9, "2.00") for i in range(100)])
        assert 1 <= jobs[0] <= 3
        with counted_jobs(spark) as jobs, db.transaction() as tx:
            tx.insert("orders", [(i, 1) for i in range(1000, 1050)])
            tx.delete("orders", [(i, i % 7) for i in range(50)])
        assert 1 <= jobs[0] <= 3
        with counted_jobs(spark) as jobs:
            db.upsert("orders", [(i, 3) for i in range(60, 160)])
        assert 1 <= jobs[0] <= 3
        assert db.audit().ok


def test_few_rows_that_are_no_parquet_are_read_without_any_job(spark, tmp_path):
    with opened(tmp_path, spark, driver_bytes=-1, memory=0) as db:
        db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT)")
        db.insert("orders", [(i, i % 7) for i in range(200)])
        with counted_jobs(spark) as jobs:
            db.upsert("orders", [(i, 3) for i in range(60, 160)])
        assert jobs[0] == 0
        assert sorted(db.read("orders").rows()) == [
            (i, 3 if 60 <= i < 160 else i % 7) for i in range(200)
        ]


def test_small_files_are_read_without_any_job(spark, tmp_path):
    with opened(tmp_path, spark) as db:
        shop(db)
        with counted_jobs(spark) as jobs, db.transaction() as tx:
            tx.insert("lines", [(i, 9, "2.00") for i in range(100)])
        assert jobs[0] == 0


def test_a_transaction_that_no_view_reads_runs_no_program(spark, tmp_path):
    with opened(tmp_path, spark, driver_bytes=-1, memory=0) as db:
        shop(db)
        db.sql("CREATE TABLE notes (text STRING)")
        with counted_jobs(spark) as jobs:
            db.insert("notes", [("hello",)])
        assert jobs[0] == 0


def test_a_hundred_rows_under_all_views_of_the_demo_start_at_most_ten_jobs(
    spark, tmp_path, own_files
):
    from demo.catalog import TABLES, VIEWS
    from demo.shop import apply
    from demo.trade import Shop

    with opened(tmp_path, spark, driver_bytes=-1, memory=0) as db:
        trading = Shop(2_000, seed=3)
        for name, rows in trading.tables().items():
            db.sql(f"CREATE TABLE {name} ({TABLES[name]})")
            db.insert(name, rows)
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for number in range(2):
            changes = trading.trade(100)
            with counted_jobs(spark) as jobs:
                apply(db, changes, number)
            assert 1 <= jobs[0] <= 10


SKEWED = "CASE WHEN id % 10 = 0 THEN CAST(id AS BIGINT) ELSE CAST(1 AS BIGINT) END"
LARGE_VIEWS = {
    "by_customer": "SELECT customer, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY customer",
    "joined": "SELECT c.region, COUNT(*) AS n FROM orders o JOIN customers c ON c.id = o.customer"
    " GROUP BY c.region",
    "often": "SELECT o.id, c.region FROM orders o JOIN customers c ON c.id = o.customer"
    " WHERE o.id % 7 = 0",
    "latest": "SELECT customer, MAX(id) AS id FROM orders GROUP BY customer",
}


@pytest.mark.parametrize("way", ["recompute", pytest.param("incremental", marks=pytest.mark.slow)])
def test_a_large_frame_starts_four_jobs_and_two_more_for_each_relation_written(
    spark, tmp_path, way
):
    """Nine rows of ten have one key."""
    with opened(tmp_path, spark, large_rows=-1) as db:
        db.sql(
            "CREATE TABLE customers (id BIGINT PRIMARY KEY, region STRING);"
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(10,2))"
        )
        db.insert("customers", [(i, f"region {i % 5}") for i in range(500)])
        for name, query in LARGE_VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.handle.maintainer.chooser = lambda *_: Choice(way)
        rows = spark.range(5_000).selectExpr(
            "id", f"{SKEWED} % 1000 AS customer", "CAST(id % 97 AS DECIMAL(10,2)) AS amount"
        )
        before = db.store.latest()
        with counted_jobs(spark) as jobs:
            db.insert("orders", rows)
        known = {each.path for each in before.files}
        written = [
            name
            for name, relation in db.store.latest().relations.items()
            if {each.path for each in relation.files} - known
        ]
        assert len(written) > len(LARGE_VIEWS)
        assert jobs[0] <= 4 + 2 * len(written), written
        assert db.audit().ok
