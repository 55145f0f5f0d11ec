"""Joins in another order are the same relation, and have keys wherever they can."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.expr import scalar
from everview.expr.types import Column
from everview.plan.build import columns_of, filter_, join
from everview.plan.nodes import Join, Plan, Source
from everview.plan.traverse import walk
from everview.rewrite.join_order import order_joins
from everview.rewrite.passes import rewrite

NAMES = "abcd"
TABLES = {n: Source(n, (Column(f"{n}1", "int"), Column(f"{n}2", "int"))) for n in NAMES}

values = st.sampled_from([1, 1, 2, None])
bags = st.lists(st.tuples(values, values), max_size=4).map(Counter)
worlds = st.fixed_dictionaries(dict.fromkeys(NAMES, bags))
columns = st.sampled_from([f"{n}{i}" for n in NAMES for i in (1, 2)])
conditions = st.lists(
    st.tuples(columns, st.sampled_from(["=", "=", "<="]), columns).map(
        lambda each: scalar.canonical(f"`{each[0]}` {each[1]} `{each[2]}`")
    ),
    max_size=4,
)


def joined(names: str, asked: list[str]) -> Plan:
    return filter_(reduce(join, (TABLES[n] for n in names)), scalar.conjunction(asked))


def products(plan: Plan) -> int:
    return sum(isinstance(node, Join) and not node.on for node in walk(plan))


@given(names=st.permutations(NAMES), asked=conditions, world=worlds)
def test_joins_in_another_order_are_the_same_relation(names, asked, world):
    plan = joined("".join(names), asked)
    arranged = order_joins(plan)
    assert columns_of(arranged) == columns_of(plan)
    assert evaluate(arranged, world) == evaluate(plan, world)


@pytest.mark.parametrize(
    ("names", "asked", "left"),
    [
        ("abc", ["a1 = c1", "b1 = c2"], 0),
        ("abcd", ["a1 = d1", "b1 = d2", "c1 = b2"], 0),
        ("abc", ["a1 = b1", "a1 + b1 = c1"], 0),
        ("abc", ["a1 + b1 = c1"], 1),
        ("abc", ["a1 = c1"], 1),
        ("abc", ["a1 = b1", "b1 = c1"], 0),
    ],
)
def test_a_product_is_left_only_where_nothing_is_equal(names, asked, left):
    plan = joined(names, [scalar.canonical(each) for each in asked])
    assert products(rewrite(plan)) == left


def test_joins_that_have_keys_stay_as_they_are_written():
    plan = joined("abcd", [scalar.canonical(each) for each in ("a1 = b1", "b1 = c1", "a2 = d1")])
    assert order_joins(plan) == plan
