"""Least and greatest values: a group that loses others is not read, and stays right."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.compiler import Table, View, compile_arrangements, compile_program
from everview.differentiate.derive import derive
from everview.expr.types import Column
from everview.plan.build import partition
from everview.plan.nodes import Aggregate, Plan, Source
from everview.plan.traverse import schema_of
from memory import Memory
from strategies import Bag, total

ROWS = Source("t", (Column("k", "int"), Column("x", "int"), Column("y", "string")))

rows = st.tuples(
    st.sampled_from([1, 1, 2, None]),
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["p", "q", None]),
)
bags = st.lists(rows, max_size=8).map(Counter)
aggregates = st.lists(
    st.sampled_from([("max", "x"), ("min", "x"), ("max", "y"), ("min", "y")]),
    min_size=1,
    max_size=2,
    unique=True,
)


@st.composite
def extremes(draw: st.DrawFn) -> Plan:
    """Least and greatest values of all rows, or of groups."""
    keys = draw(st.sampled_from([(), ("k",), ("k", "y")]))
    types = {"x": "int", "y": "string"}
    asked = [
        Aggregate(f"{function} {column}", types[column], function, column)
        for function, column in draw(aggregates)
    ]
    return partition(ROWS, keys, tuple(asked))


@st.composite
def changes(draw: st.DrawFn, there: Bag) -> Bag:
    """Some rows that come and some that go."""
    change = Counter(draw(st.lists(rows, max_size=2)))
    if there:
        gone = st.lists(st.sampled_from(sorted(there.elements(), key=repr)), max_size=3)
        for row in draw(gone):
            change[row] -= there[row] + change[row] > 0
    return Counter({row: weight for row, weight in change.items() if weight})


@given(data=st.data(), plan=extremes(), old=bags)
def test_the_derivative_of_extremes_is_the_difference_it_stands_for(data, plan, old):
    change = data.draw(changes(old))
    difference = evaluate(derive(plan), {"t": old}, {"t": change})
    new = evaluate(plan, {"t": total(old, change)})
    assert new == total(evaluate(plan, {"t": old}), difference)


@given(data=st.data(), plan=extremes(), old=bags)
def test_extremes_equal_their_query_after_every_epoch(data, plan, old):
    maintenance = compile_arrangements(
        {"t": Table(ROWS, ())}, (View(Source("v", schema_of(plan)), (), plan),)
    )
    memory = Memory(maintenance, {"t": ROWS}, {"t": old})
    for _ in range(3):
        change = data.draw(changes(old))
        memory.run(compile_program(maintenance, {"t": True}), {"t": change})
        old = total(old, change)
        assert memory.value("v") == memory.meaning(plan)
