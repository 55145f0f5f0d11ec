"""What is emitted computes what the plan denotes, derivatives included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation import WORKSPACE, calculate, evaluate
from everview.differentiate.derive import derive
from everview.plan.build import add, groups, restrict, totals
from everview.plan.nodes import Change, Measure, Plan, Restrict, Totals
from everview.plan.traverse import schema_of
from everview.rewrite.factorize import factorize
from everview.sqlgen import shared
from everview.sqlgen.shared import shared_parts
from everview.sqlgen.sql import ring_columns
from strategies import (
    EVERY,
    SIGNED,
    SOURCES,
    Bag,
    Row,
    T,
    as_arrow,
    changes,
    grouped_joins,
    one_of_each,
    plans,
    rows,
    total,
    worlds,
)


@given(plan=plans(), world=worlds())
def test_the_sql_of_a_plan_computes_its_meaning(plan, world):
    assert calculate(plan, world) == evaluate(plan, world)


@given(data=st.data(), plan=plans(), world=worlds())
def test_the_sql_of_a_derivative_computes_its_meaning(data, plan, world):
    change = data.draw(changes(world))
    derivative = derive(plan)
    assert calculate(derivative, world, change) == evaluate(derivative, world, change)


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_careful_query_has_the_same_answer(data, plan, world):
    change = data.draw(changes(world))
    derivative = derive(plan)
    careful = calculate(derivative, world, change, careful=True)
    assert careful == evaluate(derivative, world, change)


@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data(), plan=grouped_joins(), world=worlds())
def test_the_sql_of_products_of_totals_computes_their_meaning(data, plan, world):
    change, made = data.draw(changes(world)), factorize(plan, overflow=True)
    assert calculate(made, world) == evaluate(made, world)
    derivative = derive(made)
    for careful in (False, True):
        answer = calculate(derivative, world, change, careful=careful)
        assert answer == evaluate(derivative, world, change)


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_query_with_common_table_expressions_has_the_same_answer(data, plan, world):
    change = data.draw(changes(world))
    derivative = derive(add(plan, add(plan, plan)))
    shared_parts.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "TREE_MAX_NODES", 0)
        answer = calculate(derivative, world, change)
        careful = calculate(derivative, world, change, careful=True)
    shared_parts.cache_clear()
    assert answer == careful == evaluate(derivative, world, change)


@given(data=st.data(), each=one_of_each(SIGNED, (*EVERY, "restrict")), world=worlds())
def test_the_sql_of_each_operator_over_signed_rows_computes_its_meaning(data, each, world):
    change = data.draw(changes(world))
    for plan in each:
        assert calculate(plan, world, change) == evaluate(plan, world, change)


@given(data=st.data(), world=worlds())
def test_a_restriction_without_keys_asks_for_any_row(data, world):
    plan = restrict(T, Change("t", T.schema), ())
    for change in (data.draw(changes(world)), {"t": Counter()}):
        assert calculate(plan, world, change) == evaluate(plan, world, change)


def restricted(keys: tuple[str, ...]) -> Iterator[tuple[Plan, Plan]]:
    """Plans, and others whose keys they may be restricted to."""
    delta, count = Change("t", T.schema), (Measure("n", "bigint", "count"),)
    old, new = (totals(each, keys, count) for each in (T, delta))
    both = add(old, new)
    yield from ((each, delta) for each in (T, delta, add(T, delta), groups(both, keys)))
    yield from ((each, new) for each in (new, both, groups(old, keys), groups(both, keys)))


@pytest.mark.parametrize(
    ("child", "to"), [*chain(*map(restricted, [(), ("a",), ("x", "b")]))], ids=lambda _: ""
)
@given(data=st.data(), world=worlds())
def test_a_restriction_may_be_made_further_down(child, to, data, world):
    possible = [
        (ours.name, theirs.name)
        for ours in schema_of(child)
        for theirs in schema_of(to)
        if ours.type == theirs.type
    ]
    on = tuple(data.draw(st.permutations(possible))[: data.draw(st.integers(0, 2))])
    for change in (data.draw(changes(world)), {"t": Counter()}):
        expected = evaluate(Restrict(child, to, on), world, change)
        assert evaluate(restrict(child, to, on), world, change) == expected


@given(data=st.data(), world=worlds())
def test_totals_are_added_up_as_rings(data, world):
    plan, old = data.draw(summed()), world["t"]
    change = data.draw(changes(world))["t"]
    come, gone = (data.draw(rows(SOURCES["t"].schema)) for _ in range(2))
    for one, other in ((old, change), (Counter({come: 1}), Counter({gone: -1}))):
        parts = pa.concat_tables([table_of(plan, one), table_of(plan, other)])
        expected = as_map(table_of(plan, total(one, other)), plan)
        for consolidate in (WORKSPACE.consolidate, WORKSPACE.sql.consolidate):
            added = consolidate(parts, schema_of(plan), ring_columns(plan))
            assert as_map(added, plan) == expected


def summed() -> st.SearchStrategy[Totals]:
    """Totals of a table, with keys or without."""
    measures = (
        Measure("count(*)", "bigint", "count"),
        Measure("sum(b)", "decimal(38,0)", "sum", "b"),
        Measure("sum(x)", "decimal(38,2)", "sum", "x"),
    )
    keys = st.sampled_from([(), ("a",), ("a", "b")])
    return keys.map(lambda found: Totals(SOURCES["t"], found, measures))


def table_of(plan: Totals, rows: Bag) -> pa.Table:
    """The totals of some rows."""
    return WORKSPACE.evaluate_over(plan, {"t": as_arrow(rows, SOURCES["t"].schema)})


def as_map(table: pa.Table, plan: Totals) -> dict[Row, Row]:
    """From keys to ring values; a ring value that is zero is not there."""
    count = len(plan.keys)
    entries = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert not any(value is None for row in entries for value in row[count:])
    return {row[:count]: row[count:] for row in entries if any(row[count:])}
