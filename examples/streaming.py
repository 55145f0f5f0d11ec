"""Orders that arrive as files, read by Structured Streaming, under three views."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from everview.database.database import Database
from examples.common import DATA, database, program, proved, show

NAME = "streaming"
ARRIVALS = DATA / NAME / "arrivals"
COLUMNS = "id BIGINT, day DATE, customer STRING, amount DECIMAL(10,2)"


def main(engine: str) -> None:
    """Two files arrive and are read; the stream stops; another arrives; then all come again."""
    spark = SparkSession.builder.appName(NAME).getOrCreate()
    with TemporaryDirectory() as scratch, database(engine) as db:
        db.sql(program(NAME))
        folder = Path(scratch)
        for names in (("1.csv", "2.csv"), ("3.csv",)):
            for name in names:
                _arrive(folder / "arrivals", name)
            follow(db, spark, folder)
            show(f"after {' and '.join(names)}, by day:", _plain(db.read("daily").rows()))
            show("best customers:", _plain(db.read("best").rows()))
        show("batches sent again:", follow(db, spark, folder, "another checkpoint"))
        proved(db)


def follow(
    db: Database, spark: SparkSession, folder: Path, checkpoint: str = "checkpoint"
) -> list[tuple[int]]:
    """Read the files that have arrived since the last time, each as a batch.

    Which of the batches were in already: those that Spark repeats, after a crash or because it does
    not find its checkpoint.
    """
    repeated = []

    def take(rows: DataFrame, batch: int) -> None:
        """All of a batch, or nothing if it is in already."""
        with db.transaction(id=("arrivals", batch)) as tx:
            tx.insert("orders", rows)
        if tx.repeated:
            repeated.append((batch,))

    arriving = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    (
        arriving.csv(str(folder / "arrivals"))
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / checkpoint))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    return repeated


def _arrive(folder: Path, name: str) -> None:
    """A file appears whole: it is written beside and then renamed."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(ARRIVALS / name, folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(map(str, row)) for row in rows]


if __name__ == "__main__":
    main("spark")
