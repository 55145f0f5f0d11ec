"""Statements from the command line, a file, standard input and a prompt."""

from __future__ import annotations

import builtins
import sys

import pytest

import everview
from cli.shop import lines

pytestmark = pytest.mark.spark

TABLE = "CREATE TABLE t (a INT, b STRING);"


@pytest.fixture
def store(spark, tmp_path):
    return tmp_path / "store"


def test_a_new_store_is_made_and_said_so(run, store):
    done = run("sql", store, "-c", TABLE)
    assert done.exit_code == 0
    assert done.stdout == ""
    assert done.stderr == f"created the store {store}\nepoch 1\n"
    assert run("sql", store, "-c", "INSERT INTO t VALUES (1, 'x')").stderr == "epoch 2\n"


def test_every_select_shows_its_rows(run, shop):
    done = run("sql", shop, "-c", "SELECT total FROM revenue WHERE n = 2; SELECT NULL AS nothing")
    assert done.exit_code == 0
    assert "15.50" in done.stdout
    assert "NULL" in done.stdout


def test_values_are_shown_as_they_are(run, shop):
    done = run("sql", shop, "-c", "SELECT '[bold]x[/bold] :smile:' AS text")
    assert "[bold]x[/bold] :smile:" in done.stdout


def test_json_has_one_object_for_each_result(run, shop):
    text = "SELECT * FROM orders WHERE id = 1; SELECT array(1.5BD) AS list, DOUBLE('NaN') AS odd"
    assert lines(run("sql", shop, "-c", text, "--json")) == [
        {
            "columns": ["id", "customer", "amount", "day"],
            "rows": [{"id": 1, "customer": 7, "amount": "10.00", "day": "2024-02-29"}],
        },
        {"columns": ["list", "odd"], "rows": [{"list": ["1.5"], "odd": "nan"}]},
    ]


def test_json_never_loses_a_column(run, shop):
    done = run("sql", shop, "-c", "SELECT 1 AS a, 2 AS a", "--json")
    assert done.exit_code == 1
    assert "error[L001]" in done.stderr


def test_a_file_and_standard_input_are_read_alike(run, shop, tmp_path):
    query = "SELECT customer FROM revenue ORDER BY customer;\n"
    (tmp_path / "q.sql").write_text(query)
    from_file = run("sql", shop, tmp_path / "q.sql", "--json")
    from_stdin = run("sql", shop, "--json", input=query)
    assert from_file.stdout == from_stdin.stdout
    assert lines(from_stdin)[0]["rows"] == [{"customer": 7}, {"customer": 8}]


def test_a_file_and_a_command_exclude_each_other(run, tmp_path):
    (tmp_path / "q.sql").write_text("SELECT 1")
    assert run("sql", tmp_path / "s", tmp_path / "q.sql", "-c", "SELECT 1").exit_code == 2


def test_another_dialect_is_read(run, shop):
    text = "SELECT n::text AS n FROM revenue WHERE customer = 8"
    done = run("sql", shop, "--dialect", "postgres", "-c", text, "--json")
    assert lines(done)[0]["rows"] == [{"n": "1"}]


def test_an_error_points_into_the_text_that_was_given(run, store):
    text = f"{TABLE}\nINSERT INTO t VALUES (1, 'x');\nSELECT\n  nope FROM t;\n"
    done = run("sql", store, "-c", text)
    assert done.exit_code == 1
    assert "   4 |   nope FROM t;\n     |   ^^^^" in done.stderr
    assert "epoch 2" in done.stderr


def test_a_text_with_a_syntax_error_runs_no_statement(run, store):
    assert run("sql", store, "-c", f"{TABLE} SELECT FROM WHERE").exit_code == 1
    assert not store.exists()


def test_statements_that_only_read_make_no_store(run, store):
    done = run("sql", store, "-c", "SELECT 1")
    assert done.exit_code == 1
    assert "error[S004]" in done.stderr
    assert not store.exists()


def test_reading_works_beside_a_writer_and_writing_does_not(run, store):
    with everview.open(str(store)) as writer:
        writer.sql(TABLE)
        assert run("sql", store, "-c", "SELECT * FROM t").exit_code == 0
        assert run("status", store).exit_code == 0
        refused = run("sql", store, "-c", "INSERT INTO t VALUES (1, 'x')")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error[S")


def test_a_transaction_without_commit_is_rolled_back_and_said_so(run, store):
    done = run("sql", store, "-c", f"{TABLE} BEGIN; INSERT INTO t VALUES (1, 'x');")
    assert done.exit_code == 0
    assert "rolled back" in done.stderr
    assert lines(run("sql", store, "-c", "SELECT * FROM t", "--json"))[0]["rows"] == []


def test_the_prompt_gathers_lines_survives_errors_and_quits(run, store, monkeypatch):
    typed = iter([TABLE, "INSERT INTO t", "VALUES (1, 'x');", "oops;", "SELECT a FROM t;", r"\q"])
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(builtins, "input", lambda _prompt: next(typed))
    monkeypatch.setattr("everview.cli.sql._text", lambda _file, _command: None)
    done = run("sql", store, "--json")
    assert done.exit_code == 0
    assert "error[Q" in done.stderr
    assert lines(done) == [{"columns": ["a"], "rows": [{"a": 1}]}]
    assert "readline" in sys.modules or sys.platform == "win32"
