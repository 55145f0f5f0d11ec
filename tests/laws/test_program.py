"""Random epochs through a program leave every view and every state equal to its query."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compiler import Maintenance, Table, View, compile_arrangements, compile_program
from everview.differentiate.derive import derive
from everview.plan.build import distinct, filter_, join, map_, positive
from everview.plan.nodes import Empty, Filter, Output, Plan, Source
from everview.plan.traverse import schema_of, walk
from everview.program.explain import explain
from everview.program.maps import Rows, maps_in
from everview.program.policy import CIRCUIT, FIRST_ORDER, HIGHER_ORDER, POLICIES, under
from everview.program.steps import Add, Compute, Program, change_name
from everview.rewrite.passes import rewrite
from memory import Memory
from strategies import (
    SOURCES,
    World,
    after,
    chains,
    changes,
    grouped,
    grouped_joins,
    plans,
    predicates,
    read_by_key,
    worlds,
)

EVERY_MAP, PAYING = None, ()


def _maintenance(
    *chosen: Plan, policy: str = CIRCUIT, maps: Rows | None = EVERY_MAP
) -> Maintenance:
    tables = {name: Table(source, (source.schema[0].name,)) for name, source in SOURCES.items()}
    views = []
    for number, plan in enumerate(chosen):
        name, made = f"v{number}", under(policy, rewrite(plan), overflow=True)
        schema = schema_of(made)
        sort = tuple(c.name for c in schema[:1])
        views.append(View(Source(name, schema), sort, made, policy, maps=maps_in(made, maps)))
    return compile_arrangements(tables, tuple(views))


@given(data=st.data(), first=plans(), second=plans(depth=2), world=worlds())
def test_views_and_states_equal_their_queries_after_every_epoch(data, first, second, world):
    _follow(data, _maintenance(first, second), world)


@pytest.mark.parametrize("policy", [FIRST_ORDER, HIGHER_ORDER])
@given(
    data=st.data(),
    plan=plans(),
    joined=grouped_joins(),
    maps=st.sampled_from((EVERY_MAP, PAYING)),
    world=worlds(),
)
def test_views_equal_their_queries_under_each_policy(policy, data, plan, joined, maps, world):
    _follow(data, _maintenance(plan, joined, policy=policy, maps=maps), world)


@given(data=st.data(), joined=grouped_joins(), other=grouped_joins(), world=worlds())
def test_views_of_different_policies_live_side_by_side(data, joined, other, world):
    tables = {name: Table(source, (source.schema[0].name,)) for name, source in SOURCES.items()}
    views = []
    for name, plan, policy in zip("abc", (joined, other, joined), POLICIES, strict=True):
        made = under(policy, rewrite(plan), overflow=True)
        schema = schema_of(made)
        maps = maps_in(made, data.draw(st.sampled_from((EVERY_MAP, PAYING))))
        views.append(View(Source(name, schema), (schema[0].name,), made, policy, maps=maps))
    _follow(data, compile_arrangements(tables, tuple(views)), world)


@given(data=st.data(), joined=chains(), world=worlds())
def test_a_join_with_a_join_equals_its_query_after_every_epoch(data, joined, world):
    _follow(data, _maintenance(*joined), world)


@given(data=st.data(), joined=read_by_key(), world=worlds())
def test_a_join_with_a_view_equals_its_query_after_every_epoch(data, joined, world):
    _follow(data, _maintenance(*joined), world)


def _follow(data: st.DataObject, maintenance: Maintenance, world: World) -> None:
    memory = Memory(maintenance, SOURCES, world)
    for _ in range(3):
        change = data.draw(changes(world))
        touched = {
            name: any(weight < 0 for weight in bag.values()) for name, bag in change.items() if bag
        }
        program = compile_program(maintenance, touched)
        assert _published(program) == _moved(maintenance, touched)
        memory.run(program, change)
        world = after(world, change)
        for view in maintenance.views:
            assert memory.value(view.source.name) == memory.meaning(view.plan)
        for state in maintenance.states.stored.values():
            assert memory.value(state.name) == memory.meaning(state.plan)


def _joined_where(predicate: str | None, by: str = "b") -> Plan:
    """u ⋈ σ(t) by a column of t, which is sorted by a; what σ looks at may not be seen above."""
    t, u = SOURCES["t"], SOURCES["u"]
    left = map_(u, (Output("l.a", "int", "`a`"), Output("l.s", "string", "`s`")))
    kept = (Output("r.k", "int", f"`{by}`"), Output("r.x", "decimal(6,2)", "`x`"))
    right = map_(filter_(t, predicate), kept)
    return join(left, right, (("l.a", "r.k"),))


@given(data=st.data(), world=worlds())
def test_views_with_different_filters_share_an_arrangement_rightly(data, world):
    chosen = [_joined_where(p) for p in ("`a` > 0", "`x` IS NULL", None)]
    for some in (chosen[:1], chosen[:2], chosen, [_joined_where("`b` > 0", by="a")]):
        maintenance = _maintenance(*some)
        memory, now = Memory(maintenance, SOURCES, world), world
        for _ in range(2):
            change = data.draw(changes(now))
            touched = {name: True for name, bag in change.items() if bag}
            memory.run(compile_program(maintenance, touched), change)
            now = after(now, change)
            for view in maintenance.views:
                assert memory.value(view.source.name) == memory.meaning(view.plan)


def test_what_a_view_and_its_state_take_of_a_change_is_computed_once():
    program = compile_program(_maintenance(_joined_where("`a` > 0")), {"t": True})
    plans_ = [step.plan for step in program.steps if isinstance(step, Compute)]
    filtered = [p for p in plans_ if any(isinstance(node, Filter) for node in walk(p))]
    assert len(filtered) == 1
    assert any(isinstance(step, Add) for step in program.steps)


@given(data=st.data(), first=plans(depth=2), world=worlds())
def test_a_view_over_a_view_follows_it(data, first, world):
    base = rewrite(positive(first))
    source = Source("v0", schema_of(base))
    upper = data.draw(_over(source))
    tables = {name: Table(s, (s.schema[0].name,)) for name, s in SOURCES.items()}
    sort = tuple(c.name for c in source.schema[:1])
    made = rewrite(upper)
    maintenance = compile_arrangements(
        tables,
        (View(source, sort, base), View(Source("v1", schema_of(made)), (), made)),
    )
    memory = Memory(maintenance, SOURCES, world)
    for _ in range(3):
        change = data.draw(changes(world))
        touched = {name: True for name, bag in change.items() if bag}
        memory.run(compile_program(maintenance, touched), change)
        world = after(world, change)
        assert memory.value("v0") == memory.meaning(base)
        assert memory.value("v1") == memory.meaning(made)


@st.composite
def _over(draw: st.DrawFn, source: Source) -> Plan:
    kind = draw(st.sampled_from(["filter", "distinct", "group"]))
    if kind == "filter":
        return filter_(source, draw(predicates(source.schema)))
    return distinct(source) if kind == "distinct" else draw(grouped(source))


def _published(program: Program) -> list[str]:
    """What a program publishes, as explain shows it."""
    lines = explain(program).splitlines()
    return [line for line in lines if line.startswith("publish ")]


def _moved(maintenance: Maintenance, touched: Mapping[str, bool]) -> list[str]:
    """The publishing of each view that a change of these tables can move."""
    moved = (v for v in maintenance.views if not isinstance(derive(v.plan, touched), Empty))
    return [f"publish {v.source.name} += {change_name(v.source.name)}" for v in moved]


def test_the_empty_change_has_an_empty_program():
    assert compile_program(_maintenance(SOURCES["t"]), {}).steps == ()
