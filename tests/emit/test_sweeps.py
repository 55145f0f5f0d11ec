"""What the grid is too small for: every letter's case, and the digits of many doubles."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from everview.emit.scalar import to_duckdb
from everview.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = (Column("c", "string"),)
NUMBER = (Column("d", "double"),)
CASES = (
    "upper(c)",
    "lower(c)",
    "lower(concat('A', c))",
    "lower(concat(c, 'A'))",
    "initcap(c)",
    "initcap(concat('x', c, 'Y'))",
    "initcap(concat('x ', c, 'Y'))",
)


def answers(
    spark: SparkSession, values: pa.Table, texts: tuple[str, ...], schema: Any
) -> list[tuple[str, list[Any], list[Any]]]:
    """Each text with Spark's values and DuckDB's, None where DuckDB raises."""
    spark.createDataFrame(values).createOrReplaceTempView("swept")
    items = ", ".join(f"{text} AS c{n}" for n, text in enumerate(texts))
    theirs = spark.sql(f"SELECT {items} FROM swept").toArrow()
    connection = duckdb.connect()
    connection.register("swept", values)
    items = ", ".join(f"TRY({to_duckdb(text, schema)}) AS c{n}" for n, text in enumerate(texts))
    ours = connection.sql(f"SELECT {items} FROM swept").to_arrow_table()
    return [
        (text, theirs.column(n).to_pylist(), ours.column(n).to_pylist())
        for n, text in enumerate(texts)
    ]


@pytest.mark.spark
@pytest.mark.parametrize("last", [0x5FF, pytest.param(0x10FFFF, marks=pytest.mark.slow)])
def test_every_letter_has_sparks_other_case_or_none(spark: SparkSession, last: int) -> None:
    letters = [chr(c) for c in range(1, last + 1) if not 0xD800 <= c < 0xE000]
    for text, theirs, ours in answers(spark, pa.table({"c": letters}), CASES, TEXT):
        wrong = [
            (letter, spark_says, duckdb_says)
            for letter, spark_says, duckdb_says in zip(letters, theirs, ours, strict=True)
            if duckdb_says is not None and spark_says != duckdb_says
        ]
        assert not wrong, f"{text}: {wrong[:5]}"
        raised = [letter for letter, each in zip(letters, ours, strict=True) if each is None]
        assert len(raised) < 400
        assert not [letter for letter in raised if letter < "\u00df"]


@pytest.mark.spark
@pytest.mark.parametrize("count", [20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_a_double_has_the_digits_java_gives_it(spark: SparkSession, count: int) -> None:
    chance = random.Random(count)
    random_ones = [10 ** chance.uniform(-3, 14.9) * chance.choice((1, -1)) for _ in range(count)]
    cents = [chance.randrange(-(10**9), 10**9) / 100 for _ in range(count)]
    tenths = [chance.randrange(1, 10**6) * 0.1 for _ in range(count)]
    values = pa.table({"d": pa.array([*random_ones, *cents, *tenths, 1e7, 1e14, -1.2e7])})
    [(_, theirs, ours)] = answers(spark, values, ("CAST(d AS STRING)",), NUMBER)
    wrong = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert all(abs(float(digits)) < 1e-3 for digits, _ in wrong), wrong[:5]
    assert len(wrong) < 10
