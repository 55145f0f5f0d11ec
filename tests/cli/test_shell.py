"""The prompt on a terminal: editing, history, completion, help and paging."""

from __future__ import annotations

import subprocess
import sys
import time
from threading import Thread

import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import everview as ev
from everview.cli import sql, statements
from everview.cli.shell import HELP_TEXT, Shell, StatementCompleter


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(9,2))")
        db.sql("CREATE TABLE customers (customer BIGINT, `full name` STRING)")
        db.sql(
            "CREATE VIEW revenue AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY 1"
        )
        yield db


def typed(db, *keys, pause=0.3):
    """The texts that a user types; between two pieces there is time to look something up."""

    def type_slowly(pipe):
        for piece in keys:
            pipe.send_text(piece)
            time.sleep(pause)

    with create_pipe_input() as pipe:
        user = Thread(target=type_slowly, args=(pipe,))
        user.start()
        try:
            return list(Shell(db.catalog.schemas, input=pipe, output=DummyOutput()).texts())
        finally:
            user.join()


def typed_slowly(db, *keys, expected):
    """Type more slowly until what the shell looks up beside the keys has come in between."""
    pauses = (0.3, 2, 8)
    return any(typed(db, *keys, pause=pause) == expected for pause in pauses)


def test_a_statement_runs_at_its_semicolon_and_may_have_lines(db):
    assert typed(db, "SELECT 1\rAS a;\rSELECT 2;\r\\q\r") == ["SELECT 1\nAS a;", "SELECT 2;"]


@pytest.mark.parametrize("word", ["\\q", "quit", "exit", "EXIT;", "\x04"])
def test_it_ends_at_the_word_or_the_key(db, word):
    assert typed(db, f"SELECT 1;\r{word}\r") == ["SELECT 1;"]


def test_ctrl_c_clears_what_is_typed(db):
    assert typed(db, "SELECT nonsense\x03SELECT 1;\r\x04") == ["SELECT 1;"]


def test_an_empty_line_asks_again(db):
    assert typed(db, "\r  \r;\rSELECT 1;\r\x04") == ["SELECT 1;"]


def test_what_was_typed_comes_back(db):
    once = ["SELECT 1;"]
    assert typed_slowly(db, "SELECT 1;\r", "\x1b[A", "\r", "\x04", expected=once * 2)
    assert typed_slowly(db, "", "\x1b[A", "\r", "\x04", expected=once)


def test_only_its_owner_reads_the_history(db, tmp_path):
    typed(db, "SELECT 1;\r\x04")
    path = tmp_path / "state" / "everview" / "history"
    assert path.stat().st_mode & 0o077 == 0
    assert "SELECT 1;" in path.read_text()


def test_without_a_place_for_it_there_is_no_history(db, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert typed(db, "SELECT 1;\r\x04") == ["SELECT 1;"]


@pytest.mark.parametrize("word", ["help", "\\h", "\\?", "HELP;"])
def test_help_is_shown(db, capsys, word):
    assert typed(db, f"{word}\rSELECT 1;\r\x04") == ["SELECT 1;"]
    assert HELP_TEXT in capsys.readouterr().out


def completions(db, text):
    completer = StatementCompleter(db.catalog.schemas)
    event = CompleteEvent(completion_requested=True)
    return [each.text for each in completer.get_completions(Document(text), event)]


def test_tables_views_columns_and_keywords_are_completed(db):
    assert completions(db, "SELECT * FROM ") == ["customers", "orders", "revenue"]
    assert completions(db, "SELECT * FROM o") == ["orders"]
    assert completions(db, "select * from REV") == ["revenue"]
    assert completions(db, "SELECT am")[0] == "amount"
    assert "SELECT" in completions(db, "SEL")
    assert completions(db, "SELECT orders.") == ["amount", "customer", "id"]
    assert completions(db, "SELECT customers.f") == ["`full name`"]
    assert "coalesce" in [each.lower() for each in completions(db, "SELECT coal")]
    assert completions(db, "SELECT nothing.") == []


def test_columns_of_an_alias_are_completed(db):
    completer = StatementCompleter(db.catalog.schemas)
    for text in ("SELECT r. FROM revenue r;", "SELECT r. FROM revenue AS r JOIN orders o"):
        found = completer.get_completions(Document(text, 9), CompleteEvent())
        assert [each.text for each in found] == ["customer", "total"]


def test_new_names_are_completed_at_once(db):
    db.sql("CREATE TABLE fresh (x INT)")
    assert completions(db, "SELECT * FROM fr") == ["fresh"]


def test_tab_completes_in_the_shell(db):
    completed = ["SELECT * FROM revenue;"]
    assert typed_slowly(db, "SELECT * FROM rev\t", ";\r\x04", expected=completed)


def test_the_shell_tells_rows_and_errors_and_goes_on(db, capsys):
    shown = []
    keys = "INSERT INTO orders VALUES (1, 7, 2), (2, 7, 3);\rSELECT nope FROM orders;\r"
    keys += "SELECT total\rFROM revenue;\rDELETE FROM orders WHERE id = 1;\r\x04"
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        shell = Shell(db.catalog.schemas, input=pipe, output=DummyOutput())
        assert not statements._is_cancelled(db, None, shown.append, shell.texts)
    assert [table.to_pylist() for table in shown] == [[{"total": 5}]]
    told = capsys.readouterr().err
    assert "2 rows\n" in told
    assert "1 row\n" in told
    assert "unknown column nope" in told


def test_a_long_result_goes_through_the_pager(monkeypatch, capsys):
    paged: list[str] = []
    monkeypatch.setattr("pydoc.pager", paged.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "80")
    sql._show_paged(pa.table({"n": [1, 2]}))
    assert not paged
    assert "2" in capsys.readouterr().out
    sql._show_paged(pa.table({"n": list(range(100))}))
    assert len(paged) == 1
    assert "99" in paged[0]


def test_nothing_else_loads_the_prompt(tmp_path):
    check = (
        "import sys; from click.testing import CliRunner; from everview.cli.main import main; "
        f"made = CliRunner().invoke(main, ['sql', {str(tmp_path / 's')!r}, '--engine', 'duckdb', "
        "'-c', 'CREATE TABLE t (a INT); INSERT INTO t VALUES (1); SELECT a FROM t']); "
        "assert made.exit_code == 0, made.output; assert 'num_affected' not in made.output; "
        "print('prompt_toolkit' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
