"""A derivative as text: definitions, in which whatever is read more than once has a name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from everview.differentiate.context import Derive, LoopChange
from everview.differentiate.derive import Differentiator
from everview.differentiate.lifting import label, trace_of
from everview.plan.nodes import Change, Plan, Ref
from everview.plan.text import INDENT, print_plan
from everview.plan.traverse import schema_of


@dataclass(slots=True)
class Definitions:
    """The changes that have a name, in the order in which they are needed."""

    named: dict[Plan, Ref] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)

    def emit(self, _: Plan, change: Plan, /) -> Plan:
        """Operators above read the change itself, if they read it once."""
        return change

    def share(self, change: Plan, /) -> Plan:
        """A name for a change, which is its definition; leaves have one already."""
        if isinstance(change, Change | Ref):
            return change
        if change not in self.named:
            self.named[change] = Ref(f"Δ{len(self.named) + 1}", schema_of(change))
            self._define(self.named[change].name, change)
        return self.named[change]

    def follow(self, loop: LoopChange, _: Derive, /) -> dict[Plan, Plan]:
        """A loop defines the changes of its relations, and of what they add up to."""
        relations = ", ".join(each.name for each in loop.relations)
        self.text.append(f"loop {label(loop.node)}, until no change of {relations} is left:")
        for each in loop.relations:
            self._define(f"start of {each.name}", each.start, 1)
            self._define(f"later of {each.name}", each.later, 1)
        sums: dict[Plan, Plan] = {each.sum: each.sums for each in loop.relations}
        return sums | {trace_of(loop.node, r.name): r.changes for r in loop.relations}

    def _define(self, name: str, plan: Plan, depth: int = 0) -> None:
        self.text.append(f"{INDENT * depth}{name} :=\n{print_plan(plan, depth + 1)}")


def print_derivative(
    plan: Plan, changed: Collection[str] | None = None, maps: Collection[Plan] | None = None
) -> str:
    """What is lowered to the steps of a program: definitions, and last the derivative itself."""
    definitions = Definitions()
    derivative = Differentiator(definitions, changed, maps).change(plan)
    return "\n".join((*definitions.text, print_plan(derivative)))
