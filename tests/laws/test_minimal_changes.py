"""∇ and Δ on sets: the theorem, the propositions and the equations of minimal-changes.

T. Griffin, L. Libkin and H. Trickey: An improved algorithm for the incremental recomputation of
active relational expressions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from evaluation import evaluate as evaluate_plan
from everview.differentiate.derive import derive
from everview.differentiate.sets import nabla as nabla_module
from everview.differentiate.sets.nabla import changes_of, delta, nabla
from everview.differentiate.sets.propagate import carry_delete, carry_insert, propagated
from everview.differentiate.sets.slices import Slices
from everview.differentiate.sets.tables import LEFT_SIDES, definitions, equations, rules
from everview.differentiate.sets.transaction import (
    Changes,
    minimal,
    minimized,
    pre,
    transaction,
)
from everview.expr.types import Column
from everview.lang.relalg.build import NOTHING
from everview.lang.relalg.lower import Leaf, lower_expression
from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    NaturalJoin,
    Product,
    Relation,
    Select,
    Sub,
    Union,
    children,
    with_children,
)
from everview.lang.relalg.parse import parse_query
from everview.lang.relalg.printer import print_expression
from everview.plan.build import distinct, negate, positive
from everview.plan.nodes import Plan, Source
from set_evaluation import Rows, State, evaluate, holds
from set_worlds import COLUMNS, EVERY_ROW, cases, some
from strategies import Bag, total

EVERYTHING = transaction(COLUMNS)
R, S = Relation("r"), Relation("s")


def solved(changes: Changes, state: State) -> Rows:
    """(Q − ∇Q) ∪ ΔQ, in the state before."""
    before, gone, come = (
        evaluate(each, state) for each in (changes.before, changes.deleted, changes.inserted)
    )
    return (before - gone) | come


def is_minimal(changes: Changes, state: State) -> bool:
    """∇Q ⊆ Q, and ΔQ ∩ Q = ∅."""
    before = evaluate(changes.before, state)
    gone, come = evaluate(changes.deleted, state), evaluate(changes.inserted, state)
    return gone <= before and not come & before


def test_of_minimal_transactions_fig_2_is_a_minimal_solution():
    moved = 0
    for query, state in cases(minimal=True):
        changes = changes_of(EVERYTHING, query)
        before, gone, come = (
            evaluate(each, state) for each in (query, changes.deleted, changes.inserted)
        )
        assert (before - gone) | come == evaluate(query, state.after()), query  # Theorem 1 (a)
        assert gone <= before, query  # (b)
        assert not come & before, query  # (c)
        assert nabla(EVERYTHING, query) == changes.deleted
        assert delta(EVERYTHING, query) == changes.inserted
        moved += bool(gone) + bool(come)
    assert moved > 500, "changes are drawn that move nothing"


def test_a_pre_expression_is_what_the_query_will_be():
    for query, state in cases(minimal=False):
        wanted = evaluate(query, state.after())
        assert evaluate(pre(EVERYTHING, query), state) == wanted, query


def test_fig_2_is_right_for_any_transaction_that_is_minimized_first():
    wrong = 0
    for query, state in cases(minimal=False):
        wanted = evaluate(query, state.after())
        changes = changes_of(minimal(EVERYTHING), query)
        assert solved(changes, state) == wanted, query
        assert is_minimal(changes, state), query
        wrong += solved(changes_of(EVERYTHING, query), state) != wanted
    assert wrong, "without that it is wrong of some"


ZERO: Rows = frozenset({(0,)})
NOT_MINIMAL = {
    "union": (Union(R, S), {"r": frozenset(), "s": ZERO}, {"r": ZERO, "s": ZERO}, {"r": ZERO}),
    "difference": (Difference(R, S), {"r": ZERO, "s": frozenset()}, {"s": ZERO}, {"s": ZERO}),
}


@pytest.mark.parametrize("name", NOT_MINIMAL)
def test_of_a_transaction_that_is_not_minimal_fig_2_is_wrong(name):
    """Not only larger than it need be: a row is lost, or is there that should not be."""
    query, rows, gone, come = NOT_MINIMAL[name]
    state = State({"r": ("a",), "s": ("a",)}, rows, gone, come)
    wanted = evaluate(query, state.after())
    changed = transaction("rs")
    assert solved(changes_of(changed, query), state) != wanted
    assert solved(changes_of(minimal(changed), query), state) == wanted
    assert evaluate(pre(changed, query), state) == wanted


def test_the_equations_lead_to_a_solution_that_need_not_be_minimal():
    larger = 0
    for query, state in cases(minimal=True):
        changes = propagated(EVERYTHING, query).changes
        assert solved(changes, state) == evaluate(query, state.after()), query
        larger += not is_minimal(changes, state)
    assert larger > 10


def test_prop_2_makes_any_solution_minimal():
    """∇₁ and Δ₁ are any sets, of the columns of the query."""
    for at, (query, state) in enumerate(cases(minimal=True)):
        rng, before = Random(at), evaluate(query, state)
        width = len(next(iter(before), (0,)))
        rows = sorted({*before, *(tuple(row)[:width] for row in EVERY_ROW)}, key=repr)
        drawn = State(
            {**state.names, "q": ("a", "b", "c")[:width]},
            state.rows,
            {"q": some(rng, rows)},
            {"q": some(rng, rows)},
        )
        any_solution = Changes(query, Deleted("q"), Inserted("q"))
        made = minimized(any_solution)
        assert solved(made, drawn) == solved(any_solution, drawn), query
        assert is_minimal(made, drawn), query


def subsets(*rows: tuple[int | None, ...]) -> tuple[frozenset[tuple[int | None, ...]], ...]:
    sizes = range(len(rows) + 1)
    return tuple(map(frozenset, chain.from_iterable(combinations(rows, size) for size in sizes)))


UNIVERSE = tuple(product((None, 0), repeat=2))
SUBSETS, MORE_SUBSETS = subsets(*UNIVERSE), subsets(*UNIVERSE, (1, 0))
OTHER_COLUMNS = {Product: ("x", "y"), NaturalJoin: ("B", "C")}


def mirrored() -> Iterator[Expression]:
    """The equations with the change on the other side, where the operator has two like sides."""
    for left in LEFT_SIDES:
        if isinstance(left, Product | Union | Intersection | NaturalJoin):
            first, second = children(left)
            yield type(left)(second, first)


def over_columns(expression: Expression) -> Expression:
    """The expression with a condition that a row can satisfy."""
    below = with_children(expression, map(over_columns, children(expression)))
    return replace(below, condition="`A` = 0") if isinstance(below, Select) else below


@pytest.mark.parametrize("left", [*LEFT_SIDES, *mirrored()], ids=print_expression)
def test_each_equation_of_fig_1_holds_for_all_sets(left):
    """Of all sets of four rows, NULL among their values, or of five without a T: 1,024 cases up."""
    left = over_columns(left)
    _, right = carry_insert(left) or carry_delete(left)
    names = {"S": ("A", "B"), "T": OTHER_COLUMNS.get(type(left), ("A", "B"))}
    [changed] = [each.child.name for each in children(left) if isinstance(each, Add | Sub)]
    is_binary = len(children(left)) == 2
    own, others = (SUBSETS, SUBSETS) if is_binary else (MORE_SUBSETS, SUBSETS[:1])
    values = set()
    for s, t, change in product(own, others, own):
        state = State(names, {"S": s, "T": t}, {changed: change}, {changed: change})
        value = evaluate(left, state)
        assert value == evaluate(right, state)
        values.add(value)
    assert len(values) > 3


def test_prop_1_the_equations_violate_minimality():
    """The example of the paper, with its values."""
    a, b, c = (("a",), ("b",), ("c",))
    query = Union(Relation("R1"), Relation("R2"))
    changed = {
        "R1": Changes(Relation("R1"), Deleted("R1"), NOTHING),
        "R2": Changes(Relation("R2"), NOTHING, Inserted("R2")),
    }
    names = {"R1": ("x",), "R2": ("x",)}
    rows = {"R1": frozenset({a, b}), "R2": frozenset({a})}
    state = State(names, rows, {"R1": frozenset({b})}, {"R2": frozenset({b, c})})

    by_equations = propagated(changed, query)
    assert by_equations.equations == (8, 7)
    assert print_expression(by_equations.changes.deleted) == "∇R1 − R2"
    assert by_equations.changes.inserted == Difference(
        Inserted("R2"), Sub(Relation("R1"), Deleted("R1"))
    )
    assert evaluate(query, state) == {a, b}
    assert evaluate(by_equations.changes.deleted, state) == {b}
    assert evaluate(by_equations.changes.inserted, state) == {b, c}
    assert not is_minimal(by_equations.changes, state)

    by_fig_2 = changes_of(changed, query)
    assert print_expression(by_fig_2.deleted) == "∇R1 − add(R2)"
    assert print_expression(by_fig_2.inserted) == "ΔR2 − R1"
    for changes in (minimized(by_equations.changes), by_fig_2):
        assert evaluate(changes.deleted, state) == frozenset()
        assert evaluate(changes.inserted, state) == {c}
    # Without "− Δ₁", Prop. 2 would lose b, which goes and comes.
    assert evaluate(Intersection(query, by_equations.changes.deleted), state) == {b}


def test_the_tables_are_those_of_the_paper():
    assert [f"{number} {left} = {right}" for number, left, right in equations()] == [
        "1 σ[p](S − ∇S) = σ[p](S) − σ[p](∇S)",
        "2 σ[p](S ∪ ΔS) = σ[p](S) ∪ σ[p](ΔS)",
        "3 Π[A](S − ∇S) = Π[A](S) − (Π[A](S) − Π[A](S − ∇S))",
        "4 Π[A](S ∪ ΔS) = Π[A](S) ∪ (Π[A](ΔS) − Π[A](S))",
        "5 (S − ∇S) × T = (S × T) − (∇S × T)",
        "6 (S ∪ ΔS) × T = (S × T) ∪ (ΔS × T)",
        "7 (S − ∇S) ∪ T = (S ∪ T) − (∇S − T)",
        "8 (S ∪ ΔS) ∪ T = (S ∪ T) ∪ (ΔS − T)",
        "9 (S − ∇S) − T = (S − T) − (∇S − T)",
        "10 S − (T − ∇T) = (S − T) ∪ (S ∩ ∇T)",
        "11 (S ∪ ΔS) − T = (S − T) ∪ (ΔS − T)",
        "12 S − (T ∪ ΔT) = (S − T) − (S ∩ ΔT)",
        "13 (S − ∇S) ∩ T = (S ∩ T) − (∇S ∩ T)",
        "14 (S ∪ ΔS) ∩ T = (S ∩ T) ∪ (ΔS ∩ T)",
        "15 (S − ∇S) ⋈ T = (S ⋈ T) − (∇S ⋈ T)",
        "16 (S ∪ ΔS) ⋈ T = (S ⋈ T) ∪ (ΔS ⋈ T)",
    ]
    assert list(rules()) == [
        ("R", "∇R", "ΔR"),
        ("σ[p](S)", "σ[p](∇S)", "σ[p](ΔS)"),
        ("Π[A](S)", "Π[A](∇S) − Π[A](mod(S))", "Π[A](ΔS) − Π[A](S)"),
        ("S × T", "(∇S × T) ∪ (S × ∇T)", "(mod(S) × ΔT) ∪ (ΔS × mod(T))"),
        ("S ∪ T", "(∇S − mod(T)) ∪ (∇T − mod(S))", "(ΔS − T) ∪ (ΔT − S)"),
        ("S ∩ T", "(∇S ∩ T) ∪ (∇T ∩ S)", "(ΔS ∩ mod(T)) ∪ (ΔT ∩ mod(S))"),
        ("S − T", "(∇S − T) ∪ (ΔT ∩ S)", "(ΔS − mod(T)) ∪ (∇T ∩ sub(S))"),
        ("S ⋈ T", "(∇S ⋈ T) ∪ (S ⋈ ∇T)", "(mod(S) ⋈ ΔT) ∪ (ΔS ⋈ mod(T))"),
    ]


def test_changes_are_evaluated_from_changes_and_slices():
    for query, state in cases(minimal=True):
        changes = changes_of(EVERYTHING, query)
        for each in (changes.deleted, changes.inserted):
            assert Slices(state, holds).rows(each) == evaluate(each, state), query


LARGE = State(
    COLUMNS,
    {name: frozenset((number, number) for number in range(200)) for name in COLUMNS},
    {"r": frozenset({(7, 7)}), "s": frozenset({(7, 7), (8, 8)})},
    {"u": frozenset({(9000, 1)}), "r": frozenset({(9000, 9000)})},
)


@pytest.mark.parametrize(
    "text",
    [
        "Π[a](r)",
        "r ∪ s",
        "r ∩ s",
        "r − s",
        "r ⋈ u",
        "σ[a > 1]((r ∪ s) − (r ∩ s))",
        "Π[c]((Π[a, b](r ⋈ u) ∪ s) ⋈ u) − Π[a AS c](s − r)",
    ],
)
def test_no_set_is_read_whole_for_a_small_change(text):
    query = parse_query(text)
    LARGE.read.clear()
    changes = changes_of(EVERYTHING, query)
    rows = [Slices(LARGE, holds).rows(each) for each in (changes.deleted, changes.inserted)]
    assert rows == [evaluate(each, LARGE) for each in (changes.deleted, changes.inserted)]
    assert any(rows)
    assert LARGE.read
    assert max(map(len, LARGE.read)) < 10


def test_each_part_of_a_query_is_visited_once():
    """Twice at each of a hundred unions would take for ever."""
    query: Expression = Relation("r")
    for _ in range(100):
        query = Union(query, Relation("s"))
    changes = changes_of(EVERYTHING, query)
    state = State(COLUMNS, {"r": frozenset(), "s": frozenset()}, {}, {"s": frozenset({(0, 0)})})
    assert evaluate(changes.inserted, state) == {(0, 0)}
    assert Slices(state, holds).rows(changes.inserted) == {(0, 0)}
    assert len(definitions("v", query)) == 300


def test_a_query_is_what_its_text_says():
    for query, _ in cases(minimal=True):
        bound = parse_query(print_expression(query))
        assert bound == query
        assert parse_query(print_expression(bound)) == bound


def int_source(name: str) -> Source:
    """A relation of whole numbers, which may be a bag."""
    return Source(name, tuple(Column(each, "int") for each in COLUMNS[name]))


def bags(state: State, rng: Random) -> tuple[dict[str, Bag], dict[str, Bag]]:
    """Tables with some rows twice, of which one copy may go; changes that take and add copies."""
    tables, changes = {}, {}
    for name, rows in state.rows.items():
        bag = Counter({row: rng.choice([1, 1, 2]) for row in rows})
        change = Counter(dict.fromkeys(state.inserted(name), 1))
        change.update({row: -rng.randint(1, bag[row]) for row in state.deleted(name)})
        if rows:
            change[rng.choice(sorted(rows, key=repr))] += 1
        tables[name] = bag
        changes[name] = Counter({row: weight for row, weight in change.items() if weight})
    return tables, changes


def test_the_plan_of_a_query_is_the_query_and_its_derivative_is_the_pair():
    """ΔQ − ∇Q over the changes of sets, which δ makes minimal, is what programs compute."""
    sources = {name: int_source(name) for name in COLUMNS}
    leaves: dict[Leaf, Plan] = {}
    for name, source in sources.items():
        moved = derive(distinct(source))
        leaves[Relation(name)] = distinct(source)
        leaves[Deleted(name)] = positive(negate(moved))
        leaves[Inserted(name)] = positive(moved)
    for at, (query, state) in enumerate(cases(minimal=True, number=60)):
        tables, change = bags(state, Random(at))
        plan = lower_expression(query, leaves)
        assert evaluate_plan(plan, tables, change) == Counter(evaluate(query, state)), query
        pair = changes_of(EVERYTHING, query)
        gone, come = (
            evaluate_plan(lower_expression(each, leaves), tables, change)
            for each in (pair.deleted, pair.inserted)
        )
        moved = evaluate_plan(derive(plan), tables, change)
        assert total(come, Counter(dict.fromkeys(gone, -1))) == moved, query
        assert set(gone.values()) | set(come.values()) <= {1}


OLD_FOR_NEW = {"before": "mod", "mod": "before"}


def test_to_read_the_old_side_for_the_new_one_is_found_out():
    """The usual mistake in Fig. 2, planted at each place where it can be made."""
    text = Path(nabla_module.__file__).read_text(encoding="utf-8")
    places = list(re.finditer(r"\b[st]\.(before|mod)\b", text))
    assert len(places) == 21
    for place in places:
        faulty = ModuleType("faulty")
        wrong = text[: place.start(1)] + OLD_FOR_NEW[place[1]] + text[place.end(1) :]
        exec(compile(wrong, "faulty", "exec"), vars(faulty))
        assert any(
            solved(changes, state) != evaluate(query, state.after())
            or not is_minimal(changes, state)
            for query, state in cases(minimal=True)
            for changes in [faulty.changes_of(EVERYTHING, query)]
        ), place
