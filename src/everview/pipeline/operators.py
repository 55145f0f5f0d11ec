"""How each operator of a view is kept fresh: by which law, with what state, reading how much."""

from __future__ import annotations

from dataclasses import dataclass, field

from everview.differentiate.fixpoint import label, trace_of
from everview.differentiate.rules import FIRST_ROWS, rule_of
from everview.pipeline.prices import Known
from everview.plan.nodes import Fixpoint, Plan, Ref, Source
from everview.plan.text import INDENT, print_plan
from everview.plan.traverse import children, sources
from everview.plan.types import Schema
from everview.program.materialize import Materializer
from everview.program.states import States


def explain_operators(view: str, plan: Plan, states: States, known: Known) -> str:
    """The operators of a view, each with its law and what it reads for a change."""
    reading = _Reading(states)
    reading.change(plan)
    unique = {source.name: source.key for source in sources(plan)}

    def shown(node: Plan, depth: int, covered: bool = False) -> list[str]:
        rule = rule_of(node)
        notes = [] if covered else [f"{rule.kind}: {rule.law}"]
        if isinstance(node, Fixpoint):
            notes.append(known.of_loop(label(node), node.names))
        reader = trace_of(node, node.result) if isinstance(node, Fixpoint) else node
        for relation, by in reading.reads.get(reader, {}):
            kept = relation in states.stored
            notes.append(known.of_reading(relation, by, kept, unique.get(relation, ())))
        both = rule is FIRST_ROWS
        below = (line for child in children(node) for line in shown(child, depth + 1, both))
        margin = INDENT * depth
        return [margin + _title(node), *(f"{margin}{INDENT}-- {each}" for each in notes), *below]

    every = {each: None for reads in reading.reads.values() for each in reads}
    return "\n".join((f"-- {view}: {known.of_all(every)}", *shown(plan, 0)))


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


def _title(node: Plan) -> str:
    first = print_plan(node).partition("\n")[0]
    return f'Source "{node.name}"' if isinstance(node, Source) else first


@dataclass(slots=True)
class _Reading(Materializer):
    """A lowering that remembers which operator reads which relation, by which column."""

    reads: dict[Plan, dict[tuple[str, str | None], None]] = field(default_factory=dict)
    _within: list[Plan] = field(default_factory=list)

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
        key: str | None,
    ) -> Plan:
        by = column if keys is not None else None
        self.reads.setdefault(self._within[-1], {})[relation, by] = None
        return Materializer._fetch(self, relation, schema, column, keys, key)
