"""Derivatives: the rules applied to a plan, operator by operator.

There is one walk over the rules. What becomes of each change is up to a target: it stays part of
one plan (`derive`), it gets a name (`definitions.py`, what explain shows), or it is lowered to
steps (`program/materialize.py`). So what is shown and what is run cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from everview.differentiate.context import Derive, LoopChange
from everview.differentiate.lifting import trace_of
from everview.differentiate.recursion import difference
from everview.differentiate.rules import TOP_K, rule_of
from everview.plan.nodes import Empty, Fixpoint, Plan
from everview.plan.traverse import has_loops, schema_of, sources, walk


def derive(
    plan: Plan, changed: Collection[str] | None = None, maps: Collection[Plan] | None = None
) -> Plan:
    """Δ`plan` when every source R changes by ΔR; a source not in `changed` changes by nothing.

    Q(R + ΔR) = Q(R) + ΔQ(R, ΔR). One plan has no names for what is read more than once, so its
    text can grow exponentially with its depth. The change of a loop is the difference itself. Of
    the maps that products could look up, it reads those in `maps`, all of them if that is None.
    """
    return Differentiator(_Inline(), changed, maps).change(plan)


class Target(Protocol):
    """What changes are written to."""

    def emit(self, operator: Plan, change: Plan, /) -> Plan:
        """The change of an operator, as the operators above it read it."""

    def share(self, change: Plan, /) -> Plan:
        """A change that is read more than once."""

    def follow(self, loop: LoopChange, d: Derive, /) -> dict[Plan, Plan]:
        """The changes of a loop's traced relations, and perhaps of their sums."""


@dataclass(slots=True)
class Differentiator:
    """The changes of plans when the sources in `changed` change; each is taken once."""

    target: Target
    changed: Collection[str] | None = None
    maps: Collection[Plan] | None = None
    known: dict[Plan, Plan] = field(default_factory=dict)

    def change(self, plan: Plan) -> Plan:
        """Δ`plan`, as the target has it."""
        if self.changed is not None and not any(s.name in self.changed for s in sources(plan)):
            return Empty(schema_of(plan))
        if plan not in self.known:
            self._follow_loops(plan)
        if plan not in self.known:
            rule = rule_of(plan)
            made = rule.apply(plan, _Below(self, shared=rule.kind != "linear"))
            made = self.target.emit(plan, made)
            self.known[plan] = self.share(made) if rule is TOP_K else made
        return self.known[plan]

    def share(self, change: Plan) -> Plan:
        """A change that is read more than once; nothing needs no name."""
        return change if isinstance(change, Empty) else self.target.share(change)

    def _follow_loops(self, plan: Plan) -> None:
        """Take the traced loops of a plan first: with one, the change of its sums is known."""
        if has_loops(plan):
            for node in walk(plan):
                if isinstance(node, Fixpoint) and node.traced and node is not plan:
                    self.change(node)


@dataclass(frozen=True, slots=True)
class _Below:
    """Δ for the rule of one operator: any but a linear one reads a change more than once."""

    walk: Differentiator
    shared: bool

    def __call__(self, plan: Plan, /) -> Plan:
        change = self.walk.change(plan)
        return self.walk.share(change) if self.shared else change

    def partial(self, plan: Plan, changed: Collection[str]) -> Plan:
        return derive(plan, changed)

    def keeps(self, plan: Plan, /) -> bool:
        return self.walk.maps is None or plan in self.walk.maps

    def loop(self, change: LoopChange) -> Plan:
        self.walk.known |= self.walk.target.follow(change, self)
        return self.walk.known[change.node]


class _Inline:
    """All in one plan."""

    def emit(self, _: Plan, change: Plan, /) -> Plan:
        return change

    def share(self, change: Plan, /) -> Plan:
        return change

    def follow(self, loop: LoopChange, d: Derive, /) -> dict[Plan, Plan]:
        traces = (trace_of(loop.node, each.name) for each in loop.relations)
        return {trace: difference(trace, d) for trace in traces}
