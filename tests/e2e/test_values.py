"""Values come in as they are or not at all: no digit, no time of day and no year is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import everview as ev
from everview.database.catalog.definitions import table_from, table_json
from everview.database.database import Database
from everview.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Open

TYPES = {
    "b": "BIGINT",
    "i": "INT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "n": "DECIMAL(5,2)",
    "o": "BOOLEAN",
    "dt": "DATE",
    "ts": "TIMESTAMP",
    "a": "ARRAY<DECIMAL(5,2)>",
    "ad": "ARRAY<DATE>",
}
TABLE = f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, type_ in TYPES.items())})"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql(TABLE)
        yield opened


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("b", Decimal("1.9")),
        ("i", Fraction(7, 2)),
        ("i", 1.0),
        ("i", np.float32(1.9)),
        ("i", np.float64(2.0)),
        ("i", np.bool_(True)),
        ("i", "1_000"),
        ("i", "1.9"),
        ("i", Decimal("NaN")),
        ("d", 2**53 + 1),
        ("d", Decimal("1E400")),
        ("f", 1e300),
        ("n", Decimal("1.999")),
        ("n", 1.5),
        ("ts", pd.Timestamp(1577836800000000001)),
        ("ts", "2024-01-01T00:00:00.1234567"),
        ("ts", datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))),
        ("a", [Decimal("1.999")]),
    ],
)
def test_a_python_value_that_would_change_is_refused(
    db: Database, column: str, value: object
) -> None:
    with pytest.raises(UserError) as refusal:
        db.insert("t", [{column: value}])
    assert refusal.value.code in ("T001", "E010")
    assert db.read("t").rows() == []


@pytest.mark.parametrize(
    ("column", "value", "kept"),
    [
        ("b", Decimal("2.0"), 2),
        ("i", Fraction(6, 2), 3),
        ("i", np.int64(5), 5),
        ("i", " -12 ", -12),
        ("d", 2**53, float(2**53)),
        ("d", Decimal("0.1"), 0.1),
        ("f", float("inf"), float("inf")),
        ("n", "1.5", Decimal("1.50")),
        ("dt", date(9999, 12, 31), date(9999, 12, 31)),
        ("dt", date(1, 1, 1), date(1, 1, 1)),
        ("ts", datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_a_python_value_that_stays_what_it_is_is_taken(
    db: Database, column: str, value: object, kept: object
) -> None:
    db.insert("t", [{column: value}])
    assert db.sql(f"SELECT {column} FROM t").rows() == [(kept,)]


COLUMNS = {
    "decimals cut": ("b", pa.array([Decimal("1.9")])),
    "fractions cut": ("i", pa.array([1.9])),
    "fractions rounded to a decimal": ("n", pa.array([1.999])),
    "doubles beyond a float": ("f", pa.array([1e300])),
    "numbers that are neither 0 nor 1": ("o", pa.array([2])),
    "times of a day dropped": ("dt", pa.array([datetime(2024, 1, 1, 5)])),
    "nanoseconds dropped": ("ts", pa.array([1], pa.timestamp("ns"))),
    "rounded inside an array": ("a", pa.array([[1.999]])),
    "a day after the year 9999": ("dt", pa.array([2932897], pa.int32()).cast(pa.date32())),
    "a day before the year 1": ("dt", pa.array([-719163], pa.int32()).cast(pa.date32())),
    "a moment after the year 9999": ("ts", pa.array([253402300800000000], pa.timestamp("us"))),
    "a day in an array": ("ad", pa.array([[2932897]], pa.list_(pa.int32()))),
}
FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda rows: rows,
    "polars": lambda rows: pytest.importorskip("polars").from_arrow(rows),
    "pandas": lambda rows: rows.to_pandas(date_as_object=False),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", COLUMNS)
def test_a_column_that_would_change_is_refused(db: Database, what: str, form: str) -> None:
    column, values = COLUMNS[what]
    if what == "a day in an array":
        values = values.cast(pa.list_(pa.date32()))
    if "day" in what and form != "arrow" and column in ("dt", "ad", "ts"):
        pytest.skip("the library has no such day")
    with pytest.raises(UserError):
        db.insert("t", FORMS[form](pa.table({column: values})))
    assert db.read("t").rows() == []


def test_a_column_that_stays_what_it_is_is_taken(db: Database) -> None:
    given = {
        "i": [2.0, None],
        "n": [0.25, 1.5],
        "o": [1, 0],
        "dt": pd.to_datetime(["2024-01-02"] * 2),
    }
    db.insert("t", pd.DataFrame(given))
    assert sorted(db.sql("SELECT i, n, o, dt FROM t").rows(), key=repr) == [
        (2, Decimal("0.25"), True, date(2024, 1, 2)),
        (None, Decimal("1.50"), False, date(2024, 1, 2)),
    ]


def test_no_moment_outside_the_calendar_is_stored(open_db: Open, tmp_path: Path) -> None:
    """By an expression of a statement, by a view, or by building one over rows that are there."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, d DATE, n INT)")
        db.sql("CREATE VIEW v AS SELECT id, date_add(d, n) AS later FROM t")
        db.sql("CREATE VIEW g AS SELECT max(date_add(d, n)) AS latest FROM t")
        db.insert("t", [(1, date(9999, 12, 30), 1)])
        for statement in (
            "INSERT INTO t VALUES (2, date_add(DATE '9999-12-31', 1), 0)",
            "INSERT INTO t VALUES (2, DATE '9999-12-31', 1)",
            "UPDATE t SET d = date_sub(DATE '0001-01-01', 1)",
            "CREATE VIEW w AS SELECT date_add(d, 1 + n) AS later FROM t",
            "CREATE TABLE u AS SELECT date_add(d, 1 + n) AS later FROM t",
        ):
            with pytest.raises(UserError, match="outside the years 1 to 9999"):
                db.sql(statement)
        assert db.read("v").rows() == [(1, date(9999, 12, 31))]
        assert db.read("g").rows() == [(date(9999, 12, 31),)]
        with pytest.raises(UserError, match="outside the years 1 to 9999"):
            db.sql("SELECT date_add(d, 2) FROM t").rows()
        assert db.audit().ok


