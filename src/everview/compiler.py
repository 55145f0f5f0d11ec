"""The map: definitions in, a program out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from everview.plan.nodes import Empty, Plan, Source
from everview.program.arrangements import States
from everview.program.constraints import checks
from everview.program.materialize import Materializer
from everview.program.schedule import schedule
from everview.program.steps import Add, Program, Publish, Step, change_name


@dataclass(frozen=True, slots=True)
class Table:
    """A base relation: its source, the order it is stored in, and the columns never null.

    The change of one that is `ours` was made by us, so it is not checked.
    """

    source: Source
    sort: tuple[str, ...]
    not_null: tuple[str, ...] = ()
    ours: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A maintained relation: its rewritten plan and how others read it."""

    source: Source
    sort: tuple[str, ...]
    plan: Plan


@dataclass(slots=True)
class Maintenance:
    """Everything that keeps a set of views fresh: their states, and a program for any change."""

    tables: Mapping[str, Table]
    views: tuple[View, ...]
    states: States = field(init=False)

    def __post_init__(self) -> None:
        relations: Iterable[Table | View] = (*self.tables.values(), *self.views)
        self.states = States({r.source.name: r.sort for r in relations})
        gather = Materializer(self.states)
        asked: set[Plan] = set()
        waiting = [view.plan for view in self.views]
        while waiting:
            for plan in waiting:
                gather.change(plan)
            asked.update(waiting)
            self.states.settle()
            waiting = [s.plan for s in self.states.stored.values() if s.plan not in asked]

    def program(self, touched: Mapping[str, bool], only: frozenset[str] | None = None) -> Program:
        """plan → Δplan → steps: what a change of the `touched` tables does.

        `touched` says for each table whether rows are deleted. Views and states that do not
        depend on a touched table do not occur in the program; `only` leaves out other views too.
        """
        changed = set(touched)
        lowering = Materializer(self.states)
        endings = self._checks(touched, lowering)
        for view in self.views:
            if only is not None and view.source.name not in only:
                continue
            change = lowering.change(view.plan, frozenset(changed))
            if not isinstance(change, Empty):
                name = view.source.name
                lowering.compute(change, change_name(name))
                endings.append(Publish(name, change_name(name)))
                changed.add(name)
        for state in self.states.stored.values():
            change = lowering.change(state.plan, frozenset(changed))
            if not isinstance(change, Empty):
                endings.append(Add(state.name, lowering.compute(change).name))
        return _program(touched, (*lowering.steps, *endings))

    def checked(self, touched: Mapping[str, bool]) -> Program:
        """What a change of the `touched` tables must satisfy, whatever comes of the views."""
        lowering = Materializer(self.states)
        endings = self._checks(touched, lowering)
        return _program(touched, (*lowering.steps, *endings))

    def _checks(self, touched: Mapping[str, bool], lowering: Materializer) -> list[Step]:
        found: list[Step] = []
        for name, deletes in touched.items():
            table = self.tables[name]
            if not table.ours:
                found += checks(table.source, table.sort, table.not_null, deletes, lowering)
        return found


def _program(touched: Mapping[str, bool], steps: Iterable[Step]) -> Program:
    removing = frozenset(name for name, deletes in touched.items() if deletes)
    return Program(tuple(touched), schedule(steps), removing)
