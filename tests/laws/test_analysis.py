"""Each fact about a plan is sound; differentiation lowers the degree by one."""

from __future__ import annotations

from collections import Counter
from math import comb, inf

from hypothesis import assume, given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.analysis.degree import degree
from everview.analysis.keys import keys
from everview.analysis.never_null import never_null
from everview.analysis.sign import Sign, sign
from everview.differentiate.derive import derive
from everview.expr.types import names
from everview.plan.build import filter_, join, map_
from everview.plan.nodes import Output
from everview.plan.traverse import schema_of
from strategies import POLYNOMIAL, T, plans, predicates, total, worlds


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


@given(plan=plans(), world=worlds())
def test_columns_that_are_never_null_hold_values(plan, world):
    columns = names(schema_of(plan))
    places = [columns.index(name) for name in never_null(plan)]
    assert all(row[place] is not None for row in evaluate(plan, world) for place in places)


@given(data=st.data(), world=worlds())
def test_a_condition_demands_values_of_the_columns_that_it_compares(data, world):
    kept = filter_(T, data.draw(predicates(T.schema)))
    columns = names(T.schema)
    places = [columns.index(name) for name in never_null(kept)]
    assert all(row[place] is not None for row in evaluate(kept, world) for place in places)


@given(plan=plans(kinds=POLYNOMIAL), world=worlds())
def test_a_plan_of_degree_k_is_a_polynomial_of_no_higher_degree(plan, world):
    """Over n times the rows of all tables, its finite differences vanish after the k-th."""
    order = int(degree(plan)) + 1
    assert total(*_signed_values(plan, world, order)) == {}


@given(world=worlds().filter(lambda world: bool(world["t"])))
def test_the_degree_of_a_product_of_tables_is_reached(world):
    left, right = (
        map_(T, tuple(Output(f"{side}{c.name}", c.type, f"`{c.name}`") for c in T.schema))
        for side in "lr"
    )
    plan = join(left, right)
    assert degree(plan) == 2
    assert total(*_signed_values(plan, world, 2)) != {}


def _signed_values(plan, world, order):
    """The values over 0, 1, … times the world, weighted as in a finite difference."""
    for times in range(order + 1):
        scaled = {n: Counter({r: w * times for r, w in bag.items()}) for n, bag in world.items()}
        weight = comb(order, times) * (-1) ** (order - times)
        value = evaluate(plan, scaled)
        yield Counter({row: each * weight for row, each in value.items()})


@given(plan=plans(kinds=POLYNOMIAL))
def test_differentiation_lowers_a_finite_degree_by_one(plan):
    assume(degree(plan) > 0)
    assert degree(plan) < inf
    assert degree(derive(plan)) == degree(plan) - 1
