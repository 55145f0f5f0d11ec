"""What a user meets first: fast, without an engine, and with an example."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import everview
from everview.cli.explain import STAGES
from everview.cli.main import COMMANDS
from everview.database.introspect import explain

NAMES = [str(command.name) for command in COMMANDS]
HEAVY = ("pyspark", "py4j", "duckdb", "pyarrow", "sqlglot", "rich")

LOADED = f"""
import sys
from everview.cli.main import main
main({{args}}, standalone_mode=False)
print("loaded:", [name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([n, "--help"] for n in NAMES)])
def test_help_loads_no_engine(args):
    # A process of its own: this one has loaded everything already.
    code = LOADED.format(args=args)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


def test_help_is_quick():
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "everview", "--help"], capture_output=True, check=True)
    # It takes about 0.1 s; the rest is for a machine that is busy with other tests.
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_by_example(run, name):
    shown = run(name, "--help").stdout
    assert "Example:" in shown
    assert f"everview {name}" in shown


def test_the_list_of_commands_is_not_cut_short(run):
    listed = run("--help").stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.strip().splitlines()] == NAMES
    assert "..." not in listed


def test_the_version_is_that_of_the_package(run):
    assert run("--version").stdout == f"everview {everview.__version__}\n"


def test_the_stages_offered_are_those_there_are():
    assert STAGES == explain.STAGES
