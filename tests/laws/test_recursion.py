"""Loops: what they reach, and how it changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation import calculate, evaluate
from everview.compiler import Maintenance, Table, View
from everview.differentiate.derive import derive
from everview.plan.build import group_by
from everview.plan.nodes import Aggregate, Source
from everview.plan.text import parse_plan, print_plan
from everview.plan.traverse import schema_of
from everview.rewrite.passes import PASSES, rewrite
from loops import TABLES, E, F, graphs, loops, moves, path, without
from memory import Memory
from strategies import after, total


@given(loop=loops, world=graphs())
def test_a_loop_evaluated_from_scratch_reaches_what_it_stands_for(loop, world):
    assert calculate(loop, world) == evaluate(loop, world)


@given(data=st.data(), loop=loops, world=graphs())
def test_the_derivative_of_a_loop_is_the_difference_it_stands_for(data, loop, world):
    change = data.draw(moves(world))
    difference = evaluate(derive(loop), world, change)
    assert evaluate(loop, after(world, change)) == total(evaluate(loop, world), difference)


@given(loop=loops, world=graphs())
def test_every_pass_keeps_what_a_loop_reaches(loop, world):
    expected, columns, plan = evaluate(loop, world), schema_of(loop), loop
    for simplify in PASSES:
        plan = simplify(plan)
        assert evaluate(plan, world) == expected, simplify.__name__
        assert schema_of(plan) == columns


@given(loop=loops)
def test_a_loop_is_what_its_text_says(loop):
    assert parse_plan(print_plan(loop)) is loop


def _maintenance(*chosen):
    tables = {name: Table(source, ("x",)) for name, source in TABLES.items()}
    views = []
    for number, plan in enumerate(chosen):
        made = rewrite(plan)
        views.append(View(Source(f"v{number}", schema_of(made)), ("x",), made))
    return Maintenance(tables, tuple(views))


def _touched(change):
    return {n: any(w < 0 for w in bag.values()) for n, bag in change.items() if bag}


def _follow(data, maintenance, world, epochs):
    memory = Memory(maintenance, TABLES, world)
    for _ in range(epochs):
        change = data.draw(moves(world))
        memory.run(maintenance.program(_touched(change)), change)
        world = after(world, change)
        for view in maintenance.views:
            assert memory.value(view.source.name) == memory.meaning(view.plan)
        for state in maintenance.states.stored.values():
            assert memory.value(state.name) == memory.meaning(state.plan)


@given(data=st.data(), loop=loops, world=graphs())
def test_a_loop_and_its_states_equal_their_queries_after_every_epoch(data, loop, world):
    _follow(data, _maintenance(loop), world, 4)


@given(data=st.data(), loop=loops, world=graphs())
def test_what_stands_over_a_loop_equals_its_query_after_every_epoch(data, loop, world):
    count = (Aggregate("n", "bigint", "count"),)
    over = (group_by(loop, ("x",), count), path(loop, E), without(F, loop))
    _follow(data, _maintenance(*over), world, 3)
