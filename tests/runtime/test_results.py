"""A result shows, counts and hands over its rows, and reads no more than it is asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import everview as ev
from everview.runtime.results import Result, rows_changed


def endless(size):
    """More rows than anybody could hold."""
    at = 0
    while True:
        yield pa.record_batch({"n": pa.array(range(at, at + size), pa.int64())})
        at += size


def whole():
    raise AssertionError("all rows were read")


@pytest.fixture
def db(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, name STRING)")
        db.insert("t", [(1, "a"), (1, "a"), (2, None), (3, "<script>alert('x')</script>&\"")])
        yield db


@pytest.mark.parametrize("text", [None, "SELECT * FROM t", "SELECT id, name FROM t ORDER BY id"])
def test_each_form_has_the_same_rows(db, text):
    result = db.read("t") if text is None else db.sql(text)
    rows = sorted(result.rows(), key=str)
    assert len(result) == len(rows) == 4
    assert result.columns == ("id", "name")
    assert sorted(result, key=str) == rows
    assert sorted(pa.table(result).to_pylist(), key=str) == [{"id": i, "name": n} for i, n in rows]
    assert sorted(pa.RecordBatchReader.from_stream(result).read_all().num_rows for _ in "a") == [4]


def test_no_rows_have_columns_still(db):
    for result in (db.sql("SELECT * FROM t WHERE id > 9"), db.sql("SELECT id FROM t LIMIT 0")):
        assert len(result) == 0
        assert list(result) == []
        assert result
        assert pa.table(result).column_names == list(result.columns)
        assert f"<th>{result.columns[0]}</th>" in result._repr_html_()


def test_html_is_text(db):
    db.sql("CREATE VIEW odd AS SELECT name AS `<b>&` FROM t")
    shown = db.sql("SELECT name AS n, id FROM t")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;" in shown
    assert "<i>NULL</i>" in shown
    assert "<th>&lt;b&gt;&amp;</th>" in db.sql("SELECT name AS `<b>&` FROM t")._repr_html_()


def test_only_the_first_rows_are_read_to_be_shown():
    result = Result(whole, stream=endless, named=lambda: ("n",))
    shown = result._repr_html_()
    assert shown.count("<tr>") == 21
    assert "and more rows" in shown
    assert next(iter(result)) == (0,)
    reader = pa.RecordBatchReader.from_stream(result)
    assert reader.read_next_batch().num_rows == 65_536
    assert result.columns == ("n",)
    assert "and more rows" in repr(result)


def test_a_long_value_is_cut_in_html():
    text = "<" * 10_000
    shown = Result(lambda: pa.table({"a": [text]}))._repr_html_()
    assert len(shown) < 2_000


def test_the_number_of_a_stored_relation_is_known_without_reading(db):
    counted = Result(whole, stream=lambda _: whole(), counted=lambda: 7)
    assert len(counted) == 7
    assert len(db.read("t")) == 4
    db.sql("DELETE FROM t WHERE id = 1")
    assert len(db.read("t")) == 2


def test_a_statement_says_what_it_changed():
    assert repr(rows_changed(3)) == "<Result: 3 rows changed>"
    assert rows_changed(3).rows() == [(3,)]


def test_its_text_is_a_table_of_the_first_rows(db):
    db.sql("CREATE TABLE wide (id INT, name STRING)")
    assert repr(db.read("wide")).splitlines()[1] == "│ id │ name │"
    db.insert("wide", [(i, "x" * 1_000 + "\n\x1b[31m") for i in range(100)])
    lines = repr(db.sql("SELECT * FROM wide ORDER BY id")).splitlines()
    assert len(lines) == 3 + 20 + 2
    assert max(map(len, lines)) == 100
    assert lines[3].startswith("│ 0")
    assert lines[-1] == "… and more rows"
    assert "\x1b" not in repr(db.sql("SELECT '\x1b[31m' AS x"))
    assert "NULL" in repr(db.sql("SELECT CAST(NULL AS INT) AS x"))
    unread = db.read("wide")
    db.close()
    assert "closed" in repr(unread)


def test_polars_takes_it(db):
    polars = pytest.importorskip("polars", reason="polars is in requirements.lock: make setup")
    frame = db.read("t").to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame.height == 4
    streamed = polars.DataFrame(db.read("t"))
    assert streamed.sort("id", "name").equals(frame.sort("id", "name"))
    assert sorted(frame.rows(), key=str) == sorted(db.read("t").rows(), key=str)
    db.sql("CREATE TABLE every (d DECIMAL(9, 2), at TIMESTAMP, l ARRAY<INT>, s STRUCT<a: INT>)")
    assert db.read("every").to_polars().shape == (0, 4)
    db.sql("INSERT INTO every VALUES (1.5, TIMESTAMP '2024-02-03', ARRAY(1, 2), STRUCT(3 AS a))")
    ((number, at, items, struct),) = db.read("every").to_polars().rows()
    assert (str(number), at.day, items, struct) == ("1.50", 3, [1, 2], {"a": 3})


def test_without_polars_the_error_says_what_to_install(db, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ev.UserError, match="pip install"):
        db.read("t").to_polars()


def test_a_result_is_rows_for_another_table(db):
    db.sql("CREATE TABLE u (id INT, name STRING)")
    db.insert("u", db.read("t"))
    assert sorted(db.read("u"), key=str) == sorted(db.read("t"), key=str)
