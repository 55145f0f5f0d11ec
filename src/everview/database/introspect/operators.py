"""How each operator of a view is kept fresh: by which law, with what state, reading how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.iterations import table
from everview.differentiate.lifting import is_lifted, label, trace_of
from everview.differentiate.rules import FIRST_ROWS, rule_of
from everview.expr.types import BEGUN, Schema
from everview.plan.nodes import Fixpoint, Plan, Ref, Source
from everview.plan.text import INDENT, print_plan
from everview.plan.traverse import children, sources, walk
from everview.program.arrangements import States
from everview.program.materialize import Materializer

ANEW = "Δ(fix B) = fix B(R + ΔR) − fix B(R)"
"""The law of a loop whose every state counts, as in a while-program."""


def explain_operators(view: str, plan: Plan, states: States, known: FetchCosts) -> str:
    """The operators of a view, each with its law and what it reads for a change."""
    reading = _Reading(states)
    reading.change(plan)
    unique = {source.name: source.key for source in sources(plan)}

    def shown(node: Plan, depth: int, covered: bool = False) -> list[str]:
        rule = rule_of(node)
        stratum = reading.stratum(node, known) if isinstance(node, Fixpoint) else None
        law = ANEW if stratum and stratum.anew else rule.law
        notes = [] if covered else [f"{rule.kind}: {law}"]
        notes += [stratum.told] if stratum else []
        for relation, by in reading.of(node):
            kept = relation in states.stored
            notes.append(known.of_read(relation, by, kept, unique.get(relation, ())))
        notes += table(stratum.states) if stratum and stratum.states else []
        both = rule is FIRST_ROWS
        below = (line for child in children(node) for line in shown(child, depth + 1, both))
        margin = INDENT * depth
        return [margin + _title(node), *(f"{margin}{INDENT}-- {each}" for each in notes), *below]

    every = {each: None for reads in reading.reads.values() for each in reads}
    return "\n".join((f"-- {view}: {known.of_view(every)}", *shown(plan, 0)))


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations defined by each other, and what a change of them costs.

    `iterations` says how far the last change went, None where that was not measured. `states` have
    the rows that are stored of each iteration. What is `anew` is evaluated from scratch.
    """

    relations: tuple[str, ...]
    anew: bool
    iterations: int | None
    states: Mapping[str, Mapping[int, int]]

    @property
    def told(self) -> str:
        """The stratum in a line."""
        known = "not measured yet"
        if self.iterations is not None:
            known = f"{self.iterations} iterations, last time"
        way = "run anew, over all that it reads" if self.anew else known
        return f"stratum of {', '.join(self.relations)}: {way}"


def strata(plan: Plan, states: States, known: FetchCosts) -> tuple[Stratum, ...]:
    """The loops of a view, each with the states that are kept for it; the outer ones first."""
    reading = _Reading(states)
    reading.change(plan)
    loops = dict.fromkeys(node for node in walk(plan) if isinstance(node, Fixpoint))
    return tuple(reading.stratum(node, known) for node in loops)


def states_for(plan: Plan, states: States) -> frozenset[str]:
    """The states that the change of a plan reads, and those that their changes read."""
    reading, found = _Reading(states), set[str]()
    waiting = [plan]
    while waiting:
        reading.change(waiting.pop())
        named = {name for reads in reading.reads.values() for name, _ in reads}
        fresh = (named & set(states.stored)) - found
        waiting += (states.stored[name].plan for name in sorted(fresh))
        found |= fresh
    return frozenset(found)


def _follows(node: Plan) -> TypeGuard[Fixpoint]:
    return isinstance(node, Fixpoint) and is_lifted(node)


def _title(node: Plan) -> str:
    first = print_plan(node).partition("\n")[0]
    return f'Source "{node.name}"' if isinstance(node, Source) else first


@dataclass(slots=True)
class _Reading(Materializer):
    """A lowering that remembers which operator reads which relation, by which column."""

    reads: dict[Plan, dict[tuple[str, str | None], None]] = field(default_factory=dict)
    _within: list[Plan] = field(default_factory=list)

    def of(self, node: Plan) -> dict[tuple[str, str | None], None]:
        """What an operator reads: relations, each by a column or whole."""
        return self.reads.get(trace_of(node, node.result) if _follows(node) else node, {})

    def stratum(self, node: Fixpoint, known: FetchCosts) -> Stratum:
        """A loop, and the states it reads that hold iterations of its own."""
        stored = self.states.stored
        own = {trace_of(node, name) for name in node.names}
        read = dict.fromkeys(name for name, _ in self.of(node) if name in stored)
        kept = (name for name in read if not own.isdisjoint(walk(stored[name].plan)))
        return Stratum(
            tuple(name for name in node.names if name != BEGUN),
            not is_lifted(node),
            known.iterations.get(label(node)),
            {name: known.rows_at(name) for name in kept},
        )

    def change(self, plan: Plan, changed: frozenset[str] | None = None) -> Plan:
        """As for a program; what is fetched meanwhile is read by this operator."""
        self._within.append(plan)
        made = Materializer.change(self, plan, changed)
        self._within.pop()
        return made

    def _fetch(
        self,
        relation: str,
        schema: Schema,
        column: str | None,
        keys: Ref | None,
        pairs: tuple[tuple[str, str], ...],
    ) -> Plan:
        by = column if keys is not None else None
        self.reads.setdefault(self._within[-1], {})[relation, by] = None
        return Materializer._fetch(self, relation, schema, column, keys, pairs)
