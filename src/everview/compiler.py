"""The map: text → plan → rewritten plan → derivative → program.

No program is stored. A store holds the texts of views; `compile_view` and `compile_arrangements`
run when a store is opened or a view is declared, `compile_program` once for each set of tables that
transactions change (`database/maintain.py` keeps the programs).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from everview.analysis.keys import keys
from everview.expr.types import names
from everview.lang.front_end import ViewText, lower_view
from everview.lang.sql.lower.context import Analyze
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Empty, Plan, Source
from everview.plan.traverse import schema_of, sources
from everview.program.arrangements import Arrangements, Demand
from everview.program.constraints import checks, stays_empty
from everview.program.lowering import Lowering
from everview.program.materialize import Policies
from everview.program.policy import CIRCUIT, FIRST_ORDER, Decision, choose, kept_maps, under
from everview.program.schedule import schedule
from everview.program.steps import (
    Add,
    Program,
    Publish,
    Step,
    change_name,
    violations_name,
)
from everview.rewrite.passes import rewrite


@dataclass(frozen=True, slots=True)
class Table:
    """A base relation: its source, the order it is stored in, and the columns never null.

    The change of one that is `ours` was made by us, so it is not checked. Whoever makes it looks up
    rows by the columns `lookup`.
    """

    source: Source
    sort: tuple[str, ...]
    not_null: tuple[str, ...] = ()
    ours: bool = False
    lookup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A maintained relation: its rewritten plan and how others read it.

    The plan is in the form that its policy maintains; `query` is the one before, if that differs.
    `maps` are the products of totals that are kept for it, beside its states.
    """

    source: Source
    sort: tuple[str, ...]
    plan: Plan
    policy: str = CIRCUIT
    query: Plan | None = None
    maps: frozenset[Plan] = frozenset()

    @property
    def meaning(self) -> tuple[Source, tuple[str, ...], Plan]:
        """What is stored of it and in which order, whatever its policy."""
        return self.source, self.sort, self.query or self.plan


