"""Join order: each join gets a key where the written order would make a product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce

from everview.expr import scalar
from everview.plan.build import columns_of, filter_, join, project
from everview.plan.nodes import Filter, Join, Plan
from everview.plan.traverse import children, with_children


def order_joins(plan: Plan) -> Plan:
    """The same joins, each relation after one that it has an equality with, as far as that goes."""

    @cache
    def order(node: Plan) -> Plan:
        return _ordered(node, order)

    return order(plan)


def _ordered(plan: Plan, order_joins: Callable[[Plan], Plan]) -> Plan:
    parts: list[Plan] = []
    conditions: list[str] = []
    _flatten(plan, parts, conditions)
    if len(parts) > 2:
        order = _connected(parts, conditions)
        if _products(order, conditions) < _products(parts, conditions):
            joined = reduce(join, map(order_joins, order))
            return project(filter_(joined, scalar.conjunction(conditions)), columns_of(plan))
    fresh = tuple(order_joins(part) for part in children(plan))
    return with_children(plan, fresh) if fresh else plan


def _flatten(plan: Plan, parts: list[Plan], conditions: list[str]) -> None:
    """Nested joins as the relations they join, in order, and all their conditions."""
    match plan:
        case Filter(Join(nulls=False) as child, predicate):
            _flatten(child, parts, conditions)
            conditions += scalar.conjuncts(predicate)
        case Join(left, right, on, residual, nulls=False):
            _flatten(left, parts, conditions)
            _flatten(right, parts, conditions)
            keys = (f"{scalar.column(one)} = {scalar.column(other)}" for one, other in on)
            conditions += map(scalar.canonical, keys)
            conditions += scalar.conjuncts(residual) if residual else ()
        case _:
            parts.append(plan)


def _connected(parts: Sequence[Plan], conditions: Sequence[str]) -> list[Plan]:
    """Each after one that it has a key with, if there is one; else as they are written."""
    order, left = [parts[0]], list(parts[1:])
    while left:
        known = _columns(order)
        follows = (part for part in left if _has_key(known, set(columns_of(part)), conditions))
        chosen = next(follows, left[0])
        left.remove(chosen)
        order.append(chosen)
    return order


def _products(order: Sequence[Plan], conditions: Sequence[str]) -> int:
    """How many relations are joined with those before them without a key."""
    known = (_columns(order[:count]) for count in range(1, len(order)))
    pairs = zip(known, order[1:], strict=True)
    return sum(not _has_key(each, set(columns_of(part)), conditions) for each, part in pairs)


def _columns(parts: Sequence[Plan]) -> set[str]:
    return {name for part in parts for name in columns_of(part)}


def _has_key(known: set[str], fresh: set[str], conditions: Sequence[str]) -> bool:
    """Whether a condition sets something of one side equal to something of the other."""
    for condition in conditions:
        sides = [scalar.columns(side) for side in scalar.equality(condition) or ()]
        for one, other in zip(sides, reversed(sides), strict=True):
            if one and other and one <= known and other <= fresh:
                return True
    return False
