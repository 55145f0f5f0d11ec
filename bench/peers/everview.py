"""Ours, as one peer among the others.

python -m bench.peers.everview FOLDER ENGINE
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

import everview as ev
from bench.peers.protocol import COLUMNS, KEYS, QUERIES, Batch, Task


def main(folder: str, engine: str) -> None:
    """Keep the three views in a store."""
    task = Task(Path(folder))
    with TemporaryDirectory() as scratch, ev.open(f"{scratch}/store", engine=engine) as db:

        def load() -> None:
            for name, columns in COLUMNS.items():
                listed = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
                db.sql(f"CREATE TABLE {name} ({listed}, PRIMARY KEY ({', '.join(KEYS[name])}))")
                db.insert(name, pq.read_table(task.table(name)))
            for name, query in QUERIES.items():
                db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")

        def prepare(batch: Batch) -> tuple[pa.Table, pa.Table]:
            return batch.lines(-1), batch.lines(1)

        def apply(lines: tuple[pa.Table, pa.Table]) -> None:
            with db.transaction() as tx:
                tx.delete("lineitem", lines[0])
                tx.insert("lineitem", lines[1])

        task.run(
            f"everview-{engine}",
            load,
            prepare,
            apply,
            lambda: {name: db.read(name).rows() for name in QUERIES},
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