@dataclass(frozen=True, slots=True)
class Assertion:
    """A constraint as a view that must stay empty: its name and text, its query and plan.

    The view is not stored. It was empty before a transaction, so it is empty after it if and only
    if its change is.
    """

    name: str
    text: str
    query: str
    plan: Plan

    @property
    def view(self) -> View:
        """The view, as if it were stored."""
        return View(Source(self.name, schema_of(self.plan)), (), self.plan)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Everything that keeps a set of views fresh: they, their tables, and what is stored for them.

    `states` are the arrangements that changes look up.
    """

    tables: Mapping[str, Table]
    views: tuple[View, ...]
    states: Arrangements
    assertions: tuple[Assertion, ...] = ()


def compile_view(
    view: ViewText,
    known: Mapping[str, StoredRelation],
    analyze: Analyze,
    decided: Decision | None = None,
    rows: Mapping[str, int] | None = None,
) -> tuple[View, Decision]:
    """text → plan → rewritten plan: a view over the relations it may read.

    Where it is not `decided` under which policy it is maintained, one is chosen, with so many
    `rows` in the relations. Others read it by its smallest key where it has one, else by its first
    column.
    """
    plan = rewrite(lower_view(view, known, analyze))
    decision = decided or choose(plan, rows or {})
    columns = schema_of(plan)
    smallest = min(keys(plan), key=lambda key: (len(key), sorted(key)), default=frozenset[str]())
    key = tuple(name for name in names(columns) if name in smallest)
    source, sort = Source(view.name, columns, key), key or names(columns)[:1]
    made = under(decision.policy, plan, overflow=decision.declared)
    query = plan if made != plan else None
    return View(source, sort, made, decision.policy, query, kept_maps(made, decision)), decision


def compile_arrangements(
    tables: Mapping[str, Table], views: tuple[View, ...], assertions: tuple[Assertion, ...] = ()
) -> Maintenance:
    """plans → derivatives → arrangements: what is stored so that changes look up old values.

    An arrangement is maintained like a view, and its change may need further ones: they are
    gathered until there is no new one.
    """
    relations: Iterable[Table | View] = (*tables.values(), *views)
    maps = frozenset[Plan]().union(*(view.maps for view in views))
    arrangements = Arrangements({each.source.name: each.sort for each in relations}, maps)
    for table in tables.values():
        if table.lookup:
            every = frozenset(names(table.source.schema))
            arrangements.serve(Demand(table.source, table.lookup, every, None))
    arrangements.arrange()
    changes = Policies(Lowering(arrangements))
    done: set[Plan] = set()
    waiting: list[tuple[Plan, str]] = [(view.plan, view.policy) for view in views]
    waiting += ((each.plan, CIRCUIT) for each in assertions)
    waiting += ((state.plan, CIRCUIT) for state in arrangements.stored.values())
    while waiting:
        for plan, policy in waiting:
            changes.change(plan, policy)
        done.update(plan for plan, policy in waiting if policy != FIRST_ORDER)
        arrangements.arrange()
        states = arrangements.stored.values()
        waiting = [(s.plan, CIRCUIT) for s in states if s.plan not in done]
    return Maintenance(tables, views, arrangements, assertions)


def compile_program(
    maintenance: Maintenance, touched: Mapping[str, bool], only: Collection[str] | None = None
) -> Program:
    """plans → derivatives → steps → program: what a change of the `touched` tables does.

    `touched` says for each table whether rows are deleted. Views and states that do not depend on
    a touched table do not occur in the program; `only` leaves out other views too, and assertions.
    """
    changed = set(touched)
    lowering = Lowering(maintenance.states)
    derivatives = Policies(lowering, changed)
    endings = _checks(maintenance, touched, lowering)
    moved = _view_changes(maintenance, derivatives, lowering, changed, only)
    if only is None:
        endings += _assertions(maintenance.assertions, derivatives, lowering)
    endings += (Publish(name, change_name(name)) for name in moved)
    for state in maintenance.states.stored.values():
        change = derivatives.change(state.plan, CIRCUIT)
        if not isinstance(change, Empty):
            endings.append(Add(state.name, lowering.compute(change).name))
    return _program(touched, (*lowering.steps, *endings))


def compile_checks(
    maintenance: Maintenance, touched: Mapping[str, bool], *, assertions: bool = True
) -> Program:
    """What a change of the `touched` tables must satisfy, whatever becomes of the views.

    The changes of views that assertions read are computed, and not published.
    """
    changed = set(touched)
    lowering = Lowering(maintenance.states)
    endings = _checks(maintenance, touched, lowering)
    if assertions:
        derivatives = Policies(lowering, changed)
        plans = {view.source.name: view.plan for view in maintenance.views}
        read = _sources_under((each.plan for each in maintenance.assertions), plans)
        _view_changes(maintenance, derivatives, lowering, changed, read)
        endings += _assertions(maintenance.assertions, derivatives, lowering)
    return _program(touched, (*lowering.steps, *endings))


def compile_assertion(
    maintenance: Maintenance, assertion: Assertion, touched: Mapping[str, bool]
) -> Program:
    """What verifies one assertion when the `touched` tables change."""
    alone = replace(maintenance, assertions=(assertion,), tables={})
    return compile_checks(alone, touched)


def _view_changes(
    maintenance: Maintenance,
    derivatives: Policies,
    lowering: Lowering,
    changed: set[str],
    only: Collection[str] | None,
) -> list[str]:
    """Compute the changes of views, which join what is `changed`; the views that may change."""
    moved: list[str] = []
    for view in maintenance.views:
        name = view.source.name
        if only is not None and name not in only:
            continue
        change = derivatives.change(view.plan, view.policy)
        if not isinstance(change, Empty):
            lowering.compute(change, change_name(name))
            moved.append(name)
            changed.add(name)
    return moved


def _sources_under(plans: Iterable[Plan], views: Mapping[str, Plan]) -> set[str]:
    """The relations that plans read, themselves or through views."""
    found: set[str] = set()
    waiting = list(plans)
    while waiting:
        read = {source.name for source in sources(waiting.pop())} - found
        found |= read
        waiting += (views[name] for name in read if name in views)
    return found


def _assertions(
    assertions: Iterable[Assertion], derivatives: Policies, lowering: Lowering
) -> list[Step]:
    steps: list[Step] = []
    for each in assertions:
        change = derivatives.change(each.plan, CIRCUIT)
        if not isinstance(change, Empty):
            result = lowering.compute(change, violations_name(each.name))
            steps.append(stays_empty(each.name, each.text, result))
    return steps


def _checks(
    maintenance: Maintenance, touched: Mapping[str, bool], lowering: Lowering
) -> list[Step]:
    steps: list[Step] = []
    for name, deletes in touched.items():
        table = maintenance.tables.get(name)
        if table is not None and not table.ours:
            steps += checks(table.source, table.sort, table.not_null, deletes, lowering)
    return steps


def _program(touched: Mapping[str, bool], steps: Iterable[Step]) -> Program:
    removing = frozenset(name for name, deletes in touched.items() if deletes)
    return Program(tuple(touched), schedule(steps), removing)
