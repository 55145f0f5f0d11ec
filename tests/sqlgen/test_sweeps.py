"""What the grid is too small for: every letter's case, and what becomes of many doubles."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from everview.engines.duckdb import functions
from everview.expr.types import Column
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.scalar import to_duckdb

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
    items = ", ".join(f"TRY({to_duckdb(text, schema)}) AS c{n}" for n, text in enumerate(texts))
    with duckdb.connect() as connection:
        functions.define(connection)
        connection.register("swept", values)
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


STRICT = tuple(f"{name}(a)" for name in ("ln", "log2", "log10", "log1p", "exp", "expm1"))


def _doubles(chance: random.Random, count: int) -> list[float]:
    """Doubles of all sizes, near to zero and to one, whole ones, and any bits there are."""
    kinds = (
        lambda: struct.unpack("d", chance.randbytes(8))[0],
        lambda: chance.uniform(-750, 750),
        lambda: 1 + chance.uniform(-1, 1) * 2.0 ** chance.randint(-53, 0),
        lambda: float(chance.randint(-60, 60)),
        lambda: chance.choice((1, -1)) * 10 ** chance.uniform(-20, 20),
        lambda: chance.choice((1, -1)) * chance.randint(0, 2**40) * 5e-324,
        lambda: chance.choice((0.0, -0.0, 0.5, 2.0, float("inf"), -float("inf"), 1e300)),
    )
    return [chance.choice(kinds)() for _ in range(count)]


@pytest.mark.spark
@pytest.mark.parametrize("count", [20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_logarithms_and_powers_have_sparks_bits(spark: SparkSession, count: int) -> None:
    chance = random.Random(count)
    values = pa.table({name: pa.array(_doubles(chance, count), pa.float64()) for name in "ab"})
    schema = tuple(Column(name, "double") for name in "ab")
    for text, theirs, ours in answers(spark, values, (*STRICT, "log(a, b)", "power(a, b)"), schema):
        known = [(a, b) for a, b in zip(theirs, ours, strict=True) if a == a or b == b]
        wrong = [(a, b) for a, b in known if repr(a) != repr(b)]
        assert not wrong, f"{text}: {wrong[:5]}"
        assert len(known) > count / 10


@pytest.mark.spark
@pytest.mark.parametrize(("precision", "scale"), [(38, 4), (38, 10)])
def test_a_quotient_of_long_decimals_is_sparks_or_raises(
    spark: SparkSession, precision: int, scale: int
) -> None:
    chance = random.Random(precision + scale)
    schema = tuple(Column(name, f"decimal({precision},{scale})") for name in "ab")

    def some(lengths: list[int]) -> pa.Array:
        digits = [chance.randrange(10 ** (n - 1), 10**n) * chance.choice((1, -1)) for n in lengths]
        values = [Decimal(f"{each}e-{scale}") for each in digits]
        return pa.array(values, pa.decimal128(precision, scale))

    lengths = [chance.randint(1, 32) for _ in range(2000)]
    others = [chance.randint(max(1, n - 20), precision - 1) for n in lengths]
    values = pa.table({"a": some(lengths), "b": some(others)})
    [(_, theirs, ours)] = answers(spark, values, ("a / b",), schema)
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == []
    connection = duckdb.connect()
    connection.register("longer", pa.table({"a": some([33]), "b": some([1])}))
    with pytest.raises(duckdb.Error):
        connection.sql(f"SELECT {to_duckdb('a / b', schema)} FROM longer").fetchall()


def test_try_divide_of_long_decimals_is_refused() -> None:
    """DuckDB's TRY would make NULL of what only takes too many digits on the way."""
    schema = tuple(Column(name, "decimal(38,4)") for name in "ab")
    with pytest.raises(NotAtParity, match="more than 128 bits"):
        to_duckdb("try_divide(a, b)", schema)
