"""The laws of rings, Z-sets, generalized relations and streams, each as its paper states it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.relation import Relation, record
from everview.algebra.ring import INTEGERS, RATIONALS, Ring, product
from everview.algebra.stream import (
    Stream,
    delay,
    delta0,
    differentiate,
    fix,
    fix_inner,
    incremental,
    integral,
    integrate,
    lift,
)
from everview.algebra.zset import ZSet, distinct_change
from everview.errors import UserError

# Small worlds, so that rows meet in joins and weights cancel.
TIMES = 6
rows = st.tuples(st.sampled_from([0, 1, None]), st.sampled_from(["x", "y", None]))
weights = st.integers(-2, 2)
zsets = st.lists(st.tuples(rows, weights), max_size=5).map(ZSet)
bags = st.lists(rows, max_size=5).map(ZSet.bag)

integers = st.integers(-3, 3)
rationals = st.fractions(-2, 2, max_denominator=3)
RINGS = [
    pytest.param(INTEGERS, integers, id="integers"),
    pytest.param(RATIONALS, rationals, id="rationals"),
    pytest.param(
        product(INTEGERS, RATIONALS), st.tuples(integers, rationals), id="product of rings"
    ),
]

values = st.sampled_from([0, 1])
records = st.one_of(
    st.just(record()),
    st.builds(record, a=values),
    st.builds(record, b=values),
    st.builds(record, a=values, b=values),
)


def relations(ring: Ring, elements: st.SearchStrategy) -> st.SearchStrategy[Relation]:
    entries = st.lists(st.tuples(records, elements), max_size=4)
    return entries.map(lambda listed: Relation(ring, listed))


def streams(elements: st.SearchStrategy, zero: object) -> st.SearchStrategy[Stream]:
    return st.lists(elements, max_size=TIMES).map(lambda listed: Stream.of(listed, zero))


zset_streams = streams(zsets, ZSet())


def first(row: tuple) -> object:
    return row[0]


def self_join(zset: ZSet) -> ZSet:
    return zset.join(zset, first, first)


LINEAR = {
    "filter": lambda zset: zset.filter(lambda row: row[0] == 1),
    "map": lambda zset: zset.map(first),
    "flat_map": lambda zset: zset.flat_map(lambda row: [(row[0], 2), (row[1], -1)]),
    "negate": lambda zset: -zset,
    "scale": lambda zset: zset.scale(3),
}
BILINEAR = {
    "product": lambda left, right: left.product(right),
    "join": lambda left, right: left.join(right, first, first),
}
NOT_LINEAR = {"distinct": ZSet.distinct, "self join": self_join}

each_linear = pytest.mark.parametrize("f", LINEAR.values(), ids=LINEAR.keys())
each_bilinear = pytest.mark.parametrize("f", BILINEAR.values(), ids=BILINEAR.keys())
each_query = pytest.mark.parametrize(
    "f", (LINEAR | NOT_LINEAR).values(), ids=(LINEAR | NOT_LINEAR).keys()
)


def same(left: Stream, right: Stream) -> bool:
    # One more step than any input is long, and one to see that nothing comes after.
    return left.prefix(TIMES + 2) == right.prefix(TIMES + 2)


@pytest.mark.parametrize(("ring", "elements"), RINGS)
@given(data=st.data())
def test_a_ring_satisfies_its_laws(ring, elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    add, multiply = ring.add, ring.multiply
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, ring.zero) == a
    assert add(a, ring.negate(a)) == ring.zero
    assert multiply(a, b) == multiply(b, a)
    assert multiply(multiply(a, b), c) == multiply(a, multiply(b, c))
    assert multiply(a, ring.one) == a
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))


@pytest.mark.parametrize(("ring", "elements"), RINGS)
@given(data=st.data())
def test_a_sum_is_repeated_addition_from_zero(ring, elements, data):
    a, b = data.draw(elements), data.draw(elements)
    assert ring.sum([]) == ring.zero
    assert ring.sum([a, b]) == ring.add(a, b)


@pytest.mark.parametrize(("ring", "elements"), RINGS)
@given(data=st.data())
def test_the_relations_over_a_commutative_ring_are_a_commutative_ring(ring, elements, data):
    """Prop. 3.3."""
    r, s, t = (data.draw(relations(ring, elements)) for _ in range(3))
    zero, one = Relation(ring), Relation.scalar(ring, ring.one)
    assert r + s == s + r
    assert (r + s) + t == r + (s + t)
    assert r + zero == r
    assert r - r == zero
    assert r * s == s * r
    assert (r * s) * t == r * (s * t)
    assert r * one == r
    assert r * zero == zero
    assert r * (s + t) == r * s + r * t


def test_the_product_of_relations_is_the_natural_join_of_records_of_any_schema():
    """Example 3.2, with r₁ = 2, r₂ = 3, s = 5, t₁ = 7, t₂ = 11."""
    r = Relation(INTEGERS, [(record(A="a1"), 2), (record(A="a2", B="b"), 3)])
    s = Relation(INTEGERS, [(record(C="c"), 5)])
    t = Relation(INTEGERS, [(record(C="c"), 7), (record(B="b", C="c"), 11)])
    assert s + t == Relation(INTEGERS, [(record(C="c"), 12), (record(B="b", C="c"), 11)])
    assert r * (s + t) == Relation(
        INTEGERS,
        [
            (record(A="a1", C="c"), 2 * 12),
            (record(A="a1", B="b", C="c"), 2 * 11),
            (record(A="a2", B="b", C="c"), 3 * 12 + 3 * 11),
        ],
    )


def test_records_that_disagree_on_a_column_have_no_join():
    left, right = (Relation(INTEGERS, [(record(a=a), 1)]) for a in (0, 1))
    assert left * right == Relation(INTEGERS)


@given(r=relations(INTEGERS, integers), s=relations(INTEGERS, integers))
def test_projection_is_linear(r, s):
    assert (r + s).project(["a"]) == r.project(["a"]) + s.project(["a"])


@given(r=relations(INTEGERS, integers))
def test_projection_on_no_columns_is_the_sum_of_all_values(r):
    total = INTEGERS.sum(value for _, value in r)
    assert r.project([]) == Relation.scalar(INTEGERS, total)


@given(left=relations(RATIONALS, rationals), change=relations(RATIONALS, rationals))
def test_the_value_of_a_sum_is_the_sum_of_the_values(left, change):
    for row in (record(), record(a=1), record(a=0, b=1)):
        assert (left + change)[row] == left[row] + change[row]
        assert isinstance(left[row], Fraction)


@given(a=zsets, b=zsets, c=zsets)
def test_z_sets_are_an_abelian_group(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + ZSet() == a
    assert a - a == ZSet()
    assert a - b == a + -b


@given(entries=st.lists(st.tuples(rows, weights)))
def test_a_z_set_holds_no_row_of_weight_zero(entries):
    zset = ZSet(entries)
    assert all(weight for _, weight in zset)
    for row, _ in entries:
        total = sum(w for r, w in entries if r == row)
        assert zset[row] == total
        assert (row in zset) == bool(total)


@given(a=zsets, b=zsets, row=rows)
def test_addition_is_pointwise(a, b, row):
    assert (a + b)[row] == a[row] + b[row]


def test_the_empty_z_set_is_the_value_without_rows():
    assert ZSet([("a", 1), ("a", -1)]) == ZSet()
    assert len(ZSet()) == 0
    assert repr(ZSet()) == "ZSet()"
    assert ZSet() != 0


@each_linear
@given(a=zsets, b=zsets)
def test_a_linear_operator_is_a_homomorphism_of_groups(f, a, b):
    """Def. 2.12."""
    assert f(a + b) == f(a) + f(b)
    assert f(-a) == -f(a)


@each_bilinear
@given(a=zsets, b=zsets, c=zsets)
def test_join_and_product_are_linear_in_each_argument(f, a, b, c):
    """Def. 2.13."""
    assert f(a + b, c) == f(a, c) + f(b, c)
    assert f(a, b + c) == f(a, b) + f(a, c)


@given(a=zsets, b=zsets)
def test_a_join_is_the_part_of_the_product_where_the_keys_agree(a, b):
    assert a.join(b, first, first) == a.product(b).filter(lambda ab: ab[0][0] == ab[1][0])


@given(a=zsets)
def test_distinct_yields_the_set_of_rows_of_positive_weight(a):
    """Def. 4.1 to 4.3."""
    assert a.distinct().is_set()
    assert {row for row, _ in a.distinct()} == {row for row, weight in a if weight > 0}
    assert a.distinct().distinct() == a.distinct()
    assert not a.is_set() or (a.is_positive() and a.distinct() == a)


@given(a=bags, b=bags)
def test_positive_z_sets_are_the_bags(a, b):
    assert a.is_positive()
    assert (a + b).is_positive()
    assert not (-a).is_positive() or a == ZSet()


@given(bag=bags)
def test_filter_commutes_with_distinct_on_bags(bag):
    """Prop. 4.4."""
    keep = LINEAR["filter"]
    assert keep(bag.distinct()) == keep(bag).distinct()


@each_bilinear
@given(a=bags, b=bags)
def test_join_and_product_commute_with_distinct_on_bags(f, a, b):
    """Prop. 4.4."""
    assert f(a.distinct(), b.distinct()) == f(a, b).distinct()


@pytest.mark.parametrize("name", ["filter", "map"])
@given(bag=bags)
def test_an_outer_distinct_absorbs_the_one_before_a_filter_or_projection(name, bag):
    """Prop. 4.5."""
    f = LINEAR[name]
    assert f(bag.distinct()).distinct() == f(bag).distinct()


@pytest.mark.parametrize("f", [*BILINEAR.values(), operator.add], ids=[*BILINEAR, "add"])
@given(a=bags, b=bags)
def test_an_outer_distinct_absorbs_those_before_a_join_or_sum(f, a, b):
    """Prop. 4.5."""
    assert f(a.distinct(), b.distinct()).distinct() == f(a, b).distinct()


def test_distinct_does_not_commute_with_projection():
    """Why Prop. 4.5 is weaker than 4.4: two rows may become one."""
    bag = ZSet.bag([(1, "x"), (1, "y")])
    assert bag.distinct().map(first) != bag.map(first).distinct()


@given(old=zsets, change=zsets)
def test_h_is_the_change_of_distinct(old, change):
    assert distinct_change(old, change) == (old + change).distinct() - old.distinct()


@given(old=zsets, change=zsets)
def test_h_reads_and_writes_only_rows_that_change(old, change):
    touched = old.filter(lambda row: row in change)
    assert distinct_change(touched, change) == distinct_change(old, change)
    assert all(row in change for row, _ in distinct_change(old, change))


@given(changes=zset_streams)
def test_the_incremental_distinct_is_h_of_the_past_and_the_change(changes):
    past = delay(integrate(changes))
    assert same(incremental(lift(ZSet.distinct))(changes), lift(distinct_change)(past, changes))


@given(s=zset_streams)
def test_integration_and_differentiation_are_inverse(s):
    """Thm 2.20."""
    assert same(integrate(differentiate(s)), s)
    assert same(differentiate(integrate(s)), s)


@given(s=streams(integers, 0))
def test_the_integral_at_a_time_is_the_sum_of_all_values_so_far(s):
    """Prop. 2.18."""
    assert integrate(s).prefix(TIMES) == [sum(s.prefix(t + 1)) for t in range(TIMES)]


@given(s=zset_streams)
def test_lifting_distributes_over_composition(s):
    """Prop. 2.4."""
    f, g = LINEAR["map"], ZSet.distinct
    assert same(lift(lambda x: f(g(x)))(s), lift(f)(lift(g)(s)))


@given(s=streams(integers, 0))
def test_a_stream_begins_from_zero_even_when_its_function_does_not(s):
    """Def. 2.5 takes the zero of the group, not f(0); so Thm 2.20 holds for every lifted f."""
    successor = lift(lambda x: x + 1)(s)
    assert delay(successor)[0] == 0
    assert same(integrate(differentiate(successor)), successor)


STREAM_OPERATORS: dict[str, Callable[[Stream], Stream]] = {
    "delay": delay,
    "integrate": integrate,
    "differentiate": differentiate,
    "negate": operator.neg,
}
each_stream_operator = pytest.mark.parametrize(
    "op", STREAM_OPERATORS.values(), ids=STREAM_OPERATORS.keys()
)


@each_stream_operator
@given(s=zset_streams, t=zset_streams)
def test_delay_integration_and_differentiation_are_linear_and_time_invariant(op, s, t):
    """Prop. 2.16 and 2.19."""
    assert same(op(s + t), op(s) + op(t))
    assert same(op(delay(s)), delay(op(s)))


@given(s=zset_streams, t=zset_streams, u=zset_streams)
def test_streams_over_a_group_are_a_group(s, t, u):
    """Prop. 2.11."""
    assert same((s + t) + u, s + (t + u))
    assert same(s + t, t + s)
    assert same(s - s, Stream.of([], ZSet()))
    assert same(s - t, s + -t)


@given(s=streams(integers, 0))
def test_a_strict_loop_has_a_fixed_point(s):
    """Prop. 2.9."""

    def body(past: Stream) -> Stream:
        return lift(lambda x, y: x * y + 1)(s, delay(past))

    solution = fix(body, 0)
    assert same(solution, body(solution))


def test_a_loop_that_is_not_strict_is_refused():
    with pytest.raises(UserError, match="delay on the feedback edge"):
        fix(lambda present: lift(abs)(present), 0)[0]


def test_a_long_stream_needs_no_deep_recursion():
    assert integrate(Stream(lambda _t: 1, 0))[5_000] == 5_001


@each_linear
@given(changes=zset_streams)
def test_a_linear_query_is_its_own_incremental_version(f, changes):
    """Thm 3.3."""
    assert same(incremental(lift(f))(changes), lift(f)(changes))


@each_bilinear
@given(a=zset_streams, b=zset_streams)
def test_the_change_of_a_bilinear_query_has_three_terms_or_two(f, a, b):
    """Thm 3.4."""
    times = lift(f)
    past_a, past_b = delay(integrate(a)), delay(integrate(b))
    change = incremental(times)(a, b)
    assert same(change, times(a, b) + times(past_a, b) + times(a, past_b))
    assert same(change, times(integrate(a), b) + times(a, past_b))


def test_a_query_that_is_not_linear_is_not_its_own_incremental_version():
    changes = Stream.of([ZSet.bag("a"), ZSet.bag("a")], ZSet())
    assert not same(incremental(lift(ZSet.distinct))(changes), lift(ZSet.distinct)(changes))


@each_query
@given(changes=zset_streams)
def test_the_incremental_version_of_a_composition_is_the_composition_of_incremental_versions(
    f, changes
):
    """Prop. 3.2, chain."""
    q1, q2 = lift(ZSet.distinct), lift(f)
    composed = incremental(lambda s: q1(q2(s)))
    assert same(composed(changes), incremental(q1)(incremental(q2)(changes)))


@each_query
@given(changes=zset_streams)
def test_the_incremental_version_of_a_sum_is_the_sum_of_incremental_versions(f, changes):
    """Prop. 3.2, add."""
    q1, q2 = lift(lambda z: f(z).distinct()), lift(f)
    summed = incremental(lambda s: q1(s) + q2(s))
    assert same(summed(changes), incremental(q1)(changes) + incremental(q2)(changes))


@each_query
@given(s=zset_streams)
def test_a_query_can_be_pushed_through_integration_and_pulled_through_differentiation(f, s):
    """Prop. 3.2, push and pull."""
    query = lift(f)
    assert same(query(integrate(s)), integrate(incremental(query)(s)))
    assert same(differentiate(query(s)), incremental(query)(differentiate(s)))


@each_query
@given(s=zset_streams)
def test_a_query_is_recovered_from_its_incremental_version(f, s):
    """Prop. 3.2, inversion."""
    assert same(integrate(incremental(lift(f))(differentiate(s))), lift(f)(s))


@each_stream_operator
@given(s=zset_streams)
def test_delay_integration_and_differentiation_are_their_own_incremental_versions(op, s):
    """Prop. 3.2, invariance."""
    assert same(incremental(op)(s), op(s))


@given(s=zset_streams)
def test_the_incremental_version_of_a_loop_is_the_loop_of_the_incremental_body(s):
    """Prop. 3.2, cycle."""

    def body(x: Stream, past: Stream) -> Stream:
        return lift(lambda a, b: (a + b).distinct())(x, past)

    def loop(x: Stream) -> Stream:
        return fix(lambda past: body(x, delay(past)), ZSet())

    incremental_loop = fix(lambda past: incremental(body)(s, delay(past)), ZSet())
    assert same(incremental(loop)(s), incremental_loop)


nodes = st.integers(0, 3)
graphs = st.lists(st.tuples(nodes, nodes), max_size=6).map(lambda edges: ZSet.bag(set(edges)))


def one_step(edges: ZSet, paths: ZSet) -> ZSet:
    longer = paths.join(edges, lambda path: path[1], lambda edge: edge[0])
    return (edges + longer.map(lambda pair: (pair[0][0], pair[1][1]))).distinct()


def closure_by_hand(edges: ZSet) -> ZSet:
    paths = ZSet()
    while (longer := one_step(edges, paths)) != paths:
        paths = longer
    return paths


def naive_loop(edges: Stream) -> Stream:
    return fix(lambda past: lift(one_step)(edges, delay(past)), ZSet())


@given(edges=graphs)
def test_naive_and_semi_naive_evaluation_reach_the_least_fixed_point(edges):
    """Thm 5.4 and equation 5.1."""
    naive = differentiate(naive_loop(integrate(delta0(edges))))
    body = incremental(lift(one_step))
    semi_naive = fix(lambda past: body(delta0(edges), delay(past)), ZSet())
    assert integral(naive) == closure_by_hand(edges)
    assert integral(semi_naive) == closure_by_hand(edges)


@given(value=zsets)
def test_the_definite_integral_undoes_stream_introduction(value):
    assert integral(delta0(value)) == value


@given(a=zsets, b=zsets)
def test_stream_introduction_is_linear(a, b):
    """Prop. 5.2."""
    assert same(delta0(a + b), delta0(a) + delta0(b))


@given(graph_stream=streams(graphs, ZSet()))
def test_a_lifted_loop_is_a_loop_of_lifted_operators(graph_stream):
    """Prop. 6.2."""
    nested = lift(lambda edges: integrate(delta0(edges)))(graph_stream)
    lifted_loop = lift(naive_loop)(nested)
    loop_of_lifted = fix_inner(
        lambda past: lift(lift(one_step))(nested, lift(delay)(past)), nested.zero
    )
    for t in range(TIMES):
        assert same(lifted_loop[t], loop_of_lifted[t])
