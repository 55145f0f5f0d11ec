"""Random epochs through a program leave every view and every state equal to its query."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from evaluation import evaluate
from everview.compiler import Maintenance, Table, View
from everview.emit.sql import ring_columns
from everview.engine.duckdb.calculator import Calculator
from everview.plan.build import distinct, filter_, join, map_
from everview.plan.nodes import Output, Plan, Source
from everview.plan.traverse import schema_of
from everview.program.explain import explain
from everview.program.steps import Add, Check, Compute, Fetch, Program, Publish, change_name
from everview.rewrite.passes import rewrite
from strategies import (
    SOURCES,
    after,
    as_arrow,
    as_bag,
    changes,
    grouped,
    plans,
    predicates,
    worlds,
)


class Memory:
    """Tables, views and states in memory, moved by programs: the smallest engine there can be."""

    def __init__(self, maintenance: Maintenance, world) -> None:
        self.maintenance = maintenance
        self.calculator = Calculator()
        self.schemas = {name: s.schema for name, s in SOURCES.items()}
        self.rings: dict[str, tuple[str, ...]] = {}
        self.values: dict[str, pa.Table] = {
            name: as_arrow(world[name], s.schema) for name, s in SOURCES.items()
        }
        for view in maintenance.views:
            self._build(view.source.name, view.plan)
        for state in maintenance.states.stored.values():
            self._build(state.name, state.plan)

    def _build(self, name: str, plan: Plan) -> None:
        self.schemas[name], self.rings[name] = schema_of(plan), ring_columns(plan)
        self.values[name] = self.calculator.calculate(plan, self.values)

    def run(self, program: Program, change) -> None:
        pending = {t: as_arrow(change[t], self.schemas[t]) for t in program.inputs}
        for table, rows in pending.items():
            self.calculator.give(change_name(table), rows)
        for step in program.steps:
            match step:
                case Fetch(result, relation, schema, by, keys):
                    rows = self.values[relation].select([*(c.name for c in schema), "_w"])
                    if by is not None:
                        wanted = pa.chunked_array(
                            [
                                c
                                for k in keys
                                for c in self.calculator.keys(k.relation, k.column).chunks
                            ],
                            rows.column(by).type,
                        )
                        rows = rows.filter(pc.is_in(rows.column(by), value_set=wanted))
                    self.calculator.give(result, rows)
                case Compute():
                    self.calculator.compute(step)
                case Check(_, _, _, plan):
                    assert self.calculator.evaluate(plan).num_rows == 0
                case Add(name, made) | Publish(name, made):
                    pending[name] = self.calculator.result(made, self.schemas[name])
        self.calculator.forget()
        for name, rows in pending.items():
            both = pa.concat_tables([self.values[name], rows])
            rings = self.rings.get(name, ())
            self.values[name] = self.calculator.add_up(both, self.schemas[name], rings)


def _maintenance(*chosen: Plan) -> Maintenance:
    tables = {name: Table(source, (source.schema[0].name,)) for name, source in SOURCES.items()}
    views = []
    for number, plan in enumerate(chosen):
        name, made = f"v{number}", rewrite(plan)
        schema = schema_of(made)
        views.append(View(Source(name, schema), tuple(c.name for c in schema[:1]), made))
    return Maintenance(tables, tuple(views))


@given(data=st.data(), first=plans(), second=plans(depth=2), world=worlds())
def test_views_and_states_equal_their_queries_after_every_epoch(data, first, second, world):
    maintenance = _maintenance(first, second)
    memory = Memory(maintenance, world)
    for _ in range(3):
        change = data.draw(changes(world))
        touched = {
            name: any(weight < 0 for weight in bag.values()) for name, bag in change.items() if bag
        }
        program = maintenance.program(touched)
        assert all(f"publish v{n} " in explain(program) for n in _published(program))
        memory.run(program, change)
        world = after(world, change)
        for view in maintenance.views:
            assert as_bag(memory.values[view.source.name]) == evaluate(view.plan, world)
        for state in maintenance.states.stored.values():
            assert as_bag(memory.values[state.name]) == evaluate(state.plan, world)


def _joined_where(predicate: str | None) -> Plan:
    """u ⋈ σ(t) by a column that t is not sorted by."""
    t, u = SOURCES["t"], SOURCES["u"]
    left = map_(u, (Output("l.a", "int", "`a`"), Output("l.s", "string", "`s`")))
    kept = (Output("r.b", "int", "`b`"), Output("r.x", "decimal(6,2)", "`x`"))
    right = map_(filter_(t, predicate), kept)
    return join(left, right, (("l.a", "r.b"),))


@given(data=st.data(), world=worlds())
def test_views_with_different_filters_share_an_arrangement_rightly(data, world):
    chosen = [_joined_where(p) for p in ("`a` > 0", "`x` IS NULL", None)]
    for some in (chosen[:1], chosen[:2], chosen):
        maintenance = _maintenance(*some)
        memory, now = Memory(maintenance, world), world
        for _ in range(2):
            change = data.draw(changes(now))
            touched = {name: True for name, bag in change.items() if bag}
            memory.run(maintenance.program(touched), change)
            now = after(now, change)
            for view in maintenance.views:
                assert as_bag(memory.values[view.source.name]) == evaluate(view.plan, now)


@given(data=st.data(), first=plans(depth=2), world=worlds())
def test_a_view_over_a_view_follows_it(data, first, world):
    base = rewrite(first)
    source = Source("v0", schema_of(base))
    upper = data.draw(_over(source))
    tables = {name: Table(s, (s.schema[0].name,)) for name, s in SOURCES.items()}
    sort = tuple(c.name for c in source.schema[:1])
    made = rewrite(upper)
    maintenance = Maintenance(
        tables,
        (View(source, sort, base), View(Source("v1", schema_of(made)), (), made)),
    )
    memory = Memory(maintenance, world)
    for _ in range(3):
        change = data.draw(changes(world))
        touched = {name: True for name, bag in change.items() if bag}
        memory.run(maintenance.program(touched), change)
        world = after(world, change)
        expected = evaluate(base, world)
        assert as_bag(memory.values["v0"]) == expected
        assert as_bag(memory.values["v1"]) == evaluate(made, {**world, "v0": expected})


@st.composite
def _over(draw: st.DrawFn, source: Source) -> Plan:
    kind = draw(st.sampled_from(["filter", "distinct", "group"]))
    if kind == "filter":
        return filter_(source, draw(predicates(source.schema)))
    return distinct(source) if kind == "distinct" else draw(grouped(source))


def _published(program: Program) -> list[str]:
    return [step.view[1:] for step in program.steps if isinstance(step, Publish)]


def test_the_empty_change_has_an_empty_program():
    assert _maintenance(SOURCES["t"]).program({}).steps == ()
