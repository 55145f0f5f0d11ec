"""The normal form of loops: a body has a distinct at the top, or none at all."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from everview.expr.types import BEGUN
from everview.plan.build import distinct
from everview.plan.nodes import Distinct, Fixpoint, Plan, Recursive
from everview.plan.traverse import children, recurs, schema_of, transform, with_children


def flatten_loops(plan: Plan) -> Plan:
    """Every loop of a plan in normal form."""
    return transform(plan, lambda node: flattened(node) if isinstance(node, Fixpoint) else node)


def flattened(node: Fixpoint) -> Fixpoint:
    """The same loop with an equation of its own for every distinct inside a body.

    Each of these comes one iteration later then: what is reached in the end is the same, unless it
    is a while-program, whose every state counts.
    """
    if BEGUN in node.names:
        return node
    equations: dict[str, Plan] = {}
    numbers = count(1)

    def named(plan: Plan) -> Plan:
        if not recurs(plan):
            return plan
        made = with_children(plan, tuple(map(named, children(plan))))
        if not isinstance(made, Distinct):
            return made
        known = next((n for n, body in equations.items() if body == made and "/" in n), None)
        name = known or f"{node.result}/{next(numbers)}"
        equations[name] = made
        return Recursive(name, schema_of(made))

    for name, body in node.equations:
        if isinstance(body, Distinct):
            equations[name] = distinct(named(body.child))
        else:
            equations[name] = named(body)
    return replace(node, equations=tuple(equations.items()))
