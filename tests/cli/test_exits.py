"""Each kind of ending has its own exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from everview.database.database import Database


def test_what_the_user_can_fix_is_rendered_on_stderr_with_exit_code_1(run, tmp_path):
    done = run("status", tmp_path / "nowhere")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error[S004]")
    assert "\nhelp: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_line_that_is_not_understood_has_exit_code_2(run, tmp_path):
    assert run("status").exit_code == 2
    assert run("no-such-command").exit_code == 2
    assert run("explain", tmp_path, "v", "--stage", "nowhere").exit_code == 2
    assert run("sql", tmp_path, tmp_path / "missing.sql").exit_code == 2
    assert run("rules", "--json", "--markdown").exit_code == 2


@pytest.mark.spark
def test_our_own_bugs_keep_their_traceback_and_have_exit_code_70(run, shop, monkeypatch):
    def broken(_db: Database) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(Database, "status", broken)
    done = run("status", shop)
    assert done.exit_code == 70
    assert "ZeroDivisionError: planted" in done.stderr
    assert "please report it" in done.stderr.splitlines()[-1]


def test_exit_codes_reach_the_shell(tmp_path):
    def code(*args: str) -> int:
        command = [sys.executable, "-m", "everview", *args]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert code("rules") == 0
    assert code("status", str(tmp_path / "nowhere")) == 1
    assert code("status") == 2


def test_a_fuzzer_that_is_not_installed_is_named_with_exit_code_1(run, monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == "everview_fuzz"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "everview_fuzz", None)
    done = run("fuzz", "--engine", "duckdb", "--cases", 1)
    assert done.exit_code == 1
    assert done.stderr.startswith("error[L002]: the package everview_fuzz is not installed")
