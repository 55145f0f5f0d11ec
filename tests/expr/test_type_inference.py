"""Whatever type we give an expression is the type Spark's analyzer gives it."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest

from everview.expr.scalar import parse, text
from everview.expr.type_inference import type_of
from everview.expr.types import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = tuple(
    Column(name, type_)
    for name, type_ in {
        "ti": "tinyint",
        "sh": "smallint",
        "i": "int",
        "l": "bigint",
        "f": "float",
        "d": "double",
        "n": "decimal(10,2)",
        "p": "decimal(18,6)",
        "m": "decimal(38,10)",
        "w": "decimal(38,0)",
        "t": "decimal(5,5)",
        "b": "boolean",
        "s": "string",
        "dt": "date",
        "ts": "timestamp",
        "tn": "timestamp_ntz",
        "bin": "binary",
    }.items()
)
ATOMS = (
    *(f"`{column.name}`" for column in SCHEMA),
    "NULL",
    "1",
    "-3",
    "1.5",
    "0.05",
    "'x'",
    "TRUE",
    "DATE '2024-02-29'",
)
LITERALS = (
    "0",
    "3000000000",
    "-2147483648",
    "1e0",
    "1.",
    "99999999999999999999",
    "3L",
    "1.5D",
    "2BD",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / {1}",
    "{0} % {1}",
    "{0} DIV {1}",
    "pmod({0}, {1})",
    "{0} = {1}",
    "{0} < {1}",
    "{0} <=> {1}",
    "{0} AND {1}",
    "{0} IN ({1}, NULL)",
    "{0} BETWEEN {1} AND {0}",
    "{0} & {1}",
    "coalesce({0}, {1})",
    "greatest({0}, {1})",
    "nullif({0}, {1})",
    "CASE WHEN `b` THEN {0} ELSE {1} END",
    "CASE {0} WHEN {1} THEN 1 END",
    "nvl2({0}, {1}, {0})",
)
BINARY_FUNCTIONS = (
    "{0} || {1}",
    "concat({0}, {1})",
    "{0} LIKE {1}",
    "startswith({0}, {1})",
    "locate({0}, {1})",
    "left({0}, {1})",
    "substring({0}, {1})",
    "repeat({0}, {1})",
    "lpad({0}, {1}, 'x')",
    "trim(BOTH {0} FROM {1})",
    "date_add({0}, {1})",
    "date_sub({0}, {1})",
    "datediff({0}, {1})",
    "add_months({0}, {1})",
    "shiftleft({0}, {1})",
    "power({0}, {1})",
    "nanvl({0}, {1})",
    "{0} RLIKE {1}",
    "{0} ILIKE ANY ({1}, 'x')",
    "regexp_replace({0}, {1}, 'x')",
    "regexp_extract({0}, 'x', {1})",
    "overlay({0}, 'x', {1})",
    "try_add({0}, {1})",
    "try_divide({0}, {1})",
    "try_mod({0}, {1})",
    "months_between({0}, {1})",
    "timestampdiff(MONTH, {0}, {1})",
    "timestampadd(DAY, {1}, {0})",
    "to_date({0}, {1})",
    "to_timestamp({0}, {1})",
    "unix_timestamp({0}, {1})",
    "from_unixtime({0}, {1})",
    "next_day({0}, {1})",
    "sha2({0}, {1})",
    "log({0}, {1})",
    "decode({0}, {1}, 1)",
    "decode({0}, 1, {1})",
    "decode({0}, 1, {0}, {1})",
    "instr({0}, {1})",
)
UNARY = (
    *(f"{name}({{0}})" for name in ("bigint", "decimal", "nullifzero", "zeroifnull", "positive")),
    *(f"{name}({{0}})" for name in ("factorial", "rint", "chr", "bin", "hex", "base64", "sin")),
    *(f"{name}({{0}})" for name in ("to_timestamp", "unix_timestamp", "from_unixtime")),
    *(f"timestamp_{unit}({{0}})" for unit in ("seconds", "millis", "micros")),
    "date_from_unix_date({0})",
    "make_timestamp({0}, 1, 2, 3, 4, {0})",
    "floor({0}, 1)",
    "ceil({0}, -1)",
    "negative({0})",
    "INTERVAL '2' HOUR + {0}",
    "extract(YEAROFWEEK FROM {0})",
    *(f"CAST({{0}} AS {type_})" for type_ in ("INT", "BIGINT", "DOUBLE", "FLOAT", "STRING")),
    *(f"CAST({{0}} AS {type_})" for type_ in ("DECIMAL(12,3)", "DECIMAL", "DATE", "BOOLEAN")),
    *(f"CAST({{0}} AS {type_})" for type_ in ("TIMESTAMP", "TIMESTAMP_NTZ", "BINARY")),
    "TRY_CAST({0} AS INT)",
    "- {0}",
    "+ {0}",
    "~{0}",
    "NOT {0}",
    "{0} IS NULL",
    "{0} IS TRUE",
    "round({0})",
    "round({0}, 1)",
    "round({0}, -2)",
    "round({0}, 9)",
    "bround({0}, 1)",
    "if({0} IS NULL, 1, {0})",
    "coalesce({0}, 1, 2.5)",
    "substring({0}, 1, 2)",
    "rpad({0}, 5)",
    "replace({0}, 'a')",
    "concat_ws('-', {0}, {0})",
    "trunc({0}, 'MM')",
    "date_trunc('MONTH', {0})",
    "extract(YEAR FROM {0})",
    "extract(SECOND FROM {0})",
    "{0} + INTERVAL '1' MONTH",
    "{0} - INTERVAL '3' DAY",
    "{0} + INTERVAL '3' HOUR",
    "make_date({0}, 1, 1)",
    "date_format({0}, 'yyyy')",
    "to_date({0})",
    *(
        f"{name}({{0}})"
        for name in [
            "abs",
            "sign",
            "ceil",
            "floor",
            "sqrt",
            "exp",
            "ln",
            "degrees",
            "isnan",
            "length",
            "octet_length",
            "upper",
            "reverse",
            "trim",
            "ltrim",
            "ascii",
            "md5",
            "sha1",
            "year",
            "quarter",
            "month",
            "day",
            "dayofweek",
            "weekday",
            "dayofyear",
            "weekofyear",
            "hour",
            "minute",
            "second",
            "last_day",
            "unix_date",
            "unix_seconds",
            "unix_millis",
            "unix_micros",
            "dayname",
            "monthname",
            "bit_count",
            "space",
            "bit_length",
            "btrim",
        ]
    ),
)
SOME = ("`ti`", "`i`", "`l`", "`n`", "`d`", "`s`", "`dt`", "`ts`", "1", "'x'")
PAIRS = tuple(product(SOME, repeat=2))
EXPRESSIONS = tuple(
    dict.fromkeys(
        (
            *ATOMS,
            *LITERALS,
            *(shape.format(atom) for shape, atom in product(UNARY, ATOMS)),
            *(shape.format(*pair) for shape, pair in product(BINARY, product(ATOMS, ATOMS))),
            *(shape.format(*pair) for shape, pair in product(BINARY_FUNCTIONS, PAIRS)),
        )
    )
)


@cache
def known() -> list[tuple[str, str]]:
    """The canonical text and our type of every expression that our rules know."""
    texts = (text(parse(expression)) for expression in EXPRESSIONS)
    typed = ((each, type_of(each, SCHEMA)) for each in texts)
    return [(each, type_) for each, type_ in typed if type_ is not None]


def analyzed(spark: SparkSession, texts: list[str]) -> list[str]:
    """The type Spark gives each text, or its complaint, asking as few times as possible."""
    from pyspark.errors import AnalysisException

    items = ", ".join(f"{each} AS c{number}" for number, each in enumerate(texts))
    try:
        fields = spark.sql(f"SELECT {items} FROM typing_grid").schema.fields
        return [field.dataType.simpleString() for field in fields]
    except AnalysisException as problem:
        if len(texts) == 1:
            return [str(problem).partition("]")[0] + "]"]
        half = len(texts) // 2
        return analyzed(spark, texts[:half]) + analyzed(spark, texts[half:])


@pytest.mark.spark
def test_every_type_we_know_is_the_type_spark_gives(spark: SparkSession) -> None:
    columns = ", ".join(f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in SCHEMA)
    spark.sql(f"SELECT {columns}").createOrReplaceTempView("typing_grid")
    expected = known()
    found: list[str] = []
    for start in range(0, len(expected), 500):
        found += analyzed(spark, [each for each, _ in expected[start : start + 500]])
    wrong = [
        f"{each}: we say {ours}, Spark says {theirs}"
        for (each, ours), theirs in zip(expected, found, strict=True)
        if ours != theirs
    ]
    assert not wrong, "\n".join(wrong[:400])


def test_the_rules_cover_ordinary_arithmetic() -> None:
    covered = {each for each, _ in known()}
    assert len(covered) > 2000


@pytest.mark.parametrize("expression", ["nobody(`i`)", "`ts` - `ts`", "`i` + `b`", "`missing`"])
def test_what_we_do_not_know_has_no_type(expression: str) -> None:
    assert type_of(expression, SCHEMA) is None
