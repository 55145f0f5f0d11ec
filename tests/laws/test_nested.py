"""The theorems of nested-collections, over random types, values, queries and updates."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from math import inf
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from everview.algebra.zset import ZSet
from everview.errors import UserError
from everview.expr.types import Column
from everview.lang.nested.check import Checker, row_type
from everview.lang.nested.comprehension import compile_function
from everview.lang.nested.cost import (
    Many,
    One,
    Parts,
    at_most,
    cost,
    is_incremental,
    less,
    size,
    supremum,
    time_cost,
)
from everview.lang.nested.delta import DELTA, degree, delta
from everview.lang.nested.evaluate import evaluate
from everview.lang.nested.flat_queries import INDEX, flat_query, label_name
from everview.lang.nested.labels import (
    Label,
    add_dictionaries,
    evaluate_shredded,
    label_union,
    must_be_consistent,
    must_keep_consistency,
    nest,
    shred_value,
    undefined_labels,
)
from everview.lang.nested.normal_form import normal_form
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.shred import Leaf, shred
from everview.lang.nested.syntax import Empty, Expr, Rel, relations
from everview.lang.nested.text import print_expr
from everview.lang.nested.types import ELEMENT, Bag, Base, Product, Type, common
from everview_fuzz.nested.comprehensions import Generator as Comprehensions
from everview_fuzz.nested.comprehensions import defined, random_row
from laws.random_nrc import ROWS, Generator

SEEDS = st.integers(min_value=0, max_value=2**32)
CHANGING = frozenset({"R"})

RELATED = (
    "for m in M union sng(⟨m.name, for m2 in M "
    "where m2.name != m.name and (m2.gen == m.gen or m2.dir == m.dir) union sng(m2.name)⟩)"
)


Shredded = dict[str, tuple[ZSet[Any], dict[Label, Any]]]
"""Shredded relations by name."""


def query(seed: int, *, nests: bool) -> tuple[Generator, Expr, Type]:
    generator = Generator(random.Random(seed), nests=nests)
    element = generator.type()
    return generator, generator.bag(element, {}, 4), element


@given(SEEDS)
def test_a_query_has_the_type_it_was_written_for_and_reads_back(seed: int) -> None:
    _, expr, element = query(seed, nests=True)
    assert common(Checker(ROWS).type(expr), Bag(element)) == Bag(element)
    assert parse_expr(print_expr(expr)) == expr


@given(SEEDS)
def test_the_delta_is_what_an_update_adds(seed: int) -> None:
    """Prop. 4.1, and Lemma 1: without the relation the delta is empty."""
    generator, expr, _ = query(seed, nests=False)
    old, update = generator.relations(), ZSet(generator.relations(change=True)["R"])
    new = {**old, "R": old["R"] + update}
    change = delta(expr, "R")
    if degree(expr, CHANGING) == 0:
        assert change == Empty() or not evaluate(change, {**old, DELTA + "R": update})
    with_change = {**old, DELTA + "R": update}
    assert evaluate(expr, new) == evaluate(expr, old) + evaluate(change, with_change)


@given(SEEDS)
def test_differentiation_lowers_the_degree_by_one(seed: int) -> None:
    """Thm 2: after as many deltas as the degree says, nothing depends on the input.

    Where a factor is written as ∅, its delta drops the whole product, and with it more degrees.
    """
    _, expr, _ = query(seed, nests=False)
    found = degree(expr, CHANGING)
    assert found < inf
    exact = "∅" not in print_expr(expr)
    while found > 0:
        expr = delta(expr, "R")
        lower = degree(expr, CHANGING)
        assert lower == found - 1 if exact else lower < found
        found = lower


@given(SEEDS)
def test_the_delta_of_an_incremental_update_costs_less(seed: int) -> None:
    """Thm 4, and Lemma 10 on the way: costs grow with sizes."""
    generator, expr, _ = query(seed, nests=False)
    assume(degree(expr, CHANGING) > 0)
    old = generator.relations()
    old["R"] = old["R"] + ZSet([(generator.value(ROWS["R"]), 2)])
    update = ZSet([(next(iter(old["R"]))[0], generator.rng.choice((1, -1)))])
    assert is_incremental(update, old["R"], ROWS["R"])
    sizes = {name: size(frozenset(bag), Bag(ROWS[name])) for name, bag in old.items()}
    sizes[DELTA + "R"] = size(frozenset(update), Bag(ROWS["R"]))
    assert less(sizes[DELTA + "R"], sizes["R"])
    assert time_cost(cost(delta(expr, "R"), sizes)) < time_cost(cost(expr, sizes))
    assert at_most(cost(expr, sizes), cost(expr, {**sizes, "R": supremum(*_twice(sizes["R"]))}))


def _twice(value: Any) -> tuple[Any, Any]:
    return value, Many(value.count * 2, value.element)


@given(SEEDS)
def test_the_cost_bounds_the_size_of_the_value(seed: int) -> None:
    generator, expr, element = query(seed, nests=True)
    assume(not _has_sums(expr))
    old = generator.relations()
    sizes = {name: size(frozenset(bag), Bag(ROWS[name])) for name, bag in old.items()}
    found = size(frozenset(evaluate(expr, old)), Bag(element))
    assert isinstance(found, Many)
    bound = cost(expr, sizes)
    assert isinstance(bound, Many)
    assert found.count <= bound.count


def _has_sums(expr: Expr) -> bool:
    """Whether it adds bags, where the cost is that of the larger one."""
    return "⊎" in print_expr(expr)


@given(SEEDS)
def test_nesting_after_shredding_is_the_identity(seed: int) -> None:
    """Lemma 6; and shredded values are consistent (Lemma 11)."""
    generator = Generator(random.Random(seed), nests=True)
    element = generator.type(3)
    value = ZSet(generator.value(Bag(element), change=True))
    flat, dictionary = shred_value(value, element, "v")
    assert nest(flat, element, dictionary) == value
    assert not undefined_labels(flat, dictionary)


@given(SEEDS)
def test_a_shredded_query_means_the_query(seed: int) -> None:
    """Thm 8, for inputs with bags of negative multiplicity too; results are consistent."""
    generator, expr, element = query(seed, nests=True)
    relations = generator.relations(change=seed % 2 == 0)
    shredded = {n: shred_value(bag, ROWS[n], n) for n, bag in relations.items()}
    must_be_consistent([*shredded.values()])
    flat, found = answer(expr, shredded)
    must_be_consistent([(flat, found)])
    assert nest(flat, element, found) == evaluate(expr, relations)


def answer(expr: Expr, shredded: Shredded) -> tuple[ZSet[Any], dict[Label, Any]]:
    """A query over shredded relations."""
    dictionary: dict[Label, Any] = {}
    for _, each in shredded.values():
        dictionary = label_union(dictionary, each)
    return evaluate_shredded(expr, {n: f for n, (f, _) in shredded.items()}, dictionary)


@given(SEEDS)
def test_a_shredded_query_follows_deep_updates(seed: int) -> None:
    """Lemmas 12 and 13, and Thm 8 after an update of inner bags, which copies none of them."""
    generator, expr, element = query(seed, nests=True)
    rng = generator.rng
    old = {n: shred_value(bag, ROWS[n], n) for n, bag in generator.relations().items()}
    updates: Shredded = {}
    for name, (flat, dictionary) in old.items():
        came, fresh = shred_value(generator.value(Bag(ROWS[name])), ROWS[name], f"new {name}")
        goes = [(row, -1) for row, _ in flat if rng.random() < 0.3]
        deep = {
            label: frozenset(ZSet([*((v, -w) for v, w in bag if rng.random() < 0.5)]))
            for label, bag in dictionary.items()
        }
        deep |= {label: _more(rng, bag) for label, bag in deep.items() if not _has_labels(label)}
        updates[name] = came + ZSet(goes), {**deep, **fresh}
    must_keep_consistency([*updates.values()], [*old.values()])
    new = {
        n: (flat + updates[n][0], add_dictionaries(dictionary, updates[n][1]))
        for n, (flat, dictionary) in old.items()
    }
    must_be_consistent([*new.values()])
    nested = {n: nest(flat, ROWS[n], dictionary) for n, (flat, dictionary) in new.items()}
    flat, found = answer(expr, new)
    assert nest(flat, element, found) == evaluate(expr, nested)
    before, known = answer(expr, old)
    change = {
        each: add_dictionaries({each: found.get(each, NO_ROWS)}, {each: _minus(known, each)})[each]
        for each in {*found, *known}
    }
    must_keep_consistency([(flat - before, change)], [(before, known)])


NO_ROWS: frozenset[Any] = frozenset()


def _minus(dictionary: dict[Label, Any], label: Label) -> frozenset[Any]:
    return frozenset((v, -w) for v, w in dictionary.get(label, NO_ROWS))


def _has_labels(label: Label) -> bool:
    """Whether the elements of a stored bag have bags inside them."""
    return label.index == "R.e"


def _more(rng: random.Random, bag: frozenset[Any]) -> frozenset[Any]:
    """A change with a number or two more."""
    return frozenset(ZSet([*bag, *((rng.randint(0, 2), 1) for _ in range(rng.randint(0, 2)))]))


SUPPORTS = [*product((False, True), repeat=4)]


def is_consistent(old: bool, change: bool, other: bool, other_change: bool) -> bool:
    """What C.4 says of a label: in which dictionaries of two bags and their updates it may be."""
    if old and other:
        return change == other_change
    return not (change and other and not old) and not (other_change and old and not other)


@pytest.mark.parametrize("support", SUPPORTS)
def test_label_union_adds_up_in_each_case_of_support_that_is_consistent(
    support: tuple[bool, bool, bool, bool],
) -> None:
    """The 16 cases of C.4: δ(e ∪ e') = δ(e) ∪ δ(e'), or the update is refused."""
    label = Label("l", (1,))
    bags = (frozenset([("b", 1)]), frozenset([("b", -1), ("c", 2)])) * 2
    old, change, other, other_change = (
        {label: bag} if there else {} for bag, there in zip(bags, support, strict=True)
    )
    flat: ZSet[Any] = ZSet()
    updates, stored = [(flat, change), (flat, other_change)], [(flat, old), (flat, other)]
    assert sum(not is_consistent(*each) for each in SUPPORTS) == 6
    if not is_consistent(*support):
        with pytest.raises(UserError, match="N009"):
            must_keep_consistency(updates, stored)
        return
    must_keep_consistency(updates, stored)
    new = label_union(add_dictionaries(old, change), add_dictionaries(other, other_change))
    assert new == add_dictionaries(label_union(old, other), label_union(change, other_change))


def test_a_bag_whose_label_is_not_defined_or_defined_twice_is_inconsistent() -> None:
    one, bag = Label("l", (1,)), frozenset([("b", 1)])
    for bags in ([(ZSet.bag([one]), {})], [(ZSet(), {one: bag}), (ZSet(), {one: NO_ROWS})]):
        with pytest.raises(UserError, match="N009"):
            must_be_consistent(bags)
    must_be_consistent([(ZSet.bag([one]), {one: NO_ROWS})])


def test_let_has_its_mixed_term() -> None:
    """0-08: without it, an update that meets itself is lost."""
    expr = parse_expr("let X := R in R × X")
    old, update = ZSet.bag([1]), ZSet.bag([2])
    change = evaluate(delta(expr, "R"), {"R": old, "ΔR": update})
    assert evaluate(expr, {"R": old + update}) == evaluate(expr, {"R": old}) + change
    assert len(change) == 3


def test_a_let_that_stays_has_no_terms_of_its_own() -> None:
    assert delta(parse_expr("let X := sng(1) in R × X"), "R") == parse_expr(
        "let X := sng(1) in ΔR × X"
    )
    assert degree(parse_expr("let X := R in sng(⟨⟩)"), CHANGING) == 0


def test_the_second_delta_of_example_4_reads_the_updates_alone() -> None:
    expr = parse_expr("flatten(R) × flatten(R)")
    first = delta(expr, "R")
    assert degree(first, CHANGING) == 1
    assert degree(delta(first, "R"), CHANGING) == 0
    assert relations(delta(first, "R")) == ("ΔR",)


def test_the_hierarchy_of_example_4_is_maintained_by_its_deltas() -> None:
    """H₀ is maintained by H₁ of the update, and H₁ by the second delta, which reads no relation."""
    expr = parse_expr("flatten(R) × flatten(R)")
    first = delta(expr, "R")

    def bag(*names: str) -> ZSet[Any]:
        return ZSet.bag([frozenset((name, 1) for name in names)])

    old, update, other = bag("a", "b"), bag("b", "c"), bag("c")
    total = evaluate(expr, {"R": old})
    by_update = evaluate(first, {"R": old, "ΔR": update})
    by_other = evaluate(first, {"R": old, "ΔR": other})
    total += by_update
    second = delta(first, "R")
    assert relations(second) == ("ΔR",), "it takes both updates by that name"
    crossed = parse_expr("flatten(V) × flatten(U) ⊎ flatten(U) × flatten(V)")
    by_other += evaluate(crossed, {"U": update, "V": other})
    total += by_other
    assert total == evaluate(expr, {"R": old + update + other})
    assert len(evaluate(crossed, {"U": update, "V": other})) == 3
    both = evaluate(delta(expr, "R"), {"R": old + update, "ΔR": other})
    assert by_other == both


@pytest.mark.parametrize(
    "text",
    ["sng(R)", "for x in S union sng(⟨x, R⟩)", "let X := R in sng(X)", "sng(len(R))", RELATED],
)
def test_what_needs_deep_updates_has_no_delta(text: str) -> None:
    """sng of what depends on the input is the one construct outside IncNRC⁺, also through let."""
    expr, relation = parse_expr(text), "M" if "M" in text else "R"
    assert degree(expr, frozenset({relation})) == inf
    with pytest.raises(UserError, match="N009"):
        delta(expr, relation)


def test_the_delta_of_a_filter_is_the_filter_of_the_delta() -> None:
    """Example 3."""
    assert print_expr(delta(parse_expr("for x in R where x.a == 1 union sng(x)"), "R")) == (
        "for x in ΔR where x.a == 1 union sng(x)"
    )


def test_sizes_and_costs_are_those_of_the_paper() -> None:
    """The introduction, Example 5 and Example 6."""
    text = Base("string")
    row = Product((("genre", text), ("movies", Bag(text))))
    comedy = (("genre", "Comedy"), ("movies", frozenset([("Carnage", 1)])))
    names = frozenset((n, 1) for n in ("Up", "Shrek", "Cars"))
    animation = (("genre", "Animation"), ("movies", names))
    assert str(size(frozenset([(comedy, 1), (animation, 1)]), Bag(row))) == "2{⟨1, 3{1}⟩}"
    movies = Many(7, Parts(tuple((name, One()) for name in ("name", "gen", "dir"))))
    found = cost(parse_expr(RELATED), {"M": movies})
    assert str(found) == "7{⟨1, 7{1}⟩}"
    assert time_cost(found) == 7 * (1 + 7)


def test_an_update_with_a_larger_inner_bag_is_not_incremental() -> None:
    element = Bag(Base("bigint"))
    small = ZSet([(frozenset([(1, 1)]), 1), (frozenset(), 1)])
    large = ZSet([(frozenset([(1, 1), (2, 1)]), 1)])
    assert not is_incremental(large, small, element)
    assert is_incremental(ZSet([(frozenset([(1, 1)]), -1)]), small, element)


def test_label_union_and_addition_are_those_of_appendix_c() -> None:
    one, two, three = (Label("l", (n,)) for n in (1, 2, 3))

    def bag(*names: str) -> frozenset[tuple[str, int]]:
        return frozenset((name, 1) for name in names)

    left = {one: bag("b1"), two: bag("b2", "b3")}
    right = {two: bag("b2", "b3"), three: bag("b4")}
    assert label_union(left, right) == {**left, **right}
    assert add_dictionaries(left, right)[two] == frozenset([("b2", 2), ("b3", 2)])
    with pytest.raises(UserError, match="N009"):
        label_union(left, {two: bag("b5")})
    assert add_dictionaries(left, {two: bag("b5")})[two] == bag("b2", "b3", "b5")
    assert label_union({}, {one: bag()}) == {one: bag()}, "an empty bag is not a missing one"
    assert undefined_labels(ZSet.bag([one, two]), {one: bag()}) == {two}


def test_labels_go_by_occurrence_and_not_by_value() -> None:
    same = frozenset([(1, 1)])
    element = Product((("k", Base("bigint")), ("v", Bag(Base("bigint")))))
    value = ZSet.bag([(("k", 1), ("v", same)), (("k", 2), ("v", same))])
    _, dictionary = shred_value(value, element, "v")
    assert len(dictionary) == 2


FLAT = {"A": ("a", "b", "c"), "B": ("a", "d", "e")}
SCHEMAS = {
    name: tuple(Column(c, "string" if c in "bd" else "bigint") for c in columns)
    for name, columns in FLAT.items()
}


def _rows(rng: random.Random, name: str, least: int) -> ZSet[Any]:
    rows = (random_row(rng, name) for _ in range(rng.randint(0, 3)))
    return ZSet(
        (tuple(zip(FLAT[name], r, strict=True)), rng.choice((1, 1, 2, least))) for r in rows
    )


@given(SEEDS)
def test_the_flat_queries_of_a_function_are_maintained_by_their_deltas(seed: int) -> None:
    """Thm 5 and Thm 8, of the relations that a nested view is stored as."""
    rng = random.Random(seed)
    rows = {name: row_type(schema) for name, schema in SCHEMAS.items()}
    function = defined(Comprehensions(rng, "AB").function())
    expr = compile_function(function, {name: Rel(name) for name in FLAT}, rows)
    type_ = Checker(rows).type(expr)
    assert isinstance(type_, Bag)
    parts = {
        each.path: each for each in shred(normal_form(expr, type_.element, SCHEMAS), type_.element)
    }
    old = {name: _rows(rng, name, 1) for name in FLAT}
    update = _rows(rng, "A", -1)
    new = {**old, "A": old["A"] + update, DELTA + "A": update}

    flat = flat_query(parts[""], parts)
    labelled = [(flat, {}), *_under_labels(parts, "", evaluate(flat, old), old)]
    for each, around in labelled:
        if degree(each, frozenset({"A"})) < inf:
            d_each = delta(each, "A")
            assert degree(d_each, frozenset({"A"})) <= max(degree(each, frozenset({"A"})) - 1, 0)
            change = evaluate(d_each, {**old, DELTA + "A": update}, around)
            assert evaluate(each, new, around) == evaluate(each, old, around) + change
    assert _nested(parts, "", evaluate(flat, old), old) == evaluate(expr, old)


def _under_labels(
    parts: Any, path: str, flat: ZSet[Any], db: Any
) -> Iterator[tuple[Expr, dict[str, Any]]]:
    """The query of a dictionary for each label in some rows, with what its variables stand for."""
    for row, _ in flat:
        for leaf in parts[path].leaves:
            if isinstance(leaf.type, Bag):
                below = parts[parts[path].below(leaf)]
                found, around = _under(parts, below, dict(row)[leaf.path])
                yield found, around
                yield from _under_labels(parts, below.path, evaluate(found, db, around), db)


def _under(parts: Any, below: Any, label: Any) -> tuple[Expr, dict[str, Any]]:
    """The query for a label, and what its variables stand for."""
    values = dict(label)
    own = below.occurrences[values[INDEX]]
    around: dict[str, Any] = {}
    for each in own.values:
        known = around.get(each.variable, ())
        around[each.variable] = (*known, (each.name, values[label_name(each)]))
    return flat_query(below, parts, own.number), around


def _nested(parts: Any, path: str, flat: ZSet[Any], db: Any) -> ZSet[Any]:
    """The rows of a relation with bags in the place of labels, each evaluated from its label."""
    relation = parts[path]

    def value(row: Any, type_: Type, at: tuple[str, ...]) -> Any:
        if isinstance(type_, Product):
            return tuple((n, value(row, each, (*at, n))) for n, each in type_.fields)
        found = dict(row)[".".join(at) or ELEMENT]
        if not isinstance(type_, Bag):
            return found
        below = parts[relation.below(Leaf(".".join(at) or ELEMENT, type_))]
        inner, around = _under(parts, below, found)
        return frozenset(_nested(parts, below.path, evaluate(inner, db, around), db))

    return flat.map(lambda row: value(row, relation.element, ()))
