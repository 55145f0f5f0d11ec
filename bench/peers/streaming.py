"""Spark Structured Streaming, update mode, on the two views that it can express so.

Lines come as a stream of files with weights, and sums are of weights times values; orders are a
static table, so the join is one of a stream with a table. Checkpoints are on disk.

python -m bench.peers.streaming FOLDER
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.peers.protocol import GROUPS, Batch, Task

_REVENUE = "SUM(w * l_extendedprice * (100 - l_discount)) AS revenue, SUM(w) AS n"
VIEWS = {
    "line_totals": f"""
        SELECT l_returnflag, l_linestatus, SUM(w * l_quantity) AS quantity,
            SUM(w * l_extendedprice) AS price, {_REVENUE}
        FROM lineitem WHERE l_shipdate <= 19980902 GROUP BY l_returnflag, l_linestatus""",
    "by_customer": f"""
        SELECT o_custkey, {_REVENUE}
        FROM lineitem JOIN orders ON o_orderkey = l_orderkey GROUP BY o_custkey""",
}


def main(folder: str) -> None:
    """Two streaming queries over one folder of files."""
    task = Task(Path(folder))
    with TemporaryDirectory() as scratch:
        lines = Path(scratch) / "lines"
        lines.mkdir()
        session = _session()
        found: dict[str, dict[Any, Any]] = {name: {} for name in VIEWS}
        queries: list[Any] = []

        def give(file: Path, name: str) -> None:
            """A file appears whole, under a name that the stream has not seen."""
            hidden = lines / f"_{name}"
            shutil.copyfile(file, hidden)
            os.rename(hidden, lines / f"{name}.parquet")
            for query in queries:
                query.processAllAvailable()

        def load() -> None:
            rows = pq.read_table(task.table("lineitem"))
            weighted = rows.append_column("w", pa.array([1] * rows.num_rows, pa.int32()))
            first = Path(scratch) / "first.parquet"
            pq.write_table(weighted, first)
            session.read.parquet(str(task.table("orders"))).createOrReplaceTempView("orders")
            schema = session.read.parquet(str(first)).schema
            stream = session.readStream.schema(schema).parquet(str(lines))
            stream.createOrReplaceTempView("lineitem")
            queries.extend(_started(session, name, scratch, found[name]) for name in VIEWS)
            give(first, "0")

        def apply(batch: Batch) -> None:
            give(batch.file, str(batch.number))

        def answers() -> dict[str, Any]:
            return {name: [r for r in rows.values() if r[-1]] for name, rows in found.items()}

        task.run("streaming", load, lambda batch: batch, apply, answers)
        for query in queries:
            query.stop()
        session.stop()


def _session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").appName("streaming")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _started(session: SparkSession, name: str, scratch: str, found: dict[Any, Any]) -> Any:
    """A query whose changed groups are taken over by the driver, micro-batch by micro-batch."""

    def take(changed: DataFrame, _: int) -> None:
        columns = [column.to_pylist() for column in changed.toArrow().columns]
        for row in zip(*columns, strict=True):
            found[row[: GROUPS[name]]] = row

    writer = session.sql(VIEWS[name]).writeStream.outputMode("update").foreachBatch(take)
    return writer.option("checkpointLocation", f"{scratch}/{name}").start()


if __name__ == "__main__":
    main(*sys.argv[1:])
