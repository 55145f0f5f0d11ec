"""Semirings, monoid rings and avalanche rings: the propositions of ring-of-databases §1–3."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra.avalanche import Avalanche
from everview.algebra.monoid_ring import FormalSum, Monoid
from everview.algebra.recursive_deltas import MemoizedDeltas, delta
from everview.algebra.relation import RECORDS, Relation, record
from everview.algebra.ring import BOOLEANS, INTEGERS, NATURALS, RATIONALS, Ring, product
from everview.errors import UserError

integers = st.integers(-3, 3)
rationals = st.fractions(-2, 2, max_denominator=3)
SEMIRINGS = {
    "naturals": (NATURALS, st.integers(0, 3)),
    "booleans": (BOOLEANS, st.booleans()),
    "integers": (INTEGERS, integers),
    "rationals": (RATIONALS, rationals),
    "naturals × booleans": (
        product(NATURALS, BOOLEANS),
        st.tuples(st.integers(0, 3), st.booleans()),
    ),
    "integers × rationals": (product(INTEGERS, RATIONALS), st.tuples(integers, rationals)),
}
WORDS = Monoid("", lambda v, w: v + w)
"""A monoid that is not commutative."""
SHORT_WORDS = Monoid("", lambda v, w: v + w if len(v + w) < 3 else None)
"""Its downward-closed part: a word that is short has short parts."""
values = st.sampled_from([0, 1])
MONOIDS = {
    "powers": (Monoid(0, lambda i, j: i + j), st.integers(0, 3)),
    "words": (WORDS, st.text("ab", max_size=2)),
    "short words": (SHORT_WORDS, st.text("ab", max_size=2)),
    "records": (
        RECORDS,
        st.one_of(
            st.just(record()),
            st.builds(record, a=values),
            st.builds(record, b=values),
            st.builds(record, a=values, b=values),
        ),
    ),
}
COMMUTATIVE = ("powers", "records")
each_semiring = pytest.mark.parametrize("semiring", SEMIRINGS)
each_monoid = pytest.mark.parametrize("monoid", MONOIDS)


def sums(semiring: str, monoid: str) -> st.SearchStrategy[FormalSum]:
    (ring, numbers), (group, elements) = SEMIRINGS[semiring], MONOIDS[monoid]
    entries = st.lists(st.tuples(elements, numbers), max_size=3)
    return entries.map(lambda listed: FormalSum(ring, group, listed))


def avalanches(semiring: str, monoid: str) -> st.SearchStrategy[Avalanche]:
    """Functions that look at their binding: one sum for even bindings, one for odd ones."""

    def chosen(pair: tuple[FormalSum, FormalSum]) -> Avalanche:
        constant = [Avalanche.constant(each) for each in pair]
        return Avalanche(pair[0].like(()), lambda b: constant[_odd(b)](b))

    return st.tuples(sums(semiring, monoid), sums(semiring, monoid)).map(chosen)


def _odd(binding: object) -> int:
    if isinstance(binding, int):
        return binding % 2
    if isinstance(binding, str):
        return binding.count("a") % 2
    return sum(value for _, value in binding) % 2


def same(f: Avalanche, g: Avalanche, bindings: list) -> bool:
    return all(f(b) == g(b) for b in bindings)


@each_semiring
@given(data=st.data())
def test_a_semiring_satisfies_its_laws(semiring, data):
    """Def. 2.1, Ex. 2.2."""
    ring, numbers = SEMIRINGS[semiring]
    a, b, c = (data.draw(numbers) for _ in range(3))
    add, multiply = ring.add, ring.multiply
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, ring.zero) == a
    assert multiply(multiply(a, b), c) == multiply(a, multiply(b, c))
    assert multiply(a, ring.one) == a == multiply(ring.one, a)
    assert multiply(a, ring.zero) == ring.zero == multiply(ring.zero, a)
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))
    assert multiply(add(a, b), c) == add(multiply(a, c), multiply(b, c))


def test_only_products_of_rings_are_rings():
    assert isinstance(product(INTEGERS, RATIONALS), Ring)
    assert not isinstance(product(INTEGERS, NATURALS), Ring)
    assert not isinstance(BOOLEANS, Ring)


@each_monoid
@each_semiring
@given(data=st.data())
def test_formal_sums_are_a_semiring(semiring, monoid, data):
    """Prop. 2.4 (1), and Lemma 2.9 for the monoids from which elements were taken out."""
    a, b, c = (data.draw(sums(semiring, monoid)) for _ in range(3))
    zero, one = a.like(()), a.like([(a.monoid.one, a.ring.one)])
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + zero == a
    assert (a * b) * c == a * (b * c)
    assert a * one == a == one * a
    assert a * zero == zero == zero * a
    assert a * (b + c) == a * b + a * c
    assert (a + b) * c == a * c + b * c


@each_monoid
@given(data=st.data())
def test_formal_sums_over_a_ring_are_a_ring(monoid, data):
    """Prop. 2.4 (2) and (3)."""
    a, b = (data.draw(sums("integers", monoid)) for _ in range(2))
    assert a - a == a.like(())
    assert -(a * b) == (-a) * b == a * -b
    if monoid in COMMUTATIVE:
        assert a * b == b * a


def test_formal_sums_over_words_do_not_commute():
    a, b = (FormalSum(INTEGERS, WORDS, [(letter, 1)]) for letter in "ab")
    assert a * b != b * a


def test_a_semiring_has_no_opposites():
    with pytest.raises(UserError, match="A002"):
        -FormalSum(NATURALS, WORDS, [("a", 1)])


def test_cutting_a_monoid_down_is_a_homomorphism():
    """Lemma 2.9: restriction to the short words commutes with ∗."""
    a = [("a", 1), ("ab", 2)]
    b = [("", 3), ("b", 5)]
    whole = FormalSum(INTEGERS, WORDS, a) * FormalSum(INTEGERS, WORDS, b)
    cut = FormalSum(INTEGERS, SHORT_WORDS, a) * FormalSum(INTEGERS, SHORT_WORDS, b)
    assert cut == FormalSum(INTEGERS, SHORT_WORDS, [e for e in whole if len(e[0]) < 3])
    assert dict(whole) == {"a": 3, "ab": 11, "abb": 10}


@each_monoid
@given(data=st.data(), p=integers, q=integers)
def test_formal_sums_are_a_free_module_and_their_product_is_bilinear(monoid, data, p, q):
    """Def. 2.13, Prop. 2.14 and 2.15."""
    x, y, z = (data.draw(sums("integers", monoid)) for _ in range(3))
    assert x.scale(p + q) == x.scale(p) + x.scale(q)
    assert x.scale(p * q) == x.scale(q).scale(p)
    assert (x + y).scale(p) == x.scale(p) + y.scale(p)
    assert x.scale(1) == x
    parts = [x.like([(g, 1)]).scale(value) for g, value in x]
    assert sum(parts, x.like(())) == x
    assert (x.scale(p) + y.scale(q)) * z == (x * z).scale(p) + (y * z).scale(q)
    assert z * (x.scale(p) + y.scale(q)) == (z * x).scale(p) + (z * y).scale(q)


@each_monoid
@given(data=st.data())
def test_the_product_is_determined_by_the_monoid(monoid, data):
    """Prop. 2.16: the sum over pairs of basis elements is the only distributive product."""
    a, b = (data.draw(sums("integers", monoid)) for _ in range(2))
    total = a.like(())
    for g, v in a:
        for h, w in b:
            total = total + (a.like([(g, 1)]) * a.like([(h, 1)])).scale(v * w)
    assert a * b == total


@each_monoid
@pytest.mark.parametrize("semiring", ["naturals", "integers"])
@given(data=st.data())
def test_avalanches_are_a_semiring(semiring, monoid, data):
    """Thm 2.6; over records, without inconsistent bindings, Prop. 3.4."""
    f, g, h = (data.draw(avalanches(semiring, monoid)) for _ in range(3))
    bindings = data.draw(st.lists(MONOIDS[monoid][1], min_size=1, max_size=3))
    zero, one = Avalanche.constant(f.zero), Avalanche.one(f.zero)
    assert same(f + g, g + f, bindings)
    assert same((f + g) + h, f + (g + h), bindings)
    assert same(f + zero, f, bindings)
    assert same((f * g) * h, f * (g * h), bindings)
    assert same(f * one, f, bindings)
    assert same(one * f, f, bindings)
    assert same(f * (g + h), f * g + f * h, bindings)
    assert same((f + g) * h, f * h + g * h, bindings)
    if semiring == "integers":
        assert same(f - f, zero, bindings)


@each_monoid
@given(data=st.data())
def test_constant_avalanches_are_the_monoid_ring(monoid, data):
    """Prop. 2.8."""
    a, b = (data.draw(sums("integers", monoid)) for _ in range(2))
    bindings = data.draw(st.lists(MONOIDS[monoid][1], max_size=3))
    f, g = Avalanche.constant(a), Avalanche.constant(b)
    assert same(f + g, Avalanche.constant(a + b), bindings)
    assert same(f * g, Avalanche.constant(a * b), bindings)
    assert same(-f, Avalanche.constant(-a), bindings)
    assert f(a.monoid.one) == a


def less(b: frozenset) -> Relation:
    """A < B of Example 3.5: 1 at ⟨⟩ where both are bound and it holds."""
    bound = dict(b)
    holds = "A" in bound and "B" in bound and bound["A"] < bound["B"]
    return Relation.scalar(INTEGERS, int(holds))


def test_a_condition_after_a_relation_selects_and_before_it_does_not():
    """Example 3.5, with the other order to show that ∗ does not commute."""
    r = Relation(INTEGERS, [(record(A=1, B=2), 4), (record(A=2, B=1), 5), (record(A=1), 6)])
    f, g = Avalanche.constant(r), Avalanche(Relation(INTEGERS), less)
    assert (f * g)(record()) == Relation(INTEGERS, [(record(A=1, B=2), 4)])
    assert (g * f)(record()) == Relation(INTEGERS)


def test_a_parametrized_relation_is_zero_where_it_contradicts_its_binding():
    """§3.2."""
    r = Relation(INTEGERS, [(record(A=1, B=2), 4), (record(A=2, B=1), 5), (record(C=1), 6)])
    assert Avalanche.constant(r)(record(A=1)) == Relation(
        INTEGERS, [(record(A=1, B=2), 4), (record(C=1), 6)]
    )


def test_natural_and_boolean_weights_are_bags_and_sets():
    """The join of bags multiplies multiplicities, the one of sets knows only true."""
    bag = Relation(NATURALS, [(record(a=1), 2), (record(a=2), 1)])
    both = Relation(BOOLEANS, [(record(a=1), True), (record(a=1), True)])
    assert bag * bag == Relation(NATURALS, [(record(a=1), 4), (record(a=2), 1)])
    assert both * both == both == Relation(BOOLEANS, [(record(a=1), True)])


FIGURE_1 = {
    -2: (2, 5, -2, 4, -2, -3, 2),
    -1: (2, 3, -2, 1, -2, -1, 2),
    0: (2, 1, -2, 0, -2, 1, 2),
    1: (2, -1, -2, 1, -2, 3, 2),
    2: (2, -3, -2, 4, -2, 5, 2),
    3: (2, -5, -2, 9, -2, 7, 2),
    4: (2, -7, -2, 16, -2, 9, 2),
}
COLUMNS = ((-1, -1), (-1,), (-1, 1), (), (1, -1), (1,), (1, 1))


def test_figure_1_is_reached_by_additions_from_any_of_its_rows():
    """Fig. 1 and Ex. 1.1: f(x) = x², U = {+1, −1}, up and down again."""
    calls = []

    def square(x: int) -> int:
        calls.append(x)
        return x * x

    memo = MemoizedDeltas(square, -2, (1, -1), order=2)
    calls.clear()
    steps = [*range(-2, 5), *range(3, -3, -1)]
    for x, following in zip(steps, [*steps[1:], None], strict=True):
        assert tuple(memo[taken] for taken in COLUMNS) == FIGURE_1[x]
        if following is not None:
            memo.update(following - x)
    assert calls == []


@given(x=rationals, updates=st.lists(rationals, min_size=4, max_size=4))
def test_the_fourth_delta_of_a_cubic_polynomial_is_zero(x, updates):
    """Eq. (1): the deltas of a polynomial end at its degree plus one."""

    def cubic(value: Fraction) -> Fraction:
        return value**3 - 2 * value

    assert delta(cubic, tuple(updates))(x) == 0
    third = delta(cubic, tuple(updates[:3]))
    assert third(x) == third(x + 1)
