"""A view in relational algebra from the command line."""

from __future__ import annotations

import pytest

from cli.shop import lines


@pytest.fixture
def store(run, tmp_path):
    path = tmp_path / "shop"
    made = "CREATE TABLE orders (id INT, customer STRING); INSERT INTO orders VALUES (1, 'ann')"
    assert run("sql", path, "-c", made, "--engine", "duckdb").exit_code == 0
    return path


def test_a_view_is_declared_and_stays(run, store):
    done = run("relalg", store, "people", "Π[customer](orders)", "--engine", "duckdb")
    assert done.exit_code == 0, done.output
    assert "customer" in done.stdout
    asked = ("sql", store, "-c", "SELECT * FROM people", "--engine", "duckdb", "--json")
    assert "ann" in run(*asked).stdout
    shown = run("explain", store, "people", "--stage", "nabla", "--engine", "duckdb").stdout
    assert "∇people = Π[customer](∇orders) − Π[customer](mod(orders))" in shown


def test_its_columns_are_printed_for_programs(run, store):
    words = "project[customer as c](select[id > 0](orders))"
    [found] = lines(run("relalg", store, "people", words, "--engine", "duckdb", "--json"))
    assert found == {"view": "people", "columns": [{"name": "c", "type": "string"}]}


def test_a_wrong_expression_is_refused(run, store):
    done = run("relalg", store, "people", "orders ∪ nothing", "--engine", "duckdb")
    assert done.exit_code == 1
    assert "R002" in done.stderr
