"""A Datalog program from the command line: printed once, or kept and followed."""

from __future__ import annotations

import pytest

import everview
from cli.shop import lines

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl reach(x: number, y: number)
.output reach
.printsize reach
edge(1, 2).
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "reach.dl"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def facts(tmp_path):
    folder = tmp_path / "facts"
    folder.mkdir()
    (folder / "edge.facts").write_text("2\t3\n3\t1\n")
    return folder


def test_a_program_prints_what_it_puts_out(run, file):
    done = run("datalog", file, "--engine", "duckdb")
    assert done.exit_code == 0, done.output
    assert "│ 1 │ 2 │" in done.stdout
    assert done.stdout.endswith("reach\t1\n")


def test_facts_are_read_from_files(run, file, facts):
    done = run("datalog", file, "--facts", facts, "--engine", "duckdb", "--json")
    relation, size = lines(done)
    assert relation["relation"] == "reach"
    assert len(relation["rows"]) == 9
    assert size == {"relation": "reach", "size": 9}


def test_a_kept_program_follows_its_facts(run, file, facts, tmp_path):
    store = tmp_path / "graph"
    assert (
        run("datalog", file, "--store", store, "--facts", facts, "--engine", "duckdb").exit_code
        == 0
    )
    done = run("sql", store, "-c", "DELETE FROM edge WHERE x = 3", "--engine", "duckdb")
    assert done.exit_code == 0
    with everview.open(str(store), engine="duckdb") as db:
        assert sorted(db.read("reach").rows()) == [(1, 2), (1, 3), (2, 3)]
        assert db.audit().ok


def test_a_bad_program_is_refused_and_leaves_the_store_as_it_was(run, tmp_path):
    path, store = tmp_path / "bad.dl", tmp_path / "store"
    path.write_text(".decl a(x: number)\na(x) :- a(y).\n")
    done = run("datalog", path, "--store", store, "--engine", "duckdb")
    assert done.exit_code == 1
    assert "D006" in done.stderr
    assert "   2 | a(x) :- a(y)." in done.stderr
    assert not store.exists()


def test_bad_facts_are_named(run, file, facts):
    (facts / "edge.facts").write_text("2\tx\n")
    done = run("datalog", file, "--facts", facts, "--engine", "duckdb")
    assert done.exit_code == 1
    assert "edge.facts, line 1" in done.stderr
