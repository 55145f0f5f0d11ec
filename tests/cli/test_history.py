"""`everview status --history`: what transactions cost."""

from __future__ import annotations

import pytest

from cli.shop import SHOP, lines


@pytest.fixture
def store(run, tmp_path):
    path = tmp_path / "shop"
    made = run("sql", path, "--engine", "duckdb", "-c", SHOP)
    assert made.exit_code == 0, made.output
    return path


def test_history_is_told_by_epoch_and_view(run, store):
    [found] = lines(run("status", store, "--engine", "duckdb", "--history", "--json"))
    told = [(each["epoch"], each["kind"], each["view"]) for each in found["history"]]
    assert found["epoch"] == 3
    assert told == [
        (1, "declaration", None),
        (1, "declaration", "revenue"),
        (2, "transaction", None),
        (2, "transaction", "revenue"),
        (3, "transaction", None),
        (3, "transaction", "revenue"),
    ]
    newest = found["history"][-1]
    assert (newest["rows_in"], newest["rows_out"], newest["jobs"]) == (1, 1, 0)


def test_history_ends_at_a_limit_and_is_shown_to_people(run, store):
    shown = run("status", store, "--engine", "duckdb", "--history", "--limit", 1, env=WIDE).stdout
    assert shown.startswith("epoch 3\n")
    assert "(transaction)" in shown
    assert "revenue" in shown
    assert "commit" in shown
    assert "(declaration)" not in shown


def test_history_is_a_table_on_the_command_line(run, store):
    asked = "SELECT epoch FROM everview.history WHERE view = 'revenue' ORDER BY epoch"
    [found] = lines(run("sql", store, "--engine", "duckdb", "--json", "-c", asked))
    assert [row["epoch"] for row in found["rows"]] == [1, 2, 3]


WIDE = {"COLUMNS": "200"}
