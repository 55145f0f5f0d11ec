"""Distincts that change nothing, removed."""

from __future__ import annotations

from functools import cache

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

    @cache
    def without(node: Plan) -> Plan:
        match node:
            case Distinct(child) if sign(child) <= Sign.POSITIVE:
                return without(child)
            case Filter() | Map() | Unnest() | Add() | Join():
                return with_children(node, tuple(map(without, children(node))))
            case _:
                return node

    return without(plan)
