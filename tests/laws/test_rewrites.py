"""Each pass keeps the meaning of a plan, and its names and types."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.analysis.sign import Sign, sign
from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.type_inference import type_of
from everview.expr.types import names
from everview.plan.build import add, distinct, filter_, group_by, join, map_, negate, project
from everview.plan.nodes import Aggregate, Output, Partition, Plan, Window
from everview.plan.traverse import schema_of, walk
from everview.program.maps import products_in
from everview.rewrite.distinct import eliminate_distinct
from everview.rewrite.factorize import factorize
from everview.rewrite.passes import PASSES, rewrite
from everview.rewrite.plain_equality import plain_equality
from strategies import (
    EVERY,
    SOURCES,
    T,
    U,
    changes,
    grouped_joins,
    one_of_each,
    plans,
    predicates,
    prefixed,
    worlds,
)


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


@given(plan=st.one_of(plans().filter(reads_bags), grouped_joins()), world=worlds())
def test_pushing_aggregation_below_joins_keeps_the_meaning(plan, world):
    expected = evaluate(plan, world)
    for prepared in (plan, rewrite(plan)):
        for overflow in (False, True):
            made = factorize(prepared, overflow=overflow)
            assert schema_of(made) == schema_of(plan)
            assert evaluate(made, world) == expected


@given(data=st.data(), plan=grouped_joins(), world=worlds())
def test_it_keeps_the_meaning_over_signed_rows(data, plan, world):
    signed = data.draw(changes(world))
    assert evaluate(factorize(plan, overflow=True), signed) == evaluate(plan, signed)


PRODUCTS = (
    *("`l2` * `r2`", "`l2` * `r2` * 2", "2 - `l2` * `r2`", "`l2` + `r2`", "`l2` - `r2` * 3"),
    *("CASE WHEN `l2` > 0 THEN `r2` ELSE 1 END", "(1 - `l0`) * (1 - `r1`)", "`l2` * 2"),
    *("`l2` * CASE WHEN `l0` = 1 THEN `r2` END", "CASE WHEN `l0` > 0 THEN 2 END * `r2`"),
    "`l2` - `l0` * `r2`",
)
"""Values over one relation or two, in which each null, sign and literal counts."""


@given(
    product=st.sampled_from(PRODUCTS),
    residual=st.sampled_from([None, "`r1` < `t1`"]),
    world=worlds(),
)
def test_each_product_of_a_joined_row_is_split_and_keeps_its_meaning(product, residual, world):
    left, right, third = (prefixed(T, prefix) for prefix in "lrt")
    whole = join(join(left, right, (("l1", "r1"),)), third, (("r0", "t0"),), residual)
    text = scalar.canonical(product)
    type_ = type_of(text, schema_of(whole))
    assert type_ is not None
    made = tuple(
        Aggregate(name, result_type(name, type_) or "", name, "v") for name in ("sum", "count")
    )
    values = (Output("v", type_, text), Output("k", "int", "`t1`"))
    plan = group_by(map_(whole, values), ("k",), made)
    split = factorize(plan, overflow=True)
    assert products_in(split)
    assert evaluate(split, world) == evaluate(plan, world)


@given(data=st.data(), world=worlds())
def test_a_null_safe_join_of_values_is_a_plain_one_and_keeps_its_meaning(data, world):
    left, right = (prefixed(T, prefix) for prefix in "lr")
    kept = data.draw(predicates(schema_of(left)))
    plan = join(filter_(left, kept), right, (("l0", "r0"),), nulls=True)
    assert evaluate(plain_equality(plan), world) == evaluate(plan, world)


def test_a_join_is_plain_where_a_side_of_each_pair_is_never_null():
    left, right = (prefixed(T, prefix) for prefix in "lr")
    pairs = (("l0", "r0"), ("l1", "r1"))
    values = filter_(left, "NOT `l0` IS NULL"), filter_(right, "`r1` > 0")
    assert plain_equality(join(*values, pairs, nulls=True)) == join(*values, pairs)
    safe = join(values[0], right, pairs, nulls=True)
    assert plain_equality(safe) == safe


@given(world=worlds())
def test_a_distinct_below_a_subtraction_stays(world):
    one, other = (map_(SOURCES[n], (Output("p", "int", "`a`"),)) for n in ("t", "u"))
    plan = distinct(add(distinct(one), negate(other)))
    assert rewrite(plan) == plan
    assert evaluate(eliminate_distinct(plan), world) == evaluate(plan, world)


@given(plan=plans())
def test_rewriting_keeps_names_and_types(plan):
    assert schema_of(rewrite(plan)) == schema_of(plan)