@pytest.mark.spark
def test_a_spark_frame_loses_nothing_either(spark: SparkSession, tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (i BIGINT, n DECIMAL(5,2), d DATE, a ARRAY<DATE>)")
        for select in (
            "CAST(1.9 AS DECIMAL(5,2)) AS i",
            "2.5D AS i",
            "1.999D AS n",
            "TIMESTAMP '2024-01-01 05:00:00' AS d",
            "date_add(DATE '9999-12-31', 1) AS d",
            "array(date_sub(DATE '0001-01-01', 1)) AS a",
            "array(TIMESTAMP '2024-01-01 05:00:00') AS a",
        ):
            with pytest.raises(UserError) as refusal:
                db.insert("t", spark.sql(f"SELECT {select}"))
            assert refusal.value.code in ("E010", "T001")
        frame = spark.sql("SELECT 2.0D AS i, 1.5D AS n, TIMESTAMP '2024-01-01 00:00:00' AS d")
        db.insert("t", frame)
        assert db.read("t").rows() == [(2, Decimal("1.50"), date(2024, 1, 1), None)]


def test_a_null_argument_makes_a_call_null(open_db: Open, tmp_path: Path) -> None:
    """Where Spark gives NULL for a NULL argument, whatever the others are."""
    calls = (
        *("split(s, NULL)", "split(s, ',', NULL)", "regexp_replace(s, NULL, 'x')"),
        *("substring(s, NULL, 1)", "substring(s, 1, NULL)", "s LIKE NULL", "s RLIKE NULL"),
        *(
            "lpad(s, NULL, 'x')",
            "date_format(d, NULL)",
            "overlay(s, 'x', NULL)",
        ),
    )
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (s STRING, d DATE)")
        items = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
        db.sql(f"CREATE VIEW v AS SELECT {items}, locate('a', s, NULL) AS z FROM t")
        db.insert("t", [("abc", date(2024, 1, 1))])
        assert db.read("v").rows() == [(*[None] * len(calls), 0)]


def test_a_null_argument_of_an_aggregate_is_nulls_or_refused(db: Database) -> None:
    """Spark gives NULL of these, and refuses the others."""
    calls = (
        "sum(NULL)",
        "avg(NULL)",
        "count(NULL)",
        "stddev(NULL)",
        "corr(NULL, d)",
        "bool_and(NULL)",
    )
    db.insert("t", [{"i": 1, "d": 2.0}])
    found = db.sql(f"SELECT {', '.join(f'{c} AS c{n}' for n, c in enumerate(calls))} FROM t")
    assert found is not None
    assert found.rows() == [(None, None, 0, None, None, None)]
    for call in (
        *("mode(i, NULL)", "percentile(i, NULL)", "max_by(i, NULL)"),
        *("lead(NULL, 1, 5) OVER (ORDER BY i)", "lag(i, NULL) OVER (ORDER BY i)"),
        *("ntile(NULL) OVER (ORDER BY i)", "nth_value(i, NULL) OVER (ORDER BY i)"),
    ):
        with pytest.raises(UserError):
            db.sql(f"SELECT {call} AS x FROM t")


def test_a_varchar_holds_what_it_holds_in_spark(open_db: Open, tmp_path: Path) -> None:
    """Texts of at most so many characters; blanks beyond that are cut, nothing else is."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(3))")
        db.sql("CREATE VIEW v AS SELECT id, s, length(s) AS n, CAST(id AS VARCHAR(1)) AS c FROM t")
        db.sql("INSERT INTO t VALUES (1, 'äöü'), (20, 'ab    '), (3, 'a'), (4, NULL)")
        db.insert("t", [(5, "b     ")])
        db.insert("t", pa.table({"id": pa.array([6], pa.int32()), "s": ["cd  "]}))
        for change in (
            lambda: db.sql("INSERT INTO t VALUES (9, 'abcd')"),
            lambda: db.sql("UPDATE t SET s = concat(s, 'xyz') WHERE id = 3"),
            lambda: db.insert("t", [(9, "abcd")]),
            lambda: db.upsert("t", [(3, " abc")]),
            lambda: db.insert("t", pd.DataFrame({"id": [9], "s": ["abcd"]})),
        ):
            with pytest.raises(UserError, match=r"VARCHAR\(3\)"):
                change()
        assert sorted(db.read("v").rows()) == [
            (1, "äöü", 3, "1"),
            (3, "a", 1, "3"),
            (4, None, None, "4"),
            (5, "b  ", 3, "5"),
            (6, "cd ", 3, "6"),
            (20, "ab ", 3, "20"),
        ]
    with open_db(tmp_path / "store") as db, pytest.raises(UserError, match=r"VARCHAR\(3\)"):
        db.insert("t", [(9, "abcd")])


@pytest.mark.parametrize("type_", ["CHAR(3)", "ARRAY<VARCHAR(3)>", "STRUCT<a: CHAR(2)>"])
def test_texts_that_spark_pads_are_refused(db: Database, type_: str) -> None:
    for statement in (
        f"CREATE TABLE u (c {type_})",
        f"CREATE FUNCTION f(x {type_}) RETURNS STRING RETURN 'a'",
    ):
        with pytest.raises(UserError) as refusal:
            db.sql(statement)
        assert refusal.value.code == "Q005"


def test_a_table_of_an_older_store_has_no_lengths() -> None:
    raw = {"name": "t", "columns": [["s", "string"]], "key": [], "not_null": []}
    assert table_from(raw).lengths == ()
    assert table_json(table_from(raw)) == raw


@pytest.mark.spark
def test_a_spark_frame_fits_a_varchar_too(spark: SparkSession, tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (s VARCHAR(3))")
        db.insert("t", spark.sql("SELECT 'ab     ' AS s UNION ALL SELECT NULL"))
        with pytest.raises(UserError, match=r"VARCHAR\(3\)"):
            db.insert("t", spark.sql("SELECT 'abcd' AS s"))
        assert sorted(db.read("t").rows(), key=repr) == [("ab ",), (None,)]


def test_decimals_below_one_are_written_with_a_zero(open_db, tmp_path):
    with open_db(tmp_path) as db:
        db.sql("CREATE TABLE t (d DECIMAL(2,2)); INSERT INTO t VALUES (0.25), (-0.25), (0), (NULL)")
        db.sql(
            "CREATE VIEW v AS SELECT CAST(d AS STRING) AS a, CAST(0.0 AS STRING) AS b, "
            "CAST(CAST(d AS DECIMAL(4,2)) AS STRING) AS c FROM t"
        )
        expected = {(x, "0.0", x) for x in ("0.25", "-0.25", "0.00", None)}
        assert set(db.read("v").rows()) == expected
        db.insert("t", [(None,)])
        assert set(db.read("v").rows()) == expected
