"""Text of another dialect means what it means there, or is refused by name."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import everview as ev
from cases import check_each
from everview.database.database import Database
from everview.errors import UserError

if TYPE_CHECKING:
    from conftest import Open

COLUMNS = (
    "i INT, j INT, z INT, n DECIMAL(10,2), f DOUBLE, s STRING, d DATE, e DATE, ts TIMESTAMP_NTZ"
)
ROW = (
    *(-7, 2, None, Decimal("2.50"), 2.5, "a\\B%c", date(2024, 1, 7), date(2023, 12, 31)),
    datetime(2024, 1, 31, 23, 0, 1),
)
NAMES = ("i", "j", "z", "n", "f", "s", "d", "e", "ts")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("dialects") / "store"
    with ev.open(str(path), engine="duckdb") as opened:
        opened.sql(f"CREATE TABLE t ({COLUMNS})")
        opened.insert("t", [ROW])
        yield opened


def asked(db: Database, expression: str, dialect: str) -> Any:
    result = db.sql(f"SELECT {expression} AS x FROM t", dialect=dialect)
    assert result is not None
    return result.rows()[0][0]


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=1e-12)
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return bool(ours) == bool(theirs)
    return bool(ours == theirs)


ARITHMETIC = (
    *("i / j", "j / i", "7 / 2", "i % j", "z / j", "i / z", "f / j", "i / f", "(i + 1) / j"),
    *("abs(i) / j", "-i / j", "coalesce(z, i) / j", "CASE WHEN i > 0 THEN i ELSE j END / 4"),
    *("CAST(i AS INTEGER) / j", "length(s) / j", "count(*) / 2", "sum(i) / 2", "avg(i)", "avg(f)"),
    *("max(i) / 2", "i / j * 1.0e0", "(SELECT max(i) FROM t) / 2"),
)
TEXTS = (
    *(
        "s || 'x'",
        "s || z",
        "s LIKE 'a\\B%'",
        "s LIKE 'A%'",
        "s LIKE s",
        "s LIKE 'a_B|%%' ESCAPE '|'",
    ),
    *(
        "substr(s, 2, 2)",
        "substr(s, -2)",
        "upper(s)",
        "lower(s)",
        "length(s)",
        "replace(s, 'a', 'b')",
    ),
)
"""What SQLite and DuckDB both read."""
OF_DUCKDB = (
    *("n / 3", "i / n", "i // j", "avg(n)", "round(f)", "round(n)", "CAST(n AS INTEGER)"),
    *("CAST(f AS INTEGER)", "CAST(-n AS BIGINT)", "CAST(3.5 AS INTEGER)", "concat(s, z, i)"),
    *("greatest(i, z)", "least(i, z, j)", "log(100)", "2 ^ 3", "xor(5, 3)", "d - e", "d + 1"),
    *("d + INTERVAL 1 DAY", "ts - INTERVAL 1 MONTH", "extract(dow FROM d)", "dayofweek(d)"),
    *("extract(isodow FROM d)", "extract(second FROM ts)", "extract(week FROM d)", "week(d)"),
    *("date_diff('month', e, d)", "date_diff('year', e, d)", "date_diff('day', e, d)"),
    *("date_diff('quarter', e, d)", "CAST(s AS VARCHAR(2))", "CAST(n AS VARCHAR)", "stddev(f)"),
    *("concat_ws('-', s, z, 'x')", "regexp_replace('abcb', 'b', 'x', 'g')", "strftime(d, '%Y-%m')"),
    *("make_date(2024, 1, 2)", "split_part('a,b', ',', 2)", "lpad('a', 3, '*')", "last_day(d)"),
    *("s ILIKE 'A%'", "left(s, 2)", "right(s, 2)", "i % n", "sum(n)", "i & 3", "n * 2"),
)
OF_SQLITE = (
    *("max(i, z)", "min(i, j)", "CAST(f AS INTEGER)", "CAST(-2.7 AS INTEGER)", "round(f)"),
    *("i / 0", "i % 0", "f / 0", "s LIKE '%b%'", "s NOT LIKE 'A%'", "'É' LIKE 'é'", "lower('É')"),
    *("0.1 + 0.2", "round(2.567, 2)", "min(i, j, z)", "s || i", "trim(s, 'ac')", "instr(s, 'c')"),
    *("log(100)", "ifnull(z, i) / j", "1.5 / 2", "iif(i > 0, i, j) / 3"),
)


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (i INT, j INT, z INT, n REAL, f REAL, s TEXT, d, e, ts)")
    connection.execute(
        "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, NULL)", (*ROW[:3], 2.5, *ROW[4:6])
    )
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def ducks() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS.replace('TIMESTAMP_NTZ', 'TIMESTAMP')})")
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(ROW))})", ROW)
        yield connection


def test_text_of_sqlite_means_what_sqlite_says(db: Database, sqlite: sqlite3.Connection) -> None:
    def check(expression: str) -> None:
        wanted = sqlite.execute(f"SELECT {expression} AS x FROM t").fetchone()[0]
        assert same(asked(db, expression, "sqlite"), wanted)

    check_each((*ARITHMETIC, *TEXTS, *OF_SQLITE), check)


def test_text_of_duckdb_means_what_duckdb_says(
    db: Database, ducks: duckdb.DuckDBPyConnection
) -> None:
    def check(expression: str) -> None:
        wanted = ducks.execute(f"SELECT {expression} AS x FROM t").fetchall()[0][0]
        assert same(asked(db, expression, "duckdb"), wanted)

    check_each((*ARITHMETIC, *TEXTS, *OF_DUCKDB), check)


SAYS = {
    # Asked of PostgreSQL 15.
    "postgres": {
        "i / j": -3,
        "7 / 2": 3,
        "i % j": -1,
        "f / j": 1.25,
        "avg(i)": -7.0,
        "CAST(n AS INT)": 3,
        "CAST(f AS INT)": 2,
        "CAST(-n AS INT)": -3,
        "(f + 1)::bigint": 4,
        "round(f)": 2.0,
        "round(n)": Decimal(3),
        "s || NULL": None,
        "concat('a', NULL, 1)": "a1",
        "greatest(1, NULL)": 1,
        "log(100)": 2.0,
        "2 ^ 3": 8.0,
        "5 # 3": 6,
        "d - e": 7,
        "d + interval '1 day'": datetime(2024, 1, 8),
        "d + 1": date(2024, 1, 8),
        "extract(dow FROM d)": 0,
        "extract(isodow FROM d)": 7,
        "extract(week FROM date '2024-01-01')": 1,
        "s LIKE 'a\\\\B%'": True,
        "'abc'::varchar(2)": "ab",
        "n::text": "2.50",
        "length('é')": 1,
        "(d - e) / 2": 3,
        "extract(year FROM d)::int / 10": 202,
        "floor(f)::int / 2": 1,
        "floor(f) / 2": 1.0,
        "date_trunc('month', ts)::text": "2024-01-01 00:00:00",
    },
    # https://dev.mysql.com/doc/refman/8.0/en/
    "mysql": {
        "i DIV j": -3,
        "i DIV 0": None,
        "i % 0": None,
        "i MOD j": -1,
        "f / j": 1.25,
        "avg(i)": Decimal("-7.0000"),
        "CAST(n AS SIGNED)": 3,
        "concat('a', NULL)": None,
        "greatest(1, NULL)": None,
        "LENGTH('é')": 2,
        "CHAR_LENGTH('é')": 1,
        "LOG(1)": 0.0,
        "DAYOFWEEK(d)": 1,
        "5 ^ 3": 6,
    },
    # https://trino.io/docs/current/functions/
    "trino": {
        "i / j": -3,
        "7 / 2": 3,
        "avg(i)": -7.0,
        "CAST(n AS INTEGER)": 3,
        "greatest(1, NULL)": None,
        "concat('a', NULL)": None,
        "day_of_week(d)": 7,
        "date_diff('month', e, d)": 0,
        "date_diff('day', e, d)": 7,
        "year(d) / 10": 202,
        "date_diff('day', e, d) / 2": 3,
        "CAST('abc' AS VARCHAR(2))": "ab",
        "s LIKE 'a\\B%'": True,
    },
    # https://learn.microsoft.com/sql/t-sql/
    "tsql": {
        "i / j": -3,
        "7 / 2": 3,
        "avg(i)": -7,
        "avg(i + j)": -5,
        "CAST(n AS INT)": 2,
        "CONVERT(INT, f)": 2,
        "s + 'x'": "a\\B%cx",
        "s + NULL": None,
        "concat('a', NULL)": "a",
        "LEN('ab  ')": 2,
        "LOG(1)": 0.0,
        "DATEDIFF(month, e, d)": 1,
        "DATEDIFF(year, e, d)": 1,
        "DATEDIFF(day, e, d)": 7,
    },
    # https://cloud.google.com/bigquery/docs/reference/standard-sql/
    "bigquery": {
        "i / j": -3.5,
        "DIV(i, j)": -3,
        "avg(i)": -7.0,
        "CAST(f AS INT64)": 3,
        "CAST(-2.5 AS INT64)": -3,
        "CAST('1.25' AS NUMERIC)": Decimal("1.250000000"),
        "greatest(1, NULL)": None,
        "concat('a', NULL)": None,
        "EXTRACT(DAYOFWEEK FROM d)": 1,
        "DATE_DIFF(d, e, MONTH)": 1,
    },
    # https://docs.snowflake.com/en/sql-reference/
    "snowflake": {
        "f / j": 1.25,
        "i % j": -1,
        "n::int": Decimal(3),
        "greatest(1, NULL)": None,
        "dayofweek(d)": 0,
        "datediff(month, e, d)": 1,
        "concat('a', NULL)": None,
    },
}
"""What the documentation of each dialect, or the engine itself, says of the row above."""


@pytest.mark.parametrize("dialect", SAYS)
def test_an_expression_means_what_its_dialect_says(db: Database, dialect: str) -> None:
    def check(expression: str) -> None:
        assert same(asked(db, expression, dialect), SAYS[dialect][expression])

    check_each(SAYS[dialect], check)


REFUSED = {
    "postgres": {
        "n / 3": "/ of decimals",
        "sqrt(f) / nullif(d, d)": "/ of numbers of a type that is not known",
        "substring(s, 0, 2)": "SUBSTRING",
        "substring(s, i, 2)": "SUBSTRING",
        "left(s, -1)": "LEFT",
        "extract(epoch FROM ts)": "EXTRACT of EPOCH",
        "f::text": "the text of a fraction",
        "s || f": "the text of a fraction",
        "CAST(n AS NUMERIC)": "a DECIMAL without a number of digits",
        "CAST(s AS CHAR(3))": "a cast to CHAR",
    },
    "sqlite": {
        "n / 2": "/ of decimals",
        "f % 2": "% of float numbers",
        "date(s)": "the function DATE",
        "date(s, '+1 month')": "the function DATE",
    },
    "duckdb": {
        "weekday(d)": "the function WEEKDAY",
        "monthname(d)": "the function MONTHNAME",
        "list(i)": "the function ARRAY_AGG",
        "regexp_replace(s, 'a', 'b')": "REGEXP_REPLACE of the first match",
        "date_diff('week', e, d)": "units of WEEK",
        "date_add(d, INTERVAL 1 DAY)": "this sum of a moment and an interval",
    },
    "mysql": {"i / j": "/ of integers", "n / 2": "/ of decimals", "WEEK(d)": "the week"},
    "trino": {"CAST(f AS INTEGER)": "a cast to an integer", "avg(n)": "AVG of decimal numbers"},
    "tsql": {"s LIKE '[ab]%'": "[ in a pattern", "DATEDIFF(week, e, d)": "units of WEEK"},
    "bigquery": {"DATE_TRUNC(d, WEEK)": "the beginning of a week", "n / 2": "/ of decimals"},
    "snowflake": {"i / j": "/ of integers", "avg(i)": "AVG of integer numbers"},
    "oracle": {"i / j": "/ of integers", "avg(i)": "AVG", "s || z": "a NULL among texts"},
    "clickhouse": {"i / j": "/ of integers", "greatest(i, z)": "GREATEST", "i % j": "%"},
}


@pytest.mark.parametrize("dialect", REFUSED)
def test_what_has_another_meaning_is_refused_by_name(db: Database, dialect: str) -> None:
    def check(expression: str) -> None:
        with pytest.raises(UserError) as refusal:
            asked(db, expression, dialect)
        assert refusal.value.code == "Q002"
        assert REFUSED[dialect][expression] in refusal.value.problem
        assert dialect in refusal.value.problem

    check_each(REFUSED[dialect], check)


DIVIDED = (
    "SELECT i / 2 AS x FROM t",
    "SELECT t.i / 2 AS x FROM t",
    "SELECT a.i / b.j AS x FROM t a JOIN t b ON a.d = b.d",
    "SELECT q.y / 2 AS x FROM (SELECT i AS y FROM t) q",
    "SELECT y / 2 AS x FROM (SELECT i FROM t) AS q(y)",
    "WITH c AS (SELECT i, j FROM t), e(k) AS (SELECT i FROM c) SELECT k / 2 AS x FROM e",
    "SELECT y / 2 AS x FROM (SELECT i AS y FROM t UNION ALL SELECT i FROM t WHERE i > 0) q",
    "SELECT y / 2 AS x FROM (SELECT * FROM (SELECT i AS y FROM t) p) q",
    "SELECT (SELECT sum(i) / 2 FROM t u WHERE u.d = t.d) AS x FROM t",
    "SELECT max(i / 2) OVER () AS x FROM t",
    "SELECT sum(i) OVER (PARTITION BY j) / 2 AS x FROM t",
    "SELECT i / 2 AS x FROM t WHERE i / 2 = -3 GROUP BY i HAVING i / 2 < 0",
    "SELECT v.y / 2 AS x FROM (VALUES (-7)) AS v(y)",
)


@pytest.mark.parametrize("query", DIVIDED)
def test_types_are_found_through_queries(db: Database, query: str) -> None:
    result = db.sql(query, dialect="postgres")
    assert result is not None
    assert result.rows()[0][0] == -3


def test_every_statement_has_its_meaning(open_db: Open, tmp_path: Path) -> None:
    """What a text declares is known to what follows it, and so is what is there already."""
    with open_db(tmp_path / "store") as db:
        db.sql(
            """
            CREATE TABLE a (k INTEGER PRIMARY KEY, v INTEGER, w DOUBLE PRECISION);
            CREATE VIEW h AS SELECT k, v / 2 AS half, w / 2 AS part FROM a;
            CREATE VIEW hh (k, quarter) AS SELECT k, half / 2 FROM h;
            INSERT INTO a VALUES (1, 7 / 2, 7.0::float8 / 2), (2, 9, 9);
            INSERT INTO a SELECT k + 2, v / 2, w FROM a;
            UPDATE a SET v = v / 2 WHERE k / 2 = 1;
            DELETE FROM a WHERE v / 4 = 1 AND k = 2;
            """,
            dialect="postgres",
        )
        assert sorted(db.read("a").rows()) == [(1, 3, 3.5), (3, 0, 3.5), (4, 4, 9.0)]
        assert sorted(db.read("h").rows()) == [(1, 1, 1.75), (3, 0, 1.75), (4, 2, 4.5)]
        assert sorted(db.read("hh").rows()) == [(1, 0), (3, 0), (4, 1)]
        assert db.sql("SELECT quarter / 1 AS x FROM hh WHERE k = 4", dialect="postgres").rows() == [
            (1,)
        ]
        assert db.audit().ok


@pytest.mark.parametrize(
    ("dialect", "first", "last"),
    [
        ("postgres", 1, None),
        ("duckdb", 1, 1),
        ("trino", 1, 1),
        ("snowflake", 1, None),
        ("sqlite", None, 2),
        ("mysql", None, 2),
        ("tsql", None, 2),
        ("bigquery", None, 2),
    ],
)
def test_nulls_are_ordered_as_in_the_dialect(
    tmp_path: Path, dialect: str, first: int | None, last: int | None
) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE o (x INT)")
        db.insert("o", [(2,), (1,), (None,)])
        limit = "OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY" if dialect == "tsql" else "LIMIT 1"
        upwards = db.sql(f"SELECT x FROM o ORDER BY x {limit}", dialect=dialect).rows()
        ranks = "SELECT x, ROW_NUMBER() OVER (ORDER BY x DESC) AS r FROM o"
        downwards = [x for x, r in db.sql(ranks, dialect=dialect).rows() if r == 1]
        assert upwards == [(first,)]
        assert downwards == [{1: 2}.get(last or 0, last)]


@pytest.mark.parametrize(
    ("dialect", "declared", "stored"),
    [
        ("bigquery", "NUMERIC", "decimal(38,9)"),
        ("bigquery", "FLOAT64", "double"),
        ("duckdb", "DECIMAL", "decimal(18,3)"),
        ("mysql", "NUMERIC", "decimal(10,0)"),
        ("trino", "DECIMAL", "decimal(38,0)"),
        ("tsql", "DECIMAL", "decimal(18,0)"),
        ("tsql", "FLOAT", "double"),
        ("tsql", "MONEY", "decimal(19,4)"),
        ("snowflake", "NUMBER", "decimal(38,0)"),
        ("sqlite", "INTEGER", "bigint"),
        ("sqlite", "REAL", "double"),
        ("postgres", "NUMERIC(12,4)", "decimal(12,4)"),
        ("postgres", "REAL", "float"),
        ("postgres", "NUMERIC", None),
        ("risingwave", "NUMERIC", None),
        ("materialize", "NUMERIC", None),
        ("redshift", "NUMERIC", None),
        ("oracle", "NUMBER", None),
        ("sqlite", "NUMERIC", None),
        ("bigquery", "BIGNUMERIC", None),
        ("bigquery", "BIGNUMERIC(12, 3)", "decimal(12,3)"),
        ("postgres", "TIME", None),
        ("postgres", "CHAR(3)", None),
        ("postgres", "VARCHAR(3)", "string"),
        ("sqlite", "CHAR(3)", "string"),
        ("duckdb", "VARCHAR(3)", "string"),
        ("mysql", "FLOAT", None),
    ],
)
def test_a_declared_type_keeps_every_digit_or_is_refused(
    tmp_path: Path, dialect: str, declared: str, stored: str | None
) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        statement = f"CREATE TABLE u (x {declared})"
        if stored is None:
            with pytest.raises(UserError) as refusal:
                db.sql(statement, dialect=dialect)
            assert refusal.value.code == "Q002"
            return
        db.sql(statement, dialect=dialect)
        assert db.catalog.schema("u")[0].type == stored


@pytest.mark.parametrize(
    ("dialect", "literal", "value"),
    [
        ("bigquery", "NUMERIC '1.5'", "1.500000000"),
        ("bigquery", "DECIMAL '22910.4'", "22910.400000000"),
        ("duckdb", "DECIMAL '1.5'", "1.500"),
        ("bigquery", "BIGNUMERIC '1.5'", None),
        *((each, "NUMERIC '1.5'", None) for each in ("postgres", "risingwave", "trino", "mysql")),
        *((each, "DECIMAL '1.5'", None) for each in ("presto", "hive", "databricks", "spark")),
        (None, "NUMERIC '1.5'", None),
    ],
)
def test_a_literal_of_decimals_keeps_every_digit_or_is_refused(
    tmp_path: Path, dialect: str | None, literal: str, value: str | None
) -> None:
    """In Trino its type follows from its digits, and Spark has none; a cast would round it."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        text = f"SELECT {literal} AS x"
        if value is None:
            with pytest.raises(UserError) as refusal:
                db.sql(text, dialect=dialect)
            assert refusal.value.code in ("Q001", "Q002")
            return
        assert [str(x) for (x,) in db.sql(text, dialect=dialect).rows()] == [value]
