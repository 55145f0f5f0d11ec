"""The first rows of each group follow a change; the others are read where some are missing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.compiler import Table, View, compile_arrangements, compile_program
from everview.differentiate.derive import derive
from everview.differentiate.top_k import top_k
from everview.plan.build import add, filter_, negate, window
from everview.plan.nodes import Map, Order, Over, Source
from everview.plan.traverse import schema_of, walk
from everview.rewrite.passes import rewrite
from memory import Memory
from strategies import SOURCES, Bag, T, after, bags, changes, first_rows, total

ORDER = (Order("a"), Order("b"), Order("x"))
FIRST = window(T, (), (Over("n", "int", "row_number", (), ORDER),))
SECOND = [
    filter_(window(T, (), (Over("n", "int", function, (), order),)), "`n` <= 2")
    for function, order in (("row_number", ORDER), ("rank", ORDER[:1]), ("dense_rank", ORDER[:1]))
]
"""The rows up to the second one, the second rank, the second value."""
LAST = filter_(
    window(T, (), (Over("n", "int", "row_number", (), (Order("a", True, False), *ORDER[1:])),)),
    "`n` <= 2",
)


@st.composite
def larger(draw: st.DrawFn) -> dict[str, Bag]:
    """Groups of more rows than are kept, and some that lose a value to a change of a few rows."""
    size = draw(st.sampled_from([4, 5, 12]))
    return {name: draw(bags(source.schema, size)) for name, source in SOURCES.items()}


@given(data=st.data(), plan=first_rows(T), world=larger())
def test_the_derivative_of_first_rows_is_the_difference_it_stands_for(data, plan, world):
    for _ in range(3):
        change = data.draw(changes(world, most=5))
        new = after(world, change)
        for each in (plan, *SECOND, LAST):
            difference = evaluate(derive(each), world, change)
            assert evaluate(each, new) == total(evaluate(each, world), difference)
        world = new


@given(data=st.data(), plan=first_rows(T), world=larger())
def test_first_rows_and_what_is_kept_of_them_equal_their_queries_after_every_epoch(
    data, plan, world
):
    made = rewrite(plan)
    view = View(Source("v", schema_of(made)), (), made)
    tables = {name: Table(source, (source.schema[0].name,)) for name, source in SOURCES.items()}
    maintenance = compile_arrangements(tables, (view,))
    memory = Memory(maintenance, SOURCES, world)
    for _ in range(4):
        change = data.draw(changes(world, most=5))
        memory.run(compile_program(maintenance, {"t": True}), {"t": change["t"]})
        world = {**world, "t": after(world, change)["t"]}
        assert memory.value("v") == memory.meaning(made)
        for state in maintenance.states.stored.values():
            assert memory.value(state.name) == memory.meaning(state.plan)


@pytest.mark.parametrize("bound", ["`n` <= 3", "`n` < 4", "3 >= `n`", "4 > `n`", "`n` = 3"])
def test_every_spelling_of_a_bound_is_known(bound):
    found = top_k(filter_(FIRST, f"{bound} AND `b` > 0"))
    assert found is not None
    assert found.most == 3
    assert found.plan.predicate == "`n` <= 3"


@pytest.mark.parametrize(
    "condition", ["`n` > 3", "`n` >= 3", "3 < `n`", "`a` <= 3", "`n` <= `a`", "`n` <= 3 OR `a` = 1"]
)
def test_what_bounds_no_number_is_a_filter_like_any_other(condition):
    assert top_k(filter_(FIRST, condition)) is None


def test_rows_of_any_sign_have_no_first_ones_that_follow_a_change():
    signed = window(add(T, negate(T)), (), (Over("n", "int", "row_number", (), ORDER),))
    assert top_k(filter_(signed, "`n` <= 3")) is None


def test_a_column_that_hangs_on_later_rows_is_computed_from_all():
    number = Over("n", "int", "row_number", (), ORDER)
    for function, order in (("count", ORDER), ("rank", (Order("b"),))):
        both = window(T, (), (number, Over("m", "bigint", function, (), order)))
        assert top_k(filter_(both, "`n` <= 3")) is None
    both = window(T, (), (number, Over("m", "int", "rank", (), ORDER[:1])))
    assert top_k(filter_(both, "`n` <= 3")) is not None


def rows(*numbers: int) -> Bag:
    """Rows of t, told apart by their first column."""
    return Counter((number, 0, None) for number in numbers)


@pytest.mark.parametrize(
    ("come", "gone", "read"),
    [
        ((9,), (), False),
        ((0,), (), False),
        ((), (5,), False),
        ((), (1,), True),
        ((0,), (2,), False),
        ((4,), (2,), True),
        ((1, 0), (3, 2), False),
        ((1,), (3, 2), True),
        ((0,), (1, 2, 3, 4, 5), True),
    ],
)
def test_the_input_is_read_only_where_too_few_rows_are_known(come, gone, read):
    plan = rewrite(filter_(FIRST, "`n` <= 3"))
    view = View(Source("v", schema_of(plan)), (), plan)
    maintenance = compile_arrangements({"t": Table(T, ("a",))}, (view,))
    memory = Memory(maintenance, {"t": T}, {"t": rows(1, 2, 3, 4, 5)})
    change = rows(*come)
    change.subtract(rows(*gone))
    memory.run(compile_program(maintenance, {"t": bool(gone)}), {"t": change})
    assert memory.value("v") == memory.meaning(plan)
    whole = [name for name, by, _ in memory.fetched if name == "t" and by is None]
    assert len(whole) <= 1
    assert any(count for name, by, count in memory.fetched if name in whole and by is None) is read


@pytest.mark.parametrize("plan", SECOND)
@pytest.mark.parametrize(
    ("old", "come", "gone", "asked"),
    [
        ((1, 2, 3), (9,), (), False),
        ((1, 2, 3), (), (3,), False),
        ((1, 2, 3), (4, 5), (3,), False),
        ((1, 2, 3), (4,), (1,), True),
        ((1, 2, 3), (2,), (), True),
        ((1,), (9,), (), True),
        ((), (9,), (), True),
    ],
)
def test_nothing_is_done_for_what_comes_after_as_many_rows_as_are_wanted(
    plan, old, come, gone, asked
):
    gate = next(n for n in walk(derive(plan)) if isinstance(n, Map) and not n.outputs)
    change = rows(*come)
    change.subtract(rows(*gone))
    assert bool(evaluate(gate, {"t": rows(*old)}, {"t": change})) is asked
