"""Structured Streaming over `foreachBatch`: few jobs a batch, and every answer right."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview as ev
from e2e.test_jobs import counted_jobs

pytestmark = pytest.mark.spark

ROWS, JOBS = 1_000, 10
"""Rows of a batch, and how many jobs it may start on average."""
SETUP = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, region STRING);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(10,2));
CREATE MATERIALIZED VIEW by_customer AS
  SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW by_region AS
  SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS n
  FROM orders AS o JOIN customers AS c ON c.id = o.customer GROUP BY c.region;
CREATE MATERIALIZED VIEW largest AS
  SELECT id, customer, amount FROM orders ORDER BY amount DESC, id LIMIT 20
"""


def arrived(folder: Path, batches: int) -> None:
    """Files of orders, one for each batch; some amounts and customers are NULL."""
    folder.mkdir()
    for batch in range(batches):
        ids = range(batch * ROWS, (batch + 1) * ROWS)
        orders = {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([None if i % 41 == 0 else i * 7 % 300 for i in ids], pa.int64()),
            "amount": pa.array(map(amount, ids), pa.decimal128(10, 2)),
        }
        pq.write_table(pa.table(orders), folder / f"{batch:03}.parquet")


def amount(number: int) -> Decimal | None:
    """An amount between nothing and a hundred, or NULL."""
    return None if number % 37 == 0 else Decimal(number * 13 % 9973) / 100


@pytest.mark.parametrize("batches", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_batch_of_a_stream_starts_at_most_ten_jobs(spark, tmp_path, batches):
    arrived(tmp_path / "arrivals", batches)
    jobs = []
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql(SETUP)
        db.insert("customers", [(i, f"region {i % 9}" if i % 10 else None) for i in range(300)])

        def take(rows, batch):
            with counted_jobs(spark) as started, db.transaction() as tx:
                tx.insert("orders", rows)
            jobs.append(started[0])

        stream = spark.readStream.schema("id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
        query = (
            stream.option("maxFilesPerTrigger", 1)
            .parquet(str(tmp_path / "arrivals"))
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert len(jobs) == batches
        assert len(db.read("orders").rows()) == batches * ROWS
        assert db.audit().ok
        assert min(jobs) >= 1, "nothing was counted"
        assert sum(jobs) <= JOBS * batches, f"jobs by batch: {jobs}"
