"""AGCA from the command line: views that are declared, printed and followed."""

from __future__ import annotations

import pytest

import everview
from cli.shop import lines

TEXT = """
spent[customer] := Sum(orders(_, customer, amount) * amount);  // per customer
pairs[] := Sum(orders(_, customer, _) * orders(_, customer, _))
"""


@pytest.fixture
def shop(tmp_path):
    store = tmp_path / "shop"
    with everview.open(str(store), engine="duckdb") as db:
        db.sql("CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount DECIMAL(12,2))")
        db.insert("orders", [(1, 7, "10.00"), (2, 7, "5.50"), (3, 8, "1.00"), (4, 9, None)])
    return store


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "spent.agca"
    path.write_text(TEXT)
    return path


def test_the_views_of_a_text_are_declared_and_printed(run, shop, file):
    done = run("agca", shop, file, "--engine", "duckdb", "--json")
    assert lines(done) == [
        {
            "relation": "spent",
            "columns": ["customer", "value"],
            "rows": [{"customer": 7, "value": "15.50"}, {"customer": 8, "value": "1.00"}],
        },
        {"relation": "pairs", "columns": ["value"], "rows": [{"value": 6}]},
    ]


def test_the_views_follow_their_tables(run, shop, file):
    shown = run("agca", shop, file, "--engine", "duckdb")
    assert "15.50" in shown.stdout
    done = run("sql", shop, "-c", "DELETE FROM orders WHERE id = 1", "--engine", "duckdb")
    assert done.exit_code == 0
    with everview.open(str(shop), engine="duckdb") as db:
        assert sorted(db.read("spent").rows())[0][1] == 5.5
        assert db.audit().ok


def test_an_error_shows_its_place(run, shop, file):
    file.write_text("spent[customer] := orders(_, customer, amount) * amuont")
    done = run("agca", shop, file, "--engine", "duckdb")
    assert done.exit_code == 1
    assert "the variable amuont is not bound here" in done.output
    assert "^^^^^^" in done.output
