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
    """Two files arrive and are read; the stream stops; another file arrives, and it goes on."""
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
        show("batches:", db.read("batches").rows())
        proved(db)


def follow(db: Database, spark: SparkSession, folder: Path) -> None:
    """Read the files that have arrived since the last time, each as a batch."""
    done = max((batch for (batch,) in db.read("batches").rows()), default=-1)

    def take(rows: DataFrame, batch: int) -> None:
        """All of a batch, or nothing; a batch that Spark repeats after a crash is in already."""
        if batch <= done:
            return
        with db.transaction() as tx:
            tx.insert("orders", rows)
            tx.insert("batches", [(batch,)])

    arriving = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    (
        arriving.csv(str(folder / "arrivals"))
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def _arrive(folder: Path, name: str) -> None:
    """A file appears whole: it is written beside and then renamed."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(ARRIVALS / name, folder / f".{name}")
    (folder / f".{name}").rename(folder / name)


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(map(str, row)) for row in rows]


if __name__ == "__main__":
    main("spark")
