"""Each fact about a plan is sound; differentiation lowers the degree by one."""

from __future__ import annotations

from math import inf

from hypothesis import assume, given

from evaluation import evaluate
from everview.analysis.degree import degree
from everview.analysis.keys import keys
from everview.analysis.sign import Sign, sign
from everview.differentiate.derive import derive
from everview.expr.types import names
from everview.plan.traverse import schema_of
from strategies import POLYNOMIAL, plans, worlds


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


@given(plan=plans(kinds=POLYNOMIAL))
def test_differentiation_lowers_a_finite_degree_by_one(plan):
    assume(degree(plan) > 0)
    assert degree(plan) < inf
    assert degree(derive(plan)) == degree(plan) - 1
