"""How each operator of a view is kept fresh: by which law, with what state, reading how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from everview.compiler import View
from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.iterations import table
from everview.differentiate.lifting import is_lifted, label, trace_of
from everview.differentiate.rules import TOP_K, rule_of
from everview.expr.types import BEGUN
from everview.plan.nodes import Fixpoint, Plan, Source
from everview.plan.text import INDENT, print_plan
from everview.plan.traverse import children, sources, walk
from everview.program.arrangements import Arrangements
from everview.program.lowering import Lowering
from everview.program.materialize import Policies
from everview.program.policy import CIRCUIT

Reading = tuple[str, str | None]
"""A relation and the column it is looked up by; None for the whole of it."""


def explain_operators(view: View, states: Arrangements, known: FetchCosts) -> str:
    """The operators of a view, each with its law and what it reads for a change."""
    plan, readings = view.plan, _Readings(states)
    readings.add(plan, view.policy)
    unique = {source.name: source.key for source in sources(plan)}

    def shown(node: Plan, depth: int, covered: bool = False) -> list[str]:
        rule = rule_of(node)
        stratum = readings.stratum(node, known) if isinstance(node, Fixpoint) else None
        notes = [] if covered else [f"{rule.kind}: {rule.law}"]
        notes += [stratum.line] if stratum else []
        for relation, by in readings.of(node):
            kept = relation in states.stored
            notes.append(known.of_read(relation, by, kept, unique.get(relation, ())))
        notes += table(stratum.states) if stratum and stratum.states else []
        both = rule is TOP_K
        below = (line for child in children(node) for line in shown(child, depth + 1, both))
        margin = INDENT * depth
        return [margin + _title(node), *(f"{margin}{INDENT}-- {each}" for each in notes), *below]

    return "\n".join((f"-- {view.source.name}: {known.of_view(readings.all)}", *shown(plan, 0)))


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations defined by each other, and what a change of them costs.

    `iterations` says how far the last change went, None where that was not measured. `states` have
    the rows that are stored of each iteration. With `from_scratch`, each change evaluates the
    loop again over all that it reads.
    """

    relations: tuple[str, ...]
    from_scratch: bool
    iterations: int | None
    states: Mapping[str, Mapping[int, int]]

    @property
    def line(self) -> str:
        """The stratum in a line."""
        known = "not measured yet"
        if self.iterations is not None:
            known = f"{self.iterations} iterations, last time"
        way = "run again from scratch, over all that it reads" if self.from_scratch else known
        return f"stratum of {', '.join(self.relations)}: {way}"


def strata(view: View, states: Arrangements, known: FetchCosts) -> tuple[Stratum, ...]:
    """The loops of a view, each with the states that are kept for it; the outer ones first."""
    readings = _Readings(states)
    readings.add(view.plan, view.policy)
    loops = dict.fromkeys(node for node in walk(view.plan) if isinstance(node, Fixpoint))
    return tuple(readings.stratum(node, known) for node in loops)


def states_for(view: View, states: Arrangements) -> frozenset[str]:
    """The states that the change of a view reads, and those that their changes read."""
    readings, found = _Readings(states), set[str]()
    waiting = [(view.plan, view.policy)]
    while waiting:
        readings.add(*waiting.pop())
        fresh = ({name for name, _ in readings.all} & set(states.stored)) - found
        waiting += ((states.stored[name].plan, CIRCUIT) for name in sorted(fresh))
        found |= fresh
    return frozenset(found)


def _follows(node: Plan) -> TypeGuard[Fixpoint]:
    return isinstance(node, Fixpoint) and is_lifted(node)


def _title(node: Plan) -> str:
    first = print_plan(node).partition("\n")[0]
    return f'Source "{node.name}"' if isinstance(node, Source) else first


class _Readings:
    """Which relations the change of each operator looks up, and by which column."""

    def __init__(self, states: Arrangements) -> None:
        self._lowering = Lowering(states)
        self._changes = Policies(self._lowering)

    def add(self, plan: Plan, policy: str) -> None:
        """Read the change of a plan, as a program has it."""
        self._changes.change(plan, policy)

    @property
    def all(self) -> tuple[Reading, ...]:
        """Every reading, once."""
        every = (reading for reads in self._lowering.reads.values() for reading in reads)
        return tuple(dict.fromkeys(every))

    def of(self, node: Plan) -> tuple[Reading, ...]:
        """The readings of one operator; a loop that is followed reads for its iterations."""
        operator = trace_of(node, node.result) if _follows(node) else node
        return tuple(self._lowering.reads.get(operator, ()))

    def stratum(self, node: Fixpoint, known: FetchCosts) -> Stratum:
        """A loop, and the states it reads that hold iterations of its own."""
        stored = self._lowering.arrangements.stored
        own = {trace_of(node, name) for name in node.names}
        read = dict.fromkeys(name for name, _ in self.of(node) if name in stored)
        kept = (name for name in read if not own.isdisjoint(walk(stored[name].plan)))
        return Stratum(
            tuple(name for name in node.names if name != BEGUN),
            not is_lifted(node),
            known.iterations.get(label(node)),
            {name: known.rows_at(name) for name in kept},
        )
