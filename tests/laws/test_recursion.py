"""Loops: what they reach, and how it changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation import calculate, evaluate
from everview.differentiate.derive import derive
from everview.plan.text import parse_plan, print_plan
from everview.plan.traverse import schema_of
from everview.rewrite.passes import PASSES
from loops import graphs, loops, moves
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
