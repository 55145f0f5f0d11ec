"""Q(R + ΔR) = Q(R) + ΔQ(R, ΔR), for every operator and their compositions."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.differentiate.derive import derive
from everview.differentiate.rules import RULES, UNDIFFERENTIATED
from everview.plan.nodes import Plan
from everview.plan.text import print_plan
from everview.program.maps import maps_in
from everview.rewrite.factorize import factorize
from strategies import T, U, after, changes, grouped_joins, one_of_each, plans, total, worlds


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_derivative_is_the_difference_it_stands_for(data, plan, world):
    change = data.draw(changes(world))
    new = after(world, change)
    derivative = derive(plan)
    assert evaluate(plan, new) == total(evaluate(plan, world), evaluate(derivative, world, change))


@given(data=st.data(), plan=grouped_joins(), world=worlds())
def test_the_derivative_of_products_is_the_difference_it_stands_for(data, plan, world):
    change = data.draw(changes(world))
    made = factorize(plan, overflow=True)
    difference = evaluate(derive(made), world, change)
    assert evaluate(plan, after(world, change)) == total(evaluate(plan, world), difference)


@given(data=st.data(), plan=grouped_joins(), world=worlds())
def test_the_derivative_of_products_holds_whichever_of_their_maps_are_kept(data, plan, world):
    change = data.draw(changes(world))
    made = factorize(plan, overflow=True)
    every = sorted(maps_in(made, None), key=print_plan)
    kept = data.draw(st.sets(st.sampled_from(every))) if every else set()
    difference = evaluate(derive(made, maps=kept), world, change)
    assert evaluate(plan, after(world, change)) == total(evaluate(plan, world), difference)


@given(data=st.data(), each=one_of_each((T, U)), world=worlds())
def test_the_derivative_of_each_operator_is_the_difference_it_stands_for(data, each, world):
    change = data.draw(changes(world))
    new = after(world, change)
    for plan in each:
        difference = evaluate(derive(plan), world, change)
        assert evaluate(plan, new) == total(evaluate(plan, world), difference)


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_derivative_for_one_changed_table_ignores_the_others(data, plan, world):
    change = data.draw(changes(world))
    change["u"].clear()
    derivative = derive(plan, frozenset({"t"}))
    assert not any('Change "u"' in line for line in print_plan(derivative).splitlines())
    new = after(world, change)
    assert evaluate(plan, new) == total(evaluate(plan, world), evaluate(derivative, world, change))


def test_every_operator_is_differentiated_or_occurs_only_in_derivatives():
    assert set(get_args(Plan)) == set(RULES) | UNDIFFERENTIATED
    assert not set(RULES) & UNDIFFERENTIATED
    assert all(rule.law and rule.cites for rule in RULES.values())
