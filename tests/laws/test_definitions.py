"""What explain shows of a derivative is what a program is lowered from."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from everview.compiler import Maintenance, Table, View, compile_arrangements, compile_program
from everview.differentiate.definitions import Definitions, print_derivative
from everview.differentiate.derive import Differentiator
from everview.plan.nodes import Plan, Ref, Source
from everview.plan.text import parse_plan
from everview.plan.traverse import schema_of, transform
from everview.program.arrangements import Arrangements
from everview.program.lowering import Lowering
from everview.program.materialize import Materializer
from everview.rewrite.passes import rewrite
from loops import TABLES, loops
from memory import Memory
from strategies import SOURCES, T, U, changes, first_rows, one_of_each, plans, worlds


def _maintenance(plan: Plan) -> Maintenance:
    tables = {name: Table(source, (source.schema[0].name,)) for name, source in SOURCES.items()}
    return compile_arrangements(tables, (View(Source("v", schema_of(plan)), (), plan),))


def _read(text: str) -> Plan:
    """The derivative that explain printed, with definitions in the place of their names."""
    *defined, last = re.split(r"^(?=\S)", "\n" + text, flags=re.MULTILINE)[1:]
    known: dict[str, Plan] = {}

    def expanded(plan: Plan) -> Plan:
        return transform(plan, lambda n: known[n.name] if isinstance(n, Ref) else n)

    for each in defined:
        name, _, plan = each.partition(" :=\n")
        known[name] = expanded(parse_plan(re.sub("^  ", "", plan, flags=re.MULTILINE)))
    return expanded(parse_plan(last))


def _check(data: st.DataObject, plan: Plan, world: dict) -> None:
    change = data.draw(changes(world))
    touched = {name: True for name, bag in change.items() if bag}
    maintenance = _maintenance(plan)
    memory = Memory(maintenance, SOURCES, world)
    shown = memory.derived("v", _read(print_derivative(plan, touched)), change)
    memory.run(compile_program(maintenance, touched), change)
    assert memory.published.get("v", {}) == shown


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_program_publishes_what_explain_shows(data, plan, world):
    _check(data, rewrite(plan), world)


@given(data=st.data(), each=one_of_each((T, U)), first=first_rows(T), world=worlds())
def test_a_program_publishes_what_explain_shows_of_each_operator(data, each, first, world):
    for plan in (*each, first):
        _check(data, plan, world)


class Recorded:
    """A target, and the operators and loops that it was given changes of, in order."""

    def __init__(self, target):
        self._target = target
        self.given = []

    def emit(self, operator, change, /):
        self.given.append(operator)
        return self._target.emit(operator, change)

    def share(self, change, /):
        return self._target.share(change)

    def follow(self, loop, d, /):
        self.given.append((loop.node, [(r.name, r.sum, r.is_set) for r in loop.relations]))
        return self._target.follow(loop, d)


def _both(plan: Plan, tables: dict[str, Source]) -> list[list]:
    arrangements = Arrangements({name: (s.schema[0].name,) for name, s in tables.items()})
    found = []
    for target in (Definitions(), Materializer(Lowering(arrangements))):
        recorded = Recorded(target)
        Differentiator(recorded).change(plan)
        found.append(recorded.given)
    return found


@given(plan=plans())
def test_explain_and_programs_take_the_same_derivatives(plan):
    shown, lowered = _both(plan, SOURCES)
    assert shown == lowered
    assert shown[-1] == plan


@given(loop=loops)
def test_explain_and_programs_follow_the_same_loops(loop):
    shown, lowered = _both(rewrite(loop), TABLES)
    assert shown == lowered
    assert any(isinstance(each, tuple) for each in shown)
