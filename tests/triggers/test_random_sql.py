"""Random views of SQL under triggers: after every change they are what DuckDB computes."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import everview as ev
from cases import THOROUGH
from everview.database.trigger_script import read_script
from everview.errors import UserError
from everview.lang.agca.evaluate import rows_of
from everview.lang.agca.from_plan import definitions_of
from everview.lang.agca.normal_form import monomials_of
from everview.lang.agca.printer import print_definition
from everview.lang.agca.views import checked_definitions
from triggers.random_sql import TABLES, Query, Stream, declarations

SEEDS = 400 if THOROUGH else 20


class Oracle:
    """The same rows in DuckDB, which reads the text of the query."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        for name, columns in TABLES.items():
            columns = columns.replace("STRING", "VARCHAR")
            self.connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")

    def rows(self, query: str, tables: dict[str, Any]) -> list[tuple[Any, ...]]:
        for name, counted in tables.items():
            self.connection.execute(f"DELETE FROM {name}")
            if rows := list(counted.elements()):
                marks = ", ".join("?" * len(rows[0]))
                self.connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        return self.connection.execute(query).fetchall()


def agree(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    """Equal as bags; averages to twelve places."""

    def sortable(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
        return [
            (each is None, f"{each:.6f}" if isinstance(each, int | float | Decimal) else str(each))
            for each in row
        ]

    def equal(a: Any, b: Any) -> bool:
        if isinstance(b, float):
            return a is not None and math.isclose(a, b, rel_tol=1e-12)
        return bool(a == b)

    pairs = list(zip(sorted(ours, key=sortable), sorted(theirs, key=sortable), strict=False))
    return len(ours) == len(theirs) and all(all(map(equal, a, b)) for a, b in pairs)


def arrow(table: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32()}
    made = {}
    for at, column in enumerate(TABLES[table].split(", ")):
        name, kind = column.split(" ")[:2]
        made[name] = pa.array([row[at] for row in rows], types.get(kind, pa.decimal128(9, 3)))
    return pa.table(made)


def change(running: Any, random: Random, table: str, sign: int, rows: list[Any]) -> None:
    """Hand rows over in one of the ways that there are."""
    by_sign = running.insert if sign > 0 else running.delete
    match random.choice(["one by one", "list", "arrow", "weights"]):
        case "one by one":
            for row in rows:
                by_sign(table, [row])
        case "list":
            by_sign(table, rows)
        case "arrow":
            by_sign(table, arrow(table, rows))
        case _:
            running.apply([(table, row, sign) for row in rows])


def follow(seed: int, connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a random view is one that triggers can keep; then it is right after every change."""
    random = Random(seed)
    query = Query(random).text()
    script = f"{declarations()}CREATE VIEW v AS {query}"
    try:
        running = ev.triggers(script)
    except UserError as refused:
        if refused.code != "G009":
            raise
        return False
    oracle, stream = Oracle(connection), Stream(random)
    empty = json.loads(running.snapshot())["maps"]
    for _ in range(5):
        for each in stream.changes():
            change(running, random, *each)
        if random.random() < 0.3:
            taken = running.snapshot()
            running = ev.triggers(script)
            running.restore(taken)
        found, expected = running.result(), oracle.rows(query, stream.rows)
        assert agree(found, expected), (query, found, expected, stream.rows)
    for table, counted in stream.rows.items():
        if rows := list(counted.elements()):
            change(running, random, table, -1, rows)
    assert json.loads(running.snapshot())["maps"] == empty, query
    return True


def test_random_views_are_what_duckdb_computes():
    with duckdb.connect() as connection:
        kept = sum(follow(seed, connection) for seed in range(SEEDS))
    assert kept > SEEDS // 2


def test_random_views_read_back_as_agca_with_the_same_totals():
    read = 0
    for seed in range(5000, 5000 + 2 * SEEDS):
        random = Random(seed)
        script = read_script(f"{declarations()}CREATE VIEW v AS {Query(random).text()}")
        try:
            totals = definitions_of("v", script.plans["v"], script.not_null())
        except UserError as refused:
            if refused.code != "G009":
                raise
            continue
        stream = Stream(random)
        for _ in range(3):
            assert list(stream.changes())
        database = {name: list(rows.items()) for name, rows in stream.rows.items()}
        for each in totals:
            [again] = checked_definitions(print_definition(each))
            found = rows_of(again, monomials_of(again), database)
            assert found == rows_of(each, monomials_of(each), database), print_definition(each)
            read += 1
    assert read > SEEDS


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(CASE WHEN a <> a THEN 1 END) AS n FROM r GROUP BY k",
        "SELECT k, COUNT(CASE WHEN a < a THEN 1 END) AS n FROM r WHERE a >= a GROUP BY k",
    ],
)
def test_a_comparison_of_a_column_with_itself_says_what_sql_says(query):
    running, stream = ev.triggers(f"{declarations()}CREATE VIEW v AS {query}"), Stream(Random(1))
    rows = [(1, 1, None, None), (1, None, None, None), (2, None, None, None), (None, 1, None, None)]
    running.insert("r", rows)
    stream.rows["r"].update(rows)
    with duckdb.connect() as connection:
        assert agree(running.result(), Oracle(connection).rows(query, stream.rows))
