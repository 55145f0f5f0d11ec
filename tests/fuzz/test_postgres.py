"""PostgreSQL decides where a view and Spark differ, in a process that ends with its answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from everview.expr.types import Column, Schema
from everview_fuzz.check.oracle import Claim, Verdict, postgres_opinion
from everview_fuzz.check.postgres import Postgres, programs, third_opinion
from everview_fuzz.check.reference import Unanswered

pytestmark = pytest.mark.skipif(not programs(), reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def postgres():
    with third_opinion() as found:
        assert found is not None
        yield found


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


ODD = "it's \\ a\ttab, ü"
RELATIONS = {
    "u": pa.table({"a": ints(1, None), "s": pa.array([ODD, None])}),
    "t": pa.table({"x": ints(9, 10)}),
    "w": pa.table({"b": ints(5)}),
    "v": pa.table(
        {
            "d": pa.array([date(2024, 2, 29)]),
            "n": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            "f": pa.array([True]),
            "g": pa.array([0.25]),
        }
    ),
}
OUTER = "SELECT a, (SELECT MIN(x) FROM t WHERE u.a NOT IN (SELECT b FROM w)) AS m FROM u"
PAIR: Schema = (Column("a", "int"), Column("m", "int"))


def test_values_come_back_as_they_were_given(postgres):
    schema = (Column("a", "int"), Column("s", "string"))
    found = postgres.answer("SELECT a, s FROM u WHERE a <=> 1 OR s IS NULL", schema, RELATIONS)
    assert sorted(found.to_pylist(), key=repr) == [{"a": 1, "s": ODD}, {"a": None, "s": None}]
    kinds = zip("dnfg", ("date", "decimal(10,2)", "boolean", "double"), strict=True)
    columns = tuple(Column(*pair) for pair in kinds)
    assert postgres.answer("SELECT * FROM v", columns, RELATIONS) == RELATIONS["v"]


def test_what_it_does_not_answer_is_said(postgres):
    with pytest.raises(Unanswered, match="does not exist"):
        postgres.answer("SELECT nope FROM u", PAIR[:1], RELATIONS)


def verdict(view: list[int | None], spark: list[int | None]) -> Verdict:
    held, answered = (pa.table({"a": ints(1, None), "m": ints(*each)}) for each in (view, spark))
    claim = Claim(0, "duckdb", "v", OUTER, PAIR, held, RELATIONS)
    return Verdict(claim, "wrong", answer=answered)


@pytest.mark.parametrize(
    ("view", "spark", "told"),
    [
        ([9, None], [9, 9], "PostgreSQL agrees with the view"),
        ([9, 9], [9, None], "PostgreSQL agrees with Spark"),
        ([9, 9], [None, 9], "PostgreSQL agrees with neither"),
    ],
)
def test_it_says_with_whom_it_agrees(postgres: Postgres, view, spark, told):
    assert postgres_opinion(verdict(view, spark), postgres).startswith(told)
