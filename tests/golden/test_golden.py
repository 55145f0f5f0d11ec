"""Plans, derivatives and programs as text, reviewed like code.

Run with EVERVIEW_GOLDEN=write to write the files again, and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from everview.compiler import Table, View, compile_arrangements, compile_program
from everview.differentiate.definitions import print_derivative
from everview.expr.types import Column
from everview.lang.sql.lower.query import lower_query
from everview.plan.nodes import Source
from everview.plan.text import print_plan
from everview.plan.traverse import schema_of
from everview.program.explain import explain
from everview.program.maps import maps_in
from everview.program.policy import CIRCUIT, HIGHER_ORDER, under
from everview.rewrite.passes import rewrite

ORDERS = Source(
    "orders",
    (Column("id", "bigint"), Column("customer", "bigint"), Column("day", "date")),
    ("id",),
)
LINES = Source(
    "lines",
    (
        Column("order_id", "bigint"),
        Column("line", "int"),
        Column("quantity", "int"),
        Column("price", "decimal(10,2)"),
        Column("weight", "double"),
    ),
    ("order_id", "line"),
)
R = Source("r", (Column("a", "decimal(10,2)"), Column("b", "bigint")))
S = Source("s", (Column("b", "bigint"), Column("d", "bigint")))
T = Source("t", (Column("d", "bigint"), Column("f", "int")))
MOVIES = Source("movies", (Column("movie", "string"), Column("genre", "string")))
SHOWTIMES = Source(
    "showtimes", (Column("movie", "string"), Column("loc", "string"), Column("time", "int"))
)
TABLES = {source.name: source for source in (ORDERS, LINES)}

VIEWS = {
    "filter": "SELECT id, customer + 1 AS next FROM orders WHERE day > DATE '2026-01-01'",
    "join": "SELECT o.customer, l.price FROM orders o JOIN lines l ON l.order_id = o.id",
    "distinct": "SELECT DISTINCT customer FROM orders",
    "group": """SELECT o.customer, SUM(l.quantity * l.price) AS total FROM orders o
        JOIN lines l ON l.order_id = o.id WHERE l.quantity > 0 GROUP BY o.customer""",
    "average": "SELECT AVG(quantity) AS a, COUNT(*) AS n FROM lines",
    "doubles": "SELECT order_id, SUM(weight) AS w FROM lines GROUP BY order_id",
    "unnest": """SELECT customer, e FROM orders LATERAL VIEW OUTER posexplode(
        sequence(1, customer)) AS at, e WHERE day > DATE '2026-01-01' AND at > 0""",
    "collect": "SELECT order_id, COLLECT_SET(quantity) AS a FROM lines GROUP BY order_id",
    "first_rows": "SELECT id, day FROM orders ORDER BY day DESC, id LIMIT 10",
    "frame": """SELECT id, COUNT(*) OVER (PARTITION BY customer ORDER BY day
        RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW) AS n FROM orders""",
    "recursion": """WITH RECURSIVE near(a, b) AS (SELECT customer, id FROM orders UNION
        SELECT n.a, l.line FROM near AS n JOIN lines AS l ON l.order_id = n.b)
        SELECT a, b FROM near""",
    "union_all": "SELECT id FROM orders UNION ALL SELECT order_id FROM lines",
}


DRAMAS_IN_OZ = """SELECT m.movie FROM (SELECT * FROM showtimes WHERE loc = 'Oz') sh
    JOIN (SELECT * FROM movies WHERE genre = 'Drama') m ON sh.movie = m.movie"""
"""Example 8 of nested-collections: its delta has three terms, of which two share the new value."""
PRODUCTS = """SELECT SUM(r.a * t.f) AS total FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d"""


def stages(text: str, known: Mapping[str, Source] = TABLES, policy: str = CIRCUIT) -> str:
    """The way of a view: plan, derivative, states, program."""
    plan = under(policy, rewrite(lower_query(text, known, _unknown)))
    view = View(Source("v", schema_of(plan)), (), plan, policy, maps=maps_in(plan, None))
    tables = {
        name: Table(source, source.key or (source.schema[0].name,))
        for name, source in known.items()
    }
    maintenance = compile_arrangements(tables, (view,))
    touched = dict.fromkeys(known, False)
    states = "\n".join(
        f"{state.name} sorted by {', '.join(state.sort)}\n{print_plan(state.plan, 1)}"
        for state in maintenance.states.stored.values()
    )
    return (
        f"-- query\n{text}\n-- plan\n{print_plan(plan)}\n"
        f"-- derivative\n{print_derivative(plan)}\n"
        f"-- states\n{states}\n-- program\n{explain(compile_program(maintenance, touched))}\n"
    )


def _unknown(scalar, schema, span):
    raise AssertionError(f"our own rules know the type of {scalar}")


@pytest.mark.parametrize("name", VIEWS)
def test_the_way_of_a_view_is_the_one_reviewed(name):
    _must_be_reviewed(name, stages(VIEWS[name]))


def test_the_way_of_products_of_totals_is_the_one_reviewed():
    known = {source.name: source for source in (R, S, T)}
    _must_be_reviewed("products", stages(PRODUCTS, known, HIGHER_ORDER))


def test_the_way_of_dramas_in_oz_is_the_one_reviewed():
    known = {source.name: source for source in (SHOWTIMES, MOVIES)}
    _must_be_reviewed("dramas_in_oz", stages(DRAMAS_IN_OZ, known))


def _must_be_reviewed(name: str, found: str) -> None:
    path = Path(__file__).parent / f"{name}.txt"
    if os.environ.get("EVERVIEW_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
