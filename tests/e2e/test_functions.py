"""Functions that a user writes: in SQL on every engine, in Python on Spark."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev

SETUP = """
CREATE TABLE t (k INT, v INT, s STRING);
CREATE FUNCTION twice(x INT) RETURNS BIGINT RETURN x * 2;
CREATE FUNCTION apart(a INT, b INT) RETURNS INT RETURN CASE WHEN a > b THEN a - b ELSE b - a END;
CREATE FUNCTION both(a INT, b INT) RETURNS BIGINT RETURN twice(a) + twice(b) - apart(a, b)
"""


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql(SETUP)
        opened.insert("t", [(1, 2, "a"), (3, -1, None), (None, 4, "")])
        yield opened


def test_a_view_that_calls_functions_equals_its_query_with_their_bodies(db):
    db.sql(
        "CREATE VIEW v AS SELECT k, both(k, v - 1) AS z, twice(k) FROM t WHERE apart(k, v) > 0;"
        "CREATE VIEW sums AS SELECT TWICE(k) AS k, SUM(twice(v)) AS z FROM t GROUP BY twice(k)"
    )
    assert db.catalog.schema("v")[2].name == "twice(k)"
    assert Counter(db.read("v").rows()) == Counter([(1, 4, 2), (3, -3, 6)])
    db.insert("t", [(1, 5, "x")])
    db.delete("t", [(3, -1, None)])
    assert Counter(db.read("v").rows()) == Counter([(1, 4, 2), (1, 7, 2)])
    assert Counter(db.read("sums").rows()) == Counter([(2, 14), (None, 8)])
    assert db.audit().ok


def test_statements_may_call_functions(db):
    assert db.sql("SELECT SUM(twice(v)) AS z FROM t").rows() == [(10,)]
    db.sql("UPDATE t SET v = CAST(twice(v) AS INT) WHERE twice(k) = 2")
    db.sql("DELETE FROM t WHERE twice(k) = 6; INSERT INTO t SELECT k, apart(k, v), s FROM t")
    assert Counter(db.read("t").rows()) == Counter(
        [(1, 4, "a"), (1, 3, "a"), (None, 4, ""), (None, None, "")]
    )


def test_a_function_may_hold_a_lambda_of_its_own(db):
    db.sql("CREATE FUNCTION more(x ARRAY<INT>) RETURNS ARRAY<INT> RETURN transform(x, e -> e + 1)")
    assert db.sql("SELECT more(array(k, v)) AS z FROM t WHERE k = 1").rows() == [([2, 3],)]


def test_a_function_that_is_called_stays_as_it_is(db, tmp_path):
    db.sql("CREATE VIEW v AS SELECT twice(k) AS z FROM t")
    for text in (
        "DROP FUNCTION twice",
        "CREATE OR REPLACE FUNCTION twice(x INT) RETURNS BIGINT RETURN x * 3",
    ):
        with pytest.raises(ev.UserError) as caught:
            db.sql(text)
        assert caught.value.code == "C003"
        assert "v" in caught.value.problem
    db.sql("CREATE OR REPLACE FUNCTION apart(a INT, b INT) RETURNS INT RETURN a")
    assert db.sql("SELECT apart(7, 1) AS z").rows() == [(7,)]
    assert db.sql("SELECT both(7, 1) AS z").rows() == [(10,)]
    db.sql("DROP VIEW v; DROP FUNCTION twice; DROP FUNCTION IF EXISTS twice")
    with pytest.raises(ev.UserError):
        db.sql("SELECT twice(1) AS z")


def test_functions_are_there_when_the_store_is_opened_again(open_db, tmp_path):
    path = tmp_path / "store"
    with open_db(path) as db:
        db.sql(SETUP)
        db.sql("CREATE VIEW v AS SELECT twice(k) AS z FROM t")
    with open_db(path) as db:
        db.insert("t", [(4, 1, "")])
        assert db.read("v").rows() == [(8,)]
        assert db.sql("SELECT twice(k) AS z FROM t").rows() == [(8,)]
        with pytest.raises(ev.UserError):
            db.sql("DROP FUNCTION twice")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE FUNCTION twice(x INT) RETURNS INT RETURN x", "C001"),
        ("CREATE FUNCTION upper(x INT) RETURNS INT RETURN x", "Q022"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x + y", "Q022"),
        ("CREATE FUNCTION f(x INT, X INT) RETURNS INT RETURN x", "Q022"),
        ("CREATE FUNCTION f(x INT) RETURNS DOUBLE RETURN x + rand()", "Q022"),
        ("CREATE FUNCTION f(x INT) RETURNS BIGINT RETURN SUM(x)", "Q022"),
        ("CREATE FUNCTION f(x INT) RETURNS BIGINT RETURN (SELECT MAX(k) FROM t)", "Q022"),
        ("CREATE FUNCTION f(x INT) RETURNS TABLE (y INT) RETURN SELECT x", "Q003"),
        ("CREATE FUNCTION f(x INTERVAL DAY) RETURNS INT RETURN 1", "Q005"),
        (
            "CREATE FUNCTION f(x ARRAY<INT>, y INT) RETURNS ARRAY<INT>"
            " RETURN transform(x, e -> e + y)",
            "Q022",
        ),
        ("SELECT twice(1, 2) AS z", "Q012"),
        ("DROP FUNCTION nothing", "C002"),
    ],
)
def test_what_cannot_be_a_function_is_refused(db, text, code):
    with pytest.raises(ev.UserError) as caught:
        db.sql(text)
    assert caught.value.code == code


@pytest.mark.spark
def test_a_deterministic_function_in_python_may_be_called_on_spark(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (k INT, v INT)")
        with pytest.raises(ev.UserError) as caught:
            db.function("collatz", lambda n: n, "int")
        assert caught.value.code == "Q021"
        db.function(
            "collatz",
            lambda n: None if n is None else n // 2 if n % 2 == 0 else 3 * n + 1,
            "int",
            deterministic=True,
        )
        db.sql("CREATE VIEW v AS SELECT collatz(k) AS c, SUM(v) AS z FROM t GROUP BY collatz(k)")
        db.insert("t", [(1, 1), (8, 2), (None, 3), (3, 4)])
        db.delete("t", [(3, 4)])
        assert Counter(db.read("v").rows()) == Counter([(4, 3), (None, 3)])
        assert db.audit().ok


def test_a_function_in_python_is_refused_by_the_embedded_engine(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        with pytest.raises(ev.UserError) as caught:
            db.function("f", lambda x: x, "int", deterministic=True)
        assert caught.value.code == "E012"
