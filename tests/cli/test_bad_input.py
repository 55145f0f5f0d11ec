"""Bad files and options of the command line: an exit code, a message, and no traceback."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import everview as ev
from everview.cli.main import main


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        b"SELECT '\xed\xa0\x80'",
        b"\x00",
        b"PK\x03\x04",
        b"(" * 5000,
        b"SELECT 1 AS x,",
    ],
)
@pytest.mark.parametrize("command", ["sql", "datalog", "agca"])
def test_a_bad_file_is_refused(command, content, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    store = str(tmp_path / "store")
    given = {"datalog": [str(file), "--store", store]}.get(command, [store, str(file)])
    ran = CliRunner().invoke(main, [command, *given, "--engine", "duckdb"])
    assert ran.exit_code in (1, 2), ran.output
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    "given",
    [
        ["sql", "", "-c", "SELECT 1 AS x"],
        ["sql", "a\0b", "-c", "SELECT 1 AS x"],
        ["sql", "nope://x", "-c", "CREATE TABLE t (k INT)"],
        ["sql", "{store}", "-c", "SELECT 1 AS x", "--dialect", "postgress"],
        ["sql", "{store}", "-c", "SELECT '\ud800' AS x"],
        ["status", "/dev/null"],
        ["status", "{store}", "--limit", "0"],
        ["audit", "{store}", "nowhere"],
        ["changes", "{store}", "t", "--after", "-1"],
        ["changes", "{store}", "nowhere"],
        ["explain", "{store}", "t"],
        ["datalog", "{store}"],
        ["agca", "{store}", "{store}"],
    ],
)
def test_bad_options_are_refused(given, tmp_path):
    store = str(tmp_path / "store")
    with ev.open(store, engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT)")
    options = [store if each == "{store}" else each for each in given]
    ran = CliRunner().invoke(main, [*options, "--engine", "duckdb"])
    assert ran.exit_code in (1, 2), ran.output
    assert "Traceback" not in ran.output
