"""Values given beside the text: typed, and never read as SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev

HOSTILE = [
    "'; DROP TABLE t; --",
    "\\'; DROP TABLE t; --",
    "\\",
    "\\\\'",
    "it's",
    '"`',
    "?",
    ":a",
    "/* */ --",
    "\n\r\t",
    "é😀\u2028",
    "",
    " x ",
    "$$",
    "{{x}}",
    "\\u0041\\n\\x41",
]
VALUES = [
    *(0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63)),
    *(True, False, 1.5, -0.1, 1e300, 5e-324, float("inf")),
    *(Decimal("1.50"), Decimal("-1E+3"), Decimal("0.001"), Decimal(0), Decimal("9" * 38)),
    *(b"", b"\x00\xff'", date(2024, 2, 29), date(1, 1, 1)),
    *(datetime(2024, 1, 1, 3, 4, 5, 678), datetime(1969, 12, 31, 23, 59, 59, 999999)),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    with ev.open(tmp_path_factory.mktemp("parameters") / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, name STRING)")
        db.sql("CREATE VIEW names AS SELECT name, COUNT(*) AS n FROM t GROUP BY name")
        yield db


@pytest.mark.parametrize("value", [*VALUES, *HOSTILE], ids=repr)
def test_a_value_comes_back_as_it_went_in(db, value):
    [(by_place, by_name)] = [
        *db.sql("SELECT ? AS x, 1 AS y", [value]).rows(),
    ]
    assert by_place == value
    assert type(by_place) is type(value)
    assert by_name == 1
    assert db.sql("SELECT :a AS x", {"a": value}).rows() == [(value,)]
    assert db.sql("SELECT :a = :a AS x", {"a": value}).rows() == [(True,)]


def test_a_moment_with_a_zone_is_that_moment(db):
    moment = datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    [(x,)] = db.sql("SELECT ? AS x", [moment]).rows()
    assert x == moment
    assert x.astimezone(UTC) == moment


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
@settings(max_examples=100)
def test_no_text_is_read_as_sql(db, text):
    assert db.sql("SELECT ? AS x, ':a' AS y", [text]).rows() == [(text, ":a")]


def test_statements_take_values_and_tell_how_many_rows_they_changed(db):
    hostile = HOSTILE[0]
    assert (
        db.sql(
            "INSERT INTO t VALUES (?, ?), (?, :x)".replace(":x", "?"), [1, hostile, 2, "b"]
        ).changed
        == 2
    )
    assert db.sql("UPDATE t SET name = :n WHERE id = :i", {"n": "c'", "i": 2}).changed == 1
    merged = db.sql(
        "MERGE INTO t USING (SELECT :i AS id, :n AS name UNION ALL SELECT 3, 'd') AS s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
        {"i": 1, "n": "\\'"},
    )
    assert merged.changed == 2
    assert sorted(db.read("t").rows()) == [(1, "\\'"), (2, "c'"), (3, "d")]
    assert sorted(db.read("names").rows()) == [("\\'", 1), ("c'", 1), ("d", 1)]
    assert db.sql("SELECT id FROM t WHERE name IN (?, ?) ORDER BY id", ["d", "c'"]).rows() == [
        (2,),
        (3,),
    ]
    assert db.sql("DELETE FROM t WHERE (id, name) = (?, ?)", [3, "d"]).changed == 1
    assert db.sql("DELETE FROM t WHERE id > ? OR name IS NULL", [0]).changed == 2
    assert db.sql("DELETE FROM t WHERE id > ?", [0]).rows() == [(0,)]
    assert db.audit().ok


def test_values_are_taken_in_the_order_of_the_text(db):
    text = "WITH a AS (SELECT ? AS x) SELECT ? AS p, x, (SELECT ? AS z) AS q FROM a "
    text += "WHERE ? > 3 LIMIT ?"
    assert db.sql(text, [1, 2, 3, 4, 5]).rows() == [(2, 1, 3)]
    assert db.sql("SELECT -? AS x, 1 - ? AS y, ? - ? AS z", [-1, -2, -3, -4]).rows() == [(1, 3, 1)]


def test_a_parameter_in_a_row_value_is_one_value(db):
    found = db.sql("SELECT (1, 2) < (?, ?) AS x, (1, 5) < (?, ?) AS y", [1, 3, 1, 4]).rows()
    assert found == [(True, False)]


def test_other_dialects_take_them_by_name(db):
    assert db.sql("SELECT :a / 2 AS x", {"a": 5}, dialect="postgres").rows() == [(2,)]


BAD = [
    ("SELECT ? AS x", [], "0 values are given for 1"),
    ("SELECT ? AS x", [1, 2], "2 values are given for 1"),
    ("SELECT 1 AS x", [1], "1 values are given for 0"),
    ("SELECT :a AS x", [1], "which is a list"),
    ("SELECT :a AS x", {"b": 1}, "no value for :a"),
    ("SELECT :a AS x", {"a": 1, "b": 1}, "no parameter :b"),
    ("SELECT ? AS x", {"a": 1}, "no value for ?"),
    ("SELECT ? AS x", None, "has no value here"),
    ("SELECT ? AS x", "a", "must be a list or a dict"),
    ("SELECT ? AS x", 7, "must be a list or a dict"),
    ("SELECT ? AS x", {1: 2}, "must be a string"),
    pytest.param("SELECT ? AS x", [object()], "cannot have the value", id="an object"),
    ("SELECT ? AS x", [[1]], "cannot have the value"),
    ("SELECT ? AS x", [timedelta(1)], "cannot have the value"),
    ("SELECT ? AS x", [Decimal("NaN")], "cannot have the value"),
    ("SELECT ? AS x", [10**38], "cannot have the value"),
    ("SELECT ? AS x", [datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))], "cannot have"),
    ("SELECT ? AS x", [pd.NaT], "cannot have the value"),
    ("SELECT ? AS x", [pd.Timestamp("2024-01-01 00:00:00.123456789")], "cannot have the value"),
    ("SELECT ? AS x", ["\ud800"], "surrogate"),
    ("SELECT * FROM ?", ["t"], "where a name is expected"),
    ("SELECT id FROM t ORDER BY ?", [1], "where a name is expected"),
    ("SELECT id FROM t GROUP BY ?", [1], "where a name is expected"),
    ("SELECT id:a FROM t", {"a": "x"}, "where a name is expected"),
    ("CREATE VIEW v AS SELECT id FROM t WHERE id = ?", [1], "has no parameters"),
    ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x + ?", [1], ""),
    ("DROP TABLE ?", ["t"], ""),
    ("SELECT ? / 2 AS x", [1], None),
]


@pytest.mark.parametrize(("text", "params", "problem"), BAD, ids=str)
def test_bad_parameters_are_refused_and_change_nothing(db, text, params, problem):
    before = db.epoch
    if problem is None:
        with pytest.raises(ev.UserError, match="write :name"):
            db.sql(text, params, dialect="postgres")
        return
    with pytest.raises(ev.UserError) as caught:
        db.sql(text, params)
    assert problem in caught.value.problem
    assert caught.value.remedy
    assert db.epoch == before


def test_an_error_shows_the_text_that_was_written(db):
    with pytest.raises(ev.UserError) as caught:
        db.sql("SELECT nope, ? AS x FROM t", ["secret"])
    assert caught.value.span.stretch == "nope"
    assert "secret" not in caught.value.render()


def test_a_query_that_fills_a_table_takes_values(tmp_path, open_db):
    with open_db(tmp_path / "s") as db:
        db.sql(
            "CREATE TABLE made AS SELECT ? AS a, :b AS b".replace(":b", "?"),
            ["x'\\", Decimal("1.5")],
        )
        assert db.read("made").rows() == [("x'\\", Decimal("1.5"))]
        for value in (
            "\\'; --",
            "a\\",
            date(2024, 1, 2),
            datetime(2024, 1, 2),
            1.25,
            2**40,
            b"\0",
            True,
        ):
            assert db.sql("SELECT ? AS x FROM made WHERE a = ?", [value, "x'\\"]).rows() == [
                (value,)
            ]
        assert db.sql("UPDATE made SET a = ?", ["?"]).changed == 1
        assert db.sql("INSERT INTO made VALUES (?, ?), (?, ?)", ["a", None, "b", 1]).changed == 2
        assert sorted(db.read("made").rows(), key=str) == [
            ("?", Decimal("1.5")),
            ("a", None),
            ("b", Decimal("1.0")),
        ]
