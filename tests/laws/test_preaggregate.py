"""Totals for each value of a domain have the meaning of the rows that they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.expr import scalar
from everview.plan.build import add, distinct, group_by, join, map_
from everview.plan.nodes import Aggregate, Groups, Output, Plan, Source
from everview.plan.traverse import schema_of, walk
from everview.rewrite.normalize import normalize
from everview.rewrite.preaggregate import preaggregate
from strategies import T, worlds

COMPARED = ("`rb` < `k`", "`ra` > `k`", "`ra` + `rb` = `k`", "`rb` IS NULL")
VALUES = {"rx": "decimal(6,2)", "rb": "int", "ra": "int"}
PRODUCT = "`ra` * `rb`"


def prefixed(prefix: str) -> Plan:
    outputs = (Output(f"{prefix}{c.name}", c.type, scalar.column(c.name)) for c in schema_of(T))
    return map_(T, tuple(outputs))


def domain() -> Plan:
    return distinct(map_(T, (Output("k", "int", "`a`"),)))


@st.composite
def aggregates(draw, column, type_, sums):
    found = [Aggregate("n", "bigint", "count")] if draw(st.booleans()) else []
    for function in draw(st.lists(st.sampled_from(("count", "sum")), min_size=1, unique=True)):
        made = "bigint" if function == "count" else sums
        found.append(Aggregate(f"{function} v", made, function, column))
    return tuple(found)


@st.composite
def of_a_domain(draw) -> Plan:
    """The totals of the rows that a domain's values are compared with, padded for empty ones."""
    sides = (domain(), prefixed("r"))
    sides = sides if draw(st.booleans()) else sides[::-1]
    pairs = join(*sides, (), scalar.canonical(draw(st.sampled_from(COMPARED))))
    column = draw(st.sampled_from([*VALUES, "product"]))
    type_ = "int" if column == "product" else VALUES[column]
    text = PRODUCT if column == "product" else scalar.column(column)
    rows = map_(pairs, (Output("k", "int", "`k`"), Output("v", type_, scalar.canonical(text))))
    missing = (Output("k", "int", "`k`"), Output("v", type_, f"CAST(NULL AS {type_.upper()})"))
    if draw(st.booleans()):
        rows = add(rows, map_(domain(), missing))
    sums = "decimal(16,2)" if type_ != "int" else "bigint"
    keys = draw(st.sampled_from([("k",), ()]))
    return group_by(rows, keys, draw(aggregates("v", type_, sums)))


@st.composite
def around_a_subquery(draw) -> Plan:
    """The totals of rows under a condition with the value of a subquery for each of them."""
    counts = (Aggregate("n", "bigint", "count"), Aggregate("s", "bigint", "sum", "rb"))
    pairs = join(domain(), prefixed("r"), (), scalar.canonical(draw(st.sampled_from(COMPARED[:2]))))
    node = group_by(pairs, ("k",), counts)
    whole = map_(
        group_by(prefixed("w"), (), (Aggregate("all", "bigint", "count"),)),
        (Output("all", "bigint", "`all`"),),
    )
    left = join(prefixed("o"), whole) if draw(st.booleans()) else prefixed("o")
    condition = draw(st.sampled_from(["`s` > 1", "`n` > `oa`", "`n` >= `ob` OR `s` IS NULL"]))
    if "all" in (c.name for c in schema_of(left)):
        condition = draw(st.sampled_from([condition, "`all` > 2 * `n`"]))
    both = join(left, node, (("oa", "k"),), scalar.canonical(condition), nulls=True)
    text = draw(st.sampled_from(["`oa` * `ob`", "`ob`", "`oa`"]))
    rows = map_(both, (Output("g", "int", "`ob`"), Output("v", "int", scalar.canonical(text))))
    keys = draw(st.sampled_from([(), ("g",)]))
    return group_by(rows, keys, draw(aggregates("v", "int", "bigint")))


@given(plan=st.one_of(of_a_domain(), around_a_subquery()), world=worlds())
def test_totals_for_each_value_of_a_domain_keep_the_meaning(plan, world):
    plan = normalize(plan)
    made = preaggregate(plan)
    assert schema_of(made) == schema_of(plan)
    assert evaluate(made, world) == evaluate(plan, world)


def grouped(plan: Plan) -> int:
    return sum(isinstance(node, Groups) for node in walk(plan))


def test_rows_that_a_domain_is_compared_with_are_totalled():
    pairs = join(domain(), prefixed("r"), (), "`rb` < `k`")
    plan = group_by(pairs, ("k",), (Aggregate("s", "bigint", "sum", "ra"),))
    assert grouped(preaggregate(plan)) == grouped(plan) + 1


def test_rows_that_are_told_apart_by_what_is_compared_stay():
    """Totals by a key of the relation would be another copy of it."""
    keyed = Source("t", T.schema, ("b",))
    rows = map_(keyed, tuple(Output(f"r{c.name}", c.type, f"`{c.name}`") for c in T.schema))
    pairs = join(domain(), rows, (), "`rb` < `k`")
    plan = group_by(pairs, ("k",), (Aggregate("s", "bigint", "sum", "ra"),))
    assert preaggregate(plan) == plan
