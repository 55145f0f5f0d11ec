"""The folder that every peer is given: tables, batches, and what the views must answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench import three_views
from bench.peers.protocol import COLUMNS, QUERIES, Task, marker
from bench.tpch import Change

_MADE = {
    "customer": "c_custkey, c_mktsegment",
    "orders": "o_orderkey, o_custkey, CAST(strftime(o_orderdate, '%Y%m%d') AS INT) AS o_orderdate, "
    "o_shippriority",
    "lineitem": "l_orderkey, l_linenumber, CAST(100 * l_quantity AS BIGINT) AS l_quantity, "
    "CAST(100 * l_extendedprice AS BIGINT) AS l_extendedprice, "
    "CAST(100 * l_discount AS BIGINT) AS l_discount, l_returnflag, l_linestatus, "
    "CAST(strftime(l_shipdate, '%Y%m%d') AS INT) AS l_shipdate",
}
Answers = dict[str, list[tuple[object, ...]]]


def prepare(task: Task, scale: float, counts: Mapping[int, int], data: Path, seed: int) -> Answers:
    """Write the tables and batches of a task; the answers after the last batch."""
    tables = three_views.tables(scale, data)
    sizes: list[int] = []
    needed = {rows - 1: times for rows, times in counts.items()}
    for rows, change in three_views.changes(tables["lineitem"], needed, seed):
        sizes.append(rows + 1)
        lines = _signed(change)
        pq.write_table(
            _with_marker(lines, (*marker(len(sizes))["lineitem"], 1)),
            task.folder / f"batch-{len(sizes)}.parquet",
        )
    (task.folder / "batches.json").write_text(json.dumps(sizes), encoding="utf-8")
    for name, rows in tables.items():
        made = _integers(name, rows)
        for number in range(len(sizes), -1, -1) if name != "lineitem" else (0,):
            made = _with_marker(made, marker(number)[name])
        pq.write_table(made, task.table(name))
    return _answers(task)


def _signed(change: Change) -> pa.Table:
    """Lines that go, then lines that come, with their weights."""
    parts = [
        rows.append_column("w", pa.array([weight] * rows.num_rows, pa.int32()))
        for weight, rows in (
            (-1, _integers("lineitem", change.deleted)),
            (1, _integers("lineitem", change.inserted)),
        )
    ]
    return pa.concat_tables(parts)


def _integers(name: str, rows: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    connection.register("given", rows)
    made = connection.sql(f"SELECT {_MADE[name]} FROM given").to_arrow_table()
    connection.close()
    return made


def _with_marker(rows: pa.Table, values: tuple[object, ...]) -> pa.Table:
    last = dict(zip(rows.column_names, values, strict=True))
    return pa.concat_tables([rows, pa.Table.from_pylist([last], rows.schema)])


def _answers(task: Task) -> Answers:
    connection = duckdb.connect()
    for name in COLUMNS:
        connection.execute(f"CREATE TABLE {name} AS FROM '{task.table(name)}'")
    changed = f"'{task.folder}/batch-*.parquet'"
    connection.execute(
        f"DELETE FROM lineitem USING (FROM {changed} WHERE w < 0) AS gone WHERE "
        "lineitem.l_orderkey = gone.l_orderkey AND lineitem.l_linenumber = gone.l_linenumber"
    )
    connection.execute(
        f"INSERT INTO lineitem SELECT * EXCLUDE (w) FROM read_parquet({changed}) WHERE w > 0"
    )
    found = {name: sorted(connection.sql(query).fetchall()) for name, query in QUERIES.items()}
    connection.close()
    return found
