"""Loops: what they reach, and how it changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import EndlessError, calculate, evaluate
from everview.compiler import Table, View, compile_arrangements, compile_program
from everview.differentiate.derive import derive
from everview.errors import UserError
from everview.plan.build import add, distinct, group_by, negate, while_
from everview.plan.nodes import Aggregate, Recursive, Source
from everview.plan.text import parse_plan, print_plan
from everview.plan.traverse import children, schema_of, transform
from everview.rewrite.passes import PASSES, rewrite
from loops import PAIR, TABLES, E, F, graphs, loops, moves, path, without
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


def _while():
    """A while-program that ends: it never takes a pair away again."""
    won = Recursive("w", PAIR)
    body = distinct(add(path(won, F), negate(path(won, E)), F))
    return while_("w", distinct(E), distinct(add(won, body)))


@given(data=st.data(), world=graphs())
def test_the_derivative_of_a_while_program_is_the_difference_it_stands_for(data, world):
    change, loop = data.draw(moves(world)), _while()
    difference = evaluate(derive(loop), world, change)
    assert evaluate(loop, after(world, change)) == total(evaluate(loop, world), difference)


@given(data=st.data(), loop=loops, world=graphs())
def test_the_derivative_of_a_body_is_what_one_iteration_adds(data, loop, world):
    def source(node):
        return Source(node.name, node.schema) if isinstance(node, Recursive) else node

    reached = {name: data.draw(graphs())["e"] for name in ("p", "q", "r")}
    change = {**data.draw(moves(world)), **{n: data.draw(graphs(2))["f"] for n in reached}}
    old = {**world, **reached}
    # A distinct hides how often its rows come.
    bodies = [each for _, body in loop.equations for each in (body, *children(body))]
    for body in bodies:
        difference = evaluate(transform(derive(body), source), old, change)
        plan = transform(body, source)
        assert evaluate(plan, after(old, change)) == total(evaluate(plan, old), difference)


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


def _game(start):
    """Pairs that win: from which a move leads to one that does not. Not monotone."""
    won = Recursive("w", PAIR)
    steps = path(E, E)
    return while_("w", distinct(start), distinct(add(steps, negate(path(won, E)))), limit=12)


@given(world=graphs(), start=st.sampled_from([E, F]))
def test_a_while_program_reaches_what_it_stands_for_or_its_limit(world, start):
    loop = _game(start)
    try:
        expected = evaluate(loop, world)
    except EndlessError:
        with pytest.raises(UserError, match="has not ended after 12 iterations"):
            calculate(loop, world)
    else:
        assert calculate(loop, world) == expected


@given(data=st.data(), world=graphs())
def test_a_while_program_equals_its_query_after_every_epoch(data, world):
    _follow(data, _maintenance(_while()), world, 2)


def _maintenance(*chosen):
    tables = {name: Table(source, ("x",)) for name, source in TABLES.items()}
    views = []
    for number, plan in enumerate(chosen):
        made = rewrite(plan)
        views.append(View(Source(f"v{number}", schema_of(made)), ("x",), made))
    return compile_arrangements(tables, tuple(views))


def _touched(change):
    return {n: any(w < 0 for w in bag.values()) for n, bag in change.items() if bag}


def _follow(data, maintenance, world, epochs):
    memory = Memory(maintenance, TABLES, world)
    for _ in range(epochs):
        change = data.draw(moves(world))
        memory.run(compile_program(maintenance, _touched(change)), change)
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
