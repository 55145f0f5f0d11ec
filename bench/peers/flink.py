"""Flink SQL: tables from files, changed lines as a stream of Debezium records, one job.

The base is read from CSV files; a folder that is watched brings inserts and deletes. Results go
to Flink's print connector, and are taken from this process's own output, which has to be a file.
One task for each operator, so that lines stay in order and the marker of a batch comes last.

python -m bench.peers.flink FOLDER >FILE
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import pyarrow.csv as csv
import pyarrow.parquet as pq
from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.peers.protocol import COLUMNS, GROUPS, QUERIES, Batch, Task, marks

_PRINTED = re.compile(r"^(\w+)> ([+-][IUD])\[(.*)\]$")
_SETTINGS = {
    "parallelism.default": "1",
    "table.exec.resource.default-parallelism": "1",
    "taskmanager.memory.task.heap.size": "3g",
    "taskmanager.numberOfTaskSlots": "1",
}


class Printed:
    """The views as far as the job has printed their changes."""

    def __init__(self, file: Path) -> None:
        self._file = open(file, encoding="utf-8")  # noqa: SIM115  (open as long as the job runs)
        self._half = ""
        self.rows: dict[str, dict[Any, tuple[Any, ...]]] = {name: {} for name in QUERIES}

    def wait(self, number: int, patience: float = 1800) -> None:
        """Until the group of a batch's marker is in every view."""
        wanted, until = marks(number), monotonic() + patience
        while any(group not in self.rows[name] for name, group in wanted.items()):
            assert monotonic() < until, f"batch {number} is not through"
            if not self.take():
                sleep(0.001)

    def take(self) -> bool:
        """Apply what was printed since; whether there was anything."""
        text = self._file.read(1 << 20)
        *lines, self._half = (self._half + text).split("\n")
        for line in lines:
            found = _PRINTED.match(line)
            if found:
                self._apply(*found.groups())
        return bool(text)

    def _apply(self, name: str, kind: str, values: str) -> None:
        row = tuple(int(v) if v.lstrip("-").isdigit() else v for v in values.split(", "))
        group = row[: GROUPS[name]]
        if kind.startswith("+"):
            self.rows[name][group] = row
        else:
            self.rows[name].pop(group, None)


def main(folder: str) -> None:
    """One job with three sinks."""
    task = Task(Path(folder))
    printed = Printed(Path(os.readlink("/proc/self/fd/1")))
    with TemporaryDirectory() as scratch:
        watched = Path(scratch) / "changes"
        watched.mkdir()
        prepared = {batch.number: _records(batch, Path(scratch)) for batch in task.batches}
        for name in COLUMNS:
            plain = csv.WriteOptions(include_header=False)
            csv.write_csv(pq.read_table(task.table(name)), f"{scratch}/{name}.csv", plain)
        jobs: list[Any] = []

        def load() -> None:
            jobs.append(_started(scratch, watched))
            printed.wait(0)

        def apply(batch: Batch) -> None:
            os.rename(prepared[batch.number], watched / f"{batch.number}.json")
            printed.wait(batch.number)

        def answers() -> dict[str, Any]:
            while printed.take():
                pass
            return {name: list(rows.values()) for name, rows in printed.rows.items()}

        task.run("flink", load, lambda batch: batch, apply, answers)
        jobs[0].get_job_client().cancel().result()


def _records(batch: Batch, folder: Path) -> Path:
    """A batch as Debezium would tell it."""
    file = folder / f"{batch.number}.json"
    with open(file, "w", encoding="utf-8") as out:
        for line in pq.read_table(batch.file).to_pylist():
            if line.pop("w") > 0:
                record = {"before": None, "after": line, "op": "c"}
            else:
                record = {"before": line, "after": None, "op": "d"}
            out.write(json.dumps(record) + "\n")
    return file


def _started(scratch: str, watched: Path) -> Any:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in _SETTINGS.items():
        environment.get_config().set(key, value)
    for name, columns in COLUMNS.items():
        where = f"'connector' = 'filesystem', 'path' = '{scratch}/{name}.csv', 'format' = 'csv'"
        kept = "loaded" if name == "lineitem" else name
        environment.execute_sql(f"CREATE TABLE {kept} ({_listed(columns)}) WITH ({where})")
    environment.execute_sql(
        f"CREATE TABLE changed ({_listed(COLUMNS['lineitem'])}) WITH ('connector' = 'filesystem', "
        f"'path' = '{watched}', 'format' = 'debezium-json', 'source.monitor-interval' = '10 ms')"
    )
    environment.execute_sql(
        "CREATE VIEW lineitem AS SELECT * FROM loaded UNION ALL SELECT * FROM changed"
    )
    job = environment.create_statement_set()
    for name, query in QUERIES.items():
        schema = environment.sql_query(query).get_schema()
        types = zip(schema.get_field_names(), schema.get_field_data_types(), strict=True)
        columns = ", ".join(f"{column} {_sql_type(type_)}" for column, type_ in types)
        environment.execute_sql(
            f"CREATE TABLE {name} ({columns}) "
            f"WITH ('connector' = 'print', 'print-identifier' = '{name}')"
        )
        job.add_insert_sql(f"INSERT INTO {name} {query}")
    return job.execute()


def _listed(columns: dict[str, str]) -> str:
    return ", ".join(f"{column} {type_}" for column, type_ in columns.items())


def _sql_type(type_: Any) -> str:
    name = type(type_).__name__
    return {"BigIntType": "BIGINT", "IntType": "INT", "VarCharType": "STRING"}[name]


if __name__ == "__main__":
    main(*sys.argv[1:])
