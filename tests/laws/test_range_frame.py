"""Frames that reach only so far: a change touches the rows near it, and no others are read."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.compiler import Table, View, compile_arrangements, compile_program
from everview.differentiate.derive import derive
from everview.differentiate.range_frame import range_frame
from everview.expr.types import Column
from everview.plan.build import window
from everview.plan.nodes import Order, Over, Plan, Source
from everview.plan.traverse import schema_of
from everview.rewrite.passes import rewrite
from memory import Memory
from strategies import Bag, framed, total

ROWS = Source("t", (Column("a", "int"), Column("b", "int"), Column("s", "string")))
TABLES = {"t": Table(ROWS, ("a",))}

numbers = st.one_of(st.integers(-20, 20), st.integers(-20, 20), st.none())
rows = st.tuples(numbers, st.sampled_from([1, 1, None]), st.sampled_from(["p", "p", "1:0", None]))
EVERYWHERE: Bag = Counter((number, 1, "p") for number in range(-20, 21))
bags = st.lists(rows, max_size=9).map(lambda found: EVERYWHERE + Counter(found))


@st.composite
def changes(draw: st.DrawFn, there: Bag) -> Bag:
    """Some rows that come and some that go."""
    change = Counter(draw(st.lists(rows, max_size=2)))
    gone = st.lists(st.sampled_from(sorted(there.elements(), key=repr)), max_size=2)
    for row in draw(gone) if there else ():
        change[row] -= there[row] + change[row] > 0
    return Counter({row: weight for row, weight in change.items() if weight})


@given(data=st.data(), plan=framed(ROWS, reach=5), old=bags)
def test_the_derivative_of_near_rows_is_the_difference_it_stands_for(data, plan, old):
    assert range_frame(plan) is not None
    change = data.draw(changes(old))
    difference = evaluate(derive(plan), {"t": old}, {"t": change})
    new = evaluate(plan, {"t": total(old, change)})
    assert new == total(evaluate(plan, {"t": old}), difference)


@given(data=st.data(), plan=framed(ROWS, reach=5), old=bags)
def test_near_rows_and_what_is_kept_of_them_equal_their_queries_after_every_epoch(data, plan, old):
    made = rewrite(plan)
    maintenance = compile_arrangements(TABLES, (View(Source("v", schema_of(made)), (), made),))
    memory = Memory(maintenance, {"t": ROWS}, {"t": old})
    for _ in range(3):
        change = data.draw(changes(old))
        memory.run(compile_program(maintenance, {"t": True}), {"t": change})
        old = total(old, change)
        assert memory.value("v") == memory.meaning(made)
        for state in maintenance.states.stored.values():
            assert memory.value(state.name) == memory.meaning(state.plan)


def framed_as(frame: str, type_: str = "int", answer: str = "bigint") -> Plan:
    """A sum over a frame of rows ordered by a column of a type."""
    source = Source("t", (Column("v", type_), Column("k", "int")))
    over = Over("z", answer, "sum", ("`k`",), (Order("v"),), frame)
    return window(source, ("k",), (over,))


@pytest.mark.parametrize(
    ("frame", "type_", "cell"),
    [
        ("3 PRECEDING AND 7 FOLLOWING", "int", "CAST(`v` AS BIGINT) DIV 7"),
        ("0 PRECEDING AND CURRENT ROW", "bigint", "CAST(`v` AS BIGINT) DIV 2"),
        ("0.5 PRECEDING AND 1.5 FOLLOWING", "decimal(6,2)", "CAST(`v` AS BIGINT) DIV 3"),
        (
            "INTERVAL '2' MONTH PRECEDING AND CURRENT ROW",
            "date",
            "CAST(DATEDIFF(`v`, CAST('1970-01-01' AS DATE)) AS BIGINT) DIV 62",
        ),
        (
            "CURRENT ROW AND INTERVAL '2' HOUR FOLLOWING",
            "timestamp",
            "UNIX_SECONDS(`v`) DIV 7201",
        ),
    ],
)
def test_no_frame_reaches_beyond_the_next_cell(frame, type_, cell):
    found = range_frame(framed_as(f"RANGE BETWEEN {frame}", type_))
    assert found is not None
    assert found.cell.scalar == cell


@pytest.mark.parametrize(
    "plan",
    [
        framed_as(""),
        framed_as("ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        framed_as("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        framed_as("RANGE BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING"),
        framed_as("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "double"),
        framed_as("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", answer="double"),
        framed_as("RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "decimal(30,2)"),
    ],
)
def test_any_other_window_has_no_cells(plan):
    assert range_frame(plan) is None


def test_columns_of_different_orders_have_no_cells():
    frame = "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW"
    overs = tuple(Over(n, "bigint", "count", (), (Order(n[1:]),), frame) for n in ("za", "zb"))
    assert range_frame(window(ROWS, (), overs)) is None


@pytest.mark.parametrize(("keys", "most"), [((), 10), (("b",), 10), (("s",), 20)])
def test_rows_that_are_far_are_not_read(keys, most):
    frame = "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"
    plan = window(ROWS, keys, (Over("z", "bigint", "count", (), (Order("a"),), frame),))
    there: Bag = Counter((a, b, "p") for a, b in product(range(-40, 40), (1, 2)))
    if not keys:
        there = Counter(row for row in there if row[1] == 1)
    maintenance = compile_arrangements(TABLES, (View(Source("v", schema_of(plan)), (), plan),))
    memory = Memory(maintenance, {"t": ROWS}, {"t": there})
    memory.run(compile_program(maintenance, {"t": False}), {"t": Counter({(20, 1, "p"): 1})})
    assert memory.value("v") == memory.meaning(plan)
    [read] = [count for name, _, count in memory.fetched if name != "t"]
    assert 0 < read <= most
