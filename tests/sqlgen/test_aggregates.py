"""Every aggregate has one value on both engines, and it is that of Spark's own function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.aggregates import AGGREGATES
from everview.expr.types import Column
from everview.lang.sql.lower.query import lower_query
from everview.plan.nodes import Partition, Plan, Source
from everview.plan.traverse import walk
from everview.runtime.arrow_types import arrow_schema
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, SPARK, emit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRID = Source(
    "grid",
    (
        Column("g", "int"),
        Column("i", "int"),
        Column("l", "bigint"),
        Column("n", "decimal(10,2)"),
        Column("d", "double"),
        Column("f", "float"),
        Column("s", "string"),
        Column("b", "boolean"),
    ),
)
BIG, SMALL, NAN, INF = 2**31 - 1, -(2**31), math.nan, math.inf


def _row(g: int, i: int | None, d: float | None, s: str | None, w: int = 1) -> tuple[Any, ...]:
    n = None if i is None else Decimal(i % 1000) / 4
    return (g, i, None if i is None else i << 20, n, d, d, s, None if i is None else i % 2 == 0, w)


GROUPS: dict[int, tuple[tuple[Any, ...], ...]] = {
    1: ((1, 1.0, "a"), (2, 2.5, "b"), (4, -3.0, "c"), (7, 8.0, "d")),
    2: ((5, None, "x"), (None, 1.0, None), (6, 3.0, ""), (2, 4.0, "é")),
    3: ((None, None, None, 3),),
    4: ((3, 0.25, "one"),),
    5: ((BIG, INF, "a"), (SMALL, 1.0, "b"), (0, 2.0, "\uffff"), (1, 5.0, "😀")),
    6: ((1, NAN, "n"), (2, 1.0, "o"), (3, -INF, "p")),
    7: ((8, 0.1, "p", 3), (9, 0.1, "q", 3)),
    8: ((5, 1e200, "p"), (5, 2e200, "q"), (5, 3.0, "r")),
    9: ((1, 4.5, "p"), (2, 4.5, "q", 2), (4, 4.5, "r", 4)),
}
"""Groups: plain, with NULLs, all NULL, one row, extremes, not numbers, copies, large, constant."""

ROWS = [_row(g, *row) for g, rows in GROUPS.items() for row in rows]
TABLE = pa.table(
    [
        pa.array(values, field.type)
        for values, field in zip(zip(*ROWS, strict=True), arrow_schema(GRID.schema), strict=True)
    ],
    schema=arrow_schema(GRID.schema),
)

EXAMPLES = (
    "COUNT(i)",
    "SUM(i)",
    "SUM(n)",
    "SUM(d)",
    "AVG(i)",
    "AVG(n)",
    "AVG(d)",
    "MIN(s)",
    "MAX(d)",
    "BOOL_AND(b)",
    "BOOL_OR(b)",
    "BIT_AND(i)",
    "BIT_OR(l)",
    "BIT_XOR(i)",
    "VAR_POP(i)",
    "VAR_SAMP(d)",
    "STDDEV_POP(n)",
    "STDDEV_SAMP(f)",
    "COVAR_POP(d, i)",
    "COVAR_SAMP(n, i)",
    "CORR(d, i)",
    "CORR(i, d)",
    "REGR_SLOPE(d, i)",
    "REGR_SLOPE(i, d)",
    "REGR_INTERCEPT(d, i)",
    "REGR_INTERCEPT(i, d)",
    "REGR_R2(d, i)",
    "REGR_R2(i, d)",
    "REGR_SXX(d, i)",
    "REGR_SYY(d, i)",
    "REGR_SXY(d, i)",
    "MAX_BY(i, s)",
    "MIN_BY(d, s)",
    "MEDIAN(i)",
    "MEDIAN(d)",
    "PERCENTILE(l, 0.3)",
    "PERCENTILE(f, 0.9)",
    "PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY d DESC)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY i)",
    "PERCENTILE_DISC(0.7) WITHIN GROUP (ORDER BY d DESC)",
    "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY n)",
    "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY n)",
    "MODE(i, TRUE)",
    "MODE() WITHIN GROUP (ORDER BY s DESC)",
    "MODE() WITHIN GROUP (ORDER BY d)",
    "LISTAGG(s, '-') WITHIN GROUP (ORDER BY i DESC, s)",
    "LISTAGG(n, ',') WITHIN GROUP (ORDER BY n)",
)
OF_DISTINCT = (
    "COUNT(DISTINCT i, s)",
    "SUM(DISTINCT i)",
    "AVG(DISTINCT d)",
    "BIT_XOR(DISTINCT i)",
    "VAR_POP(DISTINCT n)",
    "MEDIAN(DISTINCT n)",
    "PERCENTILE(DISTINCT d, 0.4)",
    "MIN(DISTINCT f)",
)
ONLY_SPARK = ("SKEWNESS(n)", "KURTOSIS(d)")


def query(calls: tuple[str, ...], keys: str = "g") -> str:
    made = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
    return f"SELECT {keys + ', ' if keys else ''}{made} FROM grid{' GROUP BY g' if keys else ''}"


def plan_of(calls: tuple[str, ...], keys: str = "g") -> Plan:
    return lower_query(query(calls, keys), {"grid": GRID}, lambda *_: "unknown")


@pytest.fixture(scope="module")
def grids(generating: SparkSession) -> Iterator[SparkSession]:
    """Spark with the rows as often as their weight says, and with their weights."""
    spark = generating
    weighted = spark.createDataFrame(TABLE)
    weighted.createOrReplaceTempView("weighted")
    columns = ", ".join(column.name for column in GRID.schema)
    copies = "SELECT *, explode(array_repeat(0, CAST(_w AS INT))) AS copy FROM weighted"
    spark.sql(f"SELECT {columns} FROM ({copies})").createOrReplaceTempView("grid")
    yield spark
    for name in ("weighted", "grid"):
        spark.catalog.dropTempView(name)


@pytest.mark.spark
@pytest.mark.parametrize("keys", ["g", ""])
@pytest.mark.parametrize("calls", [EXAMPLES, OF_DISTINCT, ONLY_SPARK])
def test_an_aggregate_has_sparks_value_on_both_engines(grids, calls, keys):
    plan = plan_of(calls, keys)
    expected = by_key(grids.sql(query(calls, keys)).toArrow(), keys)
    on_spark = by_key(grids.sql(emit(plan, SPARK, {"grid": "weighted"})).toArrow(), keys)
    assert differences(calls, on_spark, expected) == []
    if calls is not ONLY_SPARK:
        on_duckdb = by_key(duckdb_workspace().evaluate_over(plan, {"grid": TABLE}), keys)
        assert differences(calls, on_duckdb, expected) == []


def by_key(table: pa.Table, keys: str) -> dict[Any, tuple[Any, ...]]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {(row[0] if keys else None): row[1 if keys else 0 :] for row in rows}


def differences(calls: tuple[str, ...], found: Any, expected: Any) -> list[tuple[Any, ...]]:
    assert found.keys() == expected.keys()
    return [
        (key, call, one, other)
        for key in expected
        for call, one, other in zip(calls, found[key], expected[key], strict=False)
        if not same(one, other)
    ]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-9)
    return type(one) is type(other) and one == other


def test_every_aggregate_has_an_example():
    plans = map(plan_of, (EXAMPLES, OF_DISTINCT, ONLY_SPARK))
    found = {
        a.function for p in plans for n in walk(p) if isinstance(n, Partition) for a in n.aggregates
    }
    # Spark's own lists have no order, so they are compared where views are.
    assert found == set(AGGREGATES) - {"collect_list"}


@pytest.mark.parametrize("call", ONLY_SPARK)
def test_what_duckdb_answers_otherwise_is_not_asked_of_it(call):
    with pytest.raises(NotAtParity):
        emit(plan_of((call,)), DUCKDB)
