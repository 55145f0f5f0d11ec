"""What is written as Parquet is the same to everybody who reads it: Arrow, DuckDB and Spark."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from everview.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

COUNT = 12_000
"""So many that columns are looked at for values that repeat."""


def written(folder: Path, *, dense: bool) -> tuple[str, pa.Table]:
    """A file of rows with nulls, ends of ranges and jumps from one to the other."""
    chance, numbers = Random(7), {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}

    def values(one: Callable[[], Any]) -> list[Any]:
        return [None if chance.random() < 0.1 else one() for _ in range(COUNT)]

    def whole(bits: int) -> int:
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        return chance.choice([low, high, chance.randint(low, high)])

    def decimal(digits: int) -> Decimal:
        return Decimal(chance.randint(1 - 10**digits, 10**digits - 1)).scaleb(-2)

    def moment() -> datetime:
        return datetime(1900, 1, 1) + timedelta(microseconds=chance.randint(0, 10**16))

    columns = {"a.key": pa.array(range(COUNT))}
    for bits, type_ in numbers.items():
        columns[f"int {bits}"] = pa.array(values(lambda bits=bits: whole(bits)), type_)
    for digits in (4, 9, 18, 25):
        made = values(lambda digits=digits: decimal(digits))
        columns[f"decimal {digits}"] = pa.array(made, pa.decimal128(digits, 2))
    columns |= {
        "date": pa.array(values(lambda: date(1, 1, 1) + timedelta(chance.randint(0, 3 * 10**6)))),
        "moment": pa.array(values(moment), pa.timestamp("us")),
        "zoned": pa.array(values(moment), pa.timestamp("us", "UTC")),
        "fraction": pa.array(values(chance.random)),
        "few": pa.array(values(lambda: chance.choice("xyz"))),
        "many": pa.array(values(lambda: str(chance.random()))),
        "_w": pa.array([1] * COUNT),
    }
    rows, store = pa.table(columns), Store.create_or_open(folder / "shop")
    (file,) = store.write_segment("orders", 1, rows, ("a.key",), dense=dense).files
    assert store.read_files((file,)) == rows
    return store.absolute(file.path), rows


def must_be(found: pa.Table, rows: pa.Table) -> None:
    for name in rows.column_names:
        assert found[name].cast(rows[name].type).equals(rows[name]), name


@pytest.mark.parametrize("dense", [False, True])
def test_duckdb_reads_what_was_written(tmp_path: Path, dense: bool) -> None:
    path, rows = written(tmp_path, dense=dense)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        must_be(connection.sql(f"SELECT * FROM '{path}'").to_arrow_table(), rows)


@pytest.mark.spark
@pytest.mark.parametrize("dense", [False, True])
def test_spark_reads_what_was_written(tmp_path: Path, dense: bool, spark: SparkSession) -> None:
    path, rows = written(tmp_path, dense=dense)
    must_be(spark.read.parquet(path).orderBy("`a.key`").toArrow(), rows)


CONDITIONS = ("x > 1", "x <= 1", "x <> 0.5", "x = 0.5", "s.y > 1", "s.y <= 1")
KEPT = ({1}, {0}, {1}, {0}, {1}, {0})


def with_nan(folder: Path, *, dense: bool) -> str:
    """A file in which all numbers but NaN are the same; a column is called like a field."""
    rows = pa.table(
        {
            "x": pa.array([float("nan"), 0.5], pa.float32()),
            "s.y": pa.array([1, 0]),
            "s": pa.array([{"y": float("nan")}, {"y": 0.5}]),
            "_w": pa.array([1, 1]),
        }
    )
    store = Store.create_or_open(folder / "shop")
    (file,) = store.write_segment("orders", 1, rows, ("x",), dense=dense).files
    return store.absolute(file.path)


@pytest.mark.parametrize("dense", [False, True])
def test_nan_is_greater_than_all_others_to_duckdb(tmp_path: Path, dense: bool) -> None:
    path = with_nan(tmp_path, dense=dense)
    with duckdb.connect() as connection:
        for condition, kept in zip(CONDITIONS, KEPT, strict=True):
            rows = connection.execute(f"SELECT \"s.y\" FROM '{path}' WHERE {condition}").fetchall()
            assert {row[0] for row in rows} == kept, condition
        [(greatest,)] = connection.execute(f"SELECT MAX(x) FROM '{path}'").fetchall()
        assert greatest != greatest  # NaN


@pytest.mark.spark
@pytest.mark.parametrize("dense", [False, True])
def test_nan_is_greater_than_all_others_to_spark(
    tmp_path: Path, dense: bool, spark: SparkSession
) -> None:
    rows = spark.read.parquet(with_nan(tmp_path, dense=dense))
    for condition, kept in zip(CONDITIONS, KEPT, strict=True):
        assert {row[0] for row in rows.where(condition).select("`s.y`").collect()} == kept
