"""Materializes derivatives: each change that is read more than once becomes a step of a program."""

from __future__ import annotations

from collections.abc import Collection

from everview.differentiate.context import Derive, LoopChange
from everview.differentiate.derive import Differentiator
from everview.plan.nodes import Plan
from everview.program.loops import lower_loop
from everview.program.lowering import Lowering
from everview.program.policy import FIRST_ORDER


class Materializer:
    """Takes derivatives and lowers them to steps, operator by operator.

    The change of what a join, a distinct or a group reads is a step of its own, however often the
    rule reads it. So the size of a program follows the size of the query, and not its depth.
    """

    def __init__(
        self, lowering: Lowering, changed: Collection[str] | None = None, *, stored: bool = True
    ) -> None:
        self._lowering = lowering
        self._stored = stored
        self._derivatives = Differentiator(self, changed, lowering.arrangements.maps)

    def change(self, plan: Plan) -> Plan:
        """Δ`plan` over changes, slices and results, when the relations in `changed` change."""
        return self._derivatives.change(plan)

    def emit(self, operator: Plan, change: Plan, /) -> Plan:
        """The change of an operator, lowered: what it looks up, it looks up for that operator."""
        self._lowering.operator, self._lowering.stores = operator, self._stored
        return self._lowering.lower(change)

    def share(self, change: Plan, /) -> Plan:
        """The change as a step."""
        return self._lowering.compute(change)

    def follow(self, loop: LoopChange, _: Derive, /) -> dict[Plan, Plan]:
        """The change of a loop as a step that goes through its iterations."""
        self._lowering.operator, self._lowering.stores = loop.node, True
        return lower_loop(self._lowering, loop)


class Policies:
    """The changes of views under their policies, lowered to the steps of one program.

    Under `first-order` nothing is stored that can be computed from the tables. The other two read
    what is stored, and differ in the form of their plans.
    """

    def __init__(self, lowering: Lowering, changed: Collection[str] | None = None) -> None:
        self._storing = Materializer(lowering, changed)
        self._computing = Materializer(lowering, changed, stored=False)

    def change(self, plan: Plan, policy: str) -> Plan:
        """Δ`plan` over changes, slices and results."""
        own = self._computing if policy == FIRST_ORDER else self._storing
        return own.change(plan)
