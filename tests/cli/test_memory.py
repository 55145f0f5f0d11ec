"""`--memory` where stores are opened."""

from __future__ import annotations

import pytest

from cli.shop import SHOP, lines


@pytest.fixture
def store(run, tmp_path):
    path = tmp_path / "shop"
    made = run("sql", path, "--engine", "duckdb", "--memory", "0", "-c", SHOP)
    assert made.exit_code == 0, made.output
    return path


def test_status_shows_the_budget_and_what_is_held(run, store):
    [found] = lines(run("status", store, "--engine", "duckdb", "--memory", "2GB", "--json"))
    assert found["memory"] == {"budget": 2 << 30, "held": 0, "given": True}
    assert {each["held"] for each in found["relations"]} == {0}
    shown = run("status", store, "--engine", "duckdb", "--memory", "2GB").stdout.splitlines()
    assert shown[1] == "memory 2.0 GiB; 0 B held now"
    shown = run("status", store, "--engine", "duckdb").stdout.splitlines()
    assert shown[1].endswith(", a share of this machine; 0 B held now")


def test_the_budget_may_come_from_the_environment(run, store):
    shown = run("status", store, "--engine", "duckdb", "--json", env={"EVERVIEW_MEMORY": "64MB"})
    assert lines(shown)[0]["memory"]["budget"] == 64 << 20


@pytest.mark.parametrize(
    "command",
    [
        ["sql", "STORE", "-c", "INSERT INTO orders VALUES (9, 9, 1.00, NULL)"],
        ["compact", "STORE"],
        ["retain", "STORE", "--keep", "1"],
        ["repair", "STORE"],
        ["status", "STORE"],
    ],
    ids=lambda command: command[0],
)
def test_commands_take_a_budget_and_refuse_what_is_none(run, store, command):
    args = [str(store) if each == "STORE" else each for each in command]
    assert run(*args, "--engine", "duckdb", "--memory", "0").exit_code == 0
    refused = run(*args, "--engine", "duckdb", "--memory", "much")
    assert refused.exit_code == 1
    assert "X002" in refused.output


def test_a_datalog_program_runs_under_a_budget(run, tmp_path):
    program = tmp_path / "reach.dl"
    program.write_text(
        ".decl edge(x: number, y: number)\n.decl reach(x: number, y: number)\n.output reach\n"
        "edge(1, 2). edge(2, 3).\nreach(x, y) :- edge(x, y).\n"
        "reach(x, z) :- reach(x, y), edge(y, z)."
    )
    shown = run("datalog", program, "--engine", "duckdb", "--memory", "0", "--json")
    assert lines(shown)[0]["rows"] == [
        {"x": 1, "y": 2},
        {"x": 1, "y": 3},
        {"x": 2, "y": 3},
    ]
