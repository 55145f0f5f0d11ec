"""Q(R + ΔR) = Q(R) + ΔQ(R, ΔR), for every operator and their compositions."""

from __future__ import annotations

from copy import deepcopy
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.analysis.degree import degree
from everview.analysis.keys import keys
from everview.analysis.sign import Sign, sign
from everview.differentiate.derive import derive
from everview.differentiate.rules import RULES, UNDIFFERENTIATED
from everview.expr.types import names
from everview.plan.build import add, distinct, map_, negate, project
from everview.plan.nodes import Output, Partition, Plan, Window
from everview.plan.text import parse_plan, print_plan
from everview.plan.traverse import schema_of, walk
from everview.rewrite.distinct import eliminate_distinct
from everview.rewrite.passes import PASSES, rewrite
from strategies import EVERY, SOURCES, T, U, after, changes, one_of_each, plans, total, worlds


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_derivative_is_the_difference_it_stands_for(data, plan, world):
    change = data.draw(changes(world))
    new = after(world, change)
    derivative = derive(plan)
    assert evaluate(plan, new) == total(evaluate(plan, world), evaluate(derivative, world, change))


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


@given(plan=plans())
def test_differentiation_lowers_a_finite_degree_by_one(plan):
    if 0 < degree(plan) < float("inf"):
        assert degree(derive(plan)) == degree(plan) - 1


def test_every_operator_is_differentiated_or_occurs_only_in_derivatives():
    assert set(get_args(Plan)) == set(RULES) | UNDIFFERENTIATED
    assert not set(RULES) & UNDIFFERENTIATED
    assert all(rule.law and rule.cites for rule in RULES.values())


@given(plan=plans())
def test_a_plan_is_what_its_text_says(plan):
    for form in (plan, derive(plan), rewrite(plan)):
        assert parse_plan(print_plan(form)) is form
        assert deepcopy(form) is form


def reads_bags(plan: Plan) -> bool:
    """Whether groups and windows are over rows that are there, as all languages have it."""
    over = (node.child for node in walk(plan) if isinstance(node, Partition | Window))
    return all(sign(child) is not Sign.ANY for child in over)


@given(plan=plans().filter(reads_bags), world=worlds())
def test_every_pass_keeps_the_meaning(plan, world):
    expected = evaluate(plan, world)
    for simplify in PASSES:
        plan = simplify(plan)
        assert evaluate(plan, world) == expected, simplify.__name__


QUERIES = tuple(kind for kind in EVERY if kind != "signed extremes")
"""What a query may ask for: no group of it has rows of negative weight."""


@given(each=one_of_each((T, U), QUERIES), world=worlds())
def test_every_pass_keeps_the_meaning_of_one_column_of_each_operator(each, world):
    for operator in each:
        last = names(schema_of(operator))[-1]
        plan = project(operator, (last,))
        expected = evaluate(plan, world)
        for simplify in PASSES:
            plan = simplify(plan)
            assert evaluate(plan, world) == expected, simplify.__name__


@given(world=worlds())
def test_a_distinct_below_a_subtraction_stays(world):
    one, other = (map_(SOURCES[n], (Output("p", "int", "`a`"),)) for n in ("t", "u"))
    plan = distinct(add(distinct(one), negate(other)))
    assert rewrite(plan) == plan
    assert evaluate(eliminate_distinct(plan), world) == evaluate(plan, world)


@given(plan=plans())
def test_rewriting_keeps_names_and_types(plan):
    assert schema_of(rewrite(plan)) == schema_of(plan)


@given(plan=plans(), world=worlds())
def test_keys_are_unique_and_signs_are_sound(plan, world):
    value = evaluate(plan, world)
    if sign(plan) is Sign.POSITIVE:
        assert all(weight > 0 for weight in value.values())
    columns = names(schema_of(plan))
    for key in keys(plan):
        places = [columns.index(name) for name in key]
        seen = [tuple(row[i] for i in places) for row in value.elements()]
        assert len(seen) == len(set(seen))
