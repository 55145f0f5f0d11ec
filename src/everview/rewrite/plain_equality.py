"""Null-safe joins as plain ones, where a side of each pair of columns is never NULL."""

from __future__ import annotations

from everview.analysis.never_null import never_null
from everview.plan.build import join
from everview.plan.nodes import Join, Plan
from everview.plan.traverse import transform


def plain_equality(plan: Plan) -> Plan:
    """The same relation: a value equals no NULL, so NULL need not equal NULL there.

    Joins with subqueries are null-safe as they are lowered; plain ones can be split into factors.
    """
    return transform(plan, _plain)


def _plain(node: Plan) -> Plan:
    match node:
        case Join(left, right, on, residual, True):
            known = never_null(left) | never_null(right)
            if on and all(known & {*pair} for pair in on):
                return join(left, right, on, residual)
            return node
        case _:
            return node
