"""Distincts that change nothing, removed."""

from __future__ import annotations

from everview.analysis.keys import is_set
from everview.analysis.sign import Sign, sign
from everview.plan.build import distinct
from everview.plan.nodes import Add, Distinct, Filter, Join, Map, Plan, Unnest
from everview.plan.traverse import children, transform, with_children


def eliminate_distinct(plan: Plan) -> Plan:
    """One distinct at the end of a chain is enough (dbsp Prop. 4.5), and none on a set."""
    return transform(plan, _simplify)


def _simplify(node: Plan) -> Plan:
    if not isinstance(node, Distinct):
        return node
    # The proposition is about positive operators: distinct(distinct(i) − j) keeps its inner one.
    positive = sign(node.child) <= Sign.POSITIVE
    child = _without_inner(node.child) if positive else node.child
    return child if is_set(child) else distinct(child)


def _without_inner(plan: Plan) -> Plan:
    """distinct(Q(distinct(i))) = distinct(Q(i)) for positive i and Q of σ, π, μ, +, ⋈."""
    match plan:
        case Distinct(child) if sign(child) <= Sign.POSITIVE:
            return _without_inner(child)
        case Filter() | Map() | Unnest() | Add() | Join():
            parts = tuple(_without_inner(child) for child in children(plan))
            return with_children(plan, parts)
        case _:
            return plan
