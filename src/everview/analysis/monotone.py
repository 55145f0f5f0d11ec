"""Whether a plan is monotone in the relation it recurses through: more rows in, no fewer out.

A recursion has a least fixpoint, reached by adding rows, only where this holds.
"""

from __future__ import annotations

from everview.expr import scalar
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Recursive,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import children, recurs

_NOT_MONOTONE: dict[type[Plan], str] = {
    Totals: "an aggregate or a negation",
    Groups: "an aggregate or a negation",
    Partition: "an aggregate or a negation",
    Window: "a window function or LIMIT",
    Positive: "EXCEPT ALL or INTERSECT ALL",
    Negate: "a negation",
    Fixpoint: "another recursion",
}
_MONOTONE = (Filter, Map, Unnest, Add, Join, Distinct, Recursive)


def not_monotone(plan: Plan, is_set: bool) -> str:
    """The construct on the way to the recursion that is not monotone; empty if all are.

    `is_set` says that a distinct stands above `plan`. Without it rows are counted, and a join of
    the recursion with itself is refused too.
    """
    if not recurs(plan):
        return ""
    if type(plan) in _NOT_MONOTONE:
        return _NOT_MONOTONE[type(plan)]
    if not isinstance(plan, _MONOTONE):
        return type(plan).__name__
    if isinstance(plan, Add) and isinstance(plan.right, Negate) and recurs(plan.right):
        # L − σ(L) keeps some rows of L, so it is monotone: that is how an anti join is written.
        is_filter = _is_subset(plan.right.child, plan.left)
        return not_monotone(plan.left, is_set) if is_filter else "a negation"
    self_join = isinstance(plan, Join) and bool(recurs(plan.left) and recurs(plan.right))
    if not is_set and (self_join or isinstance(plan, Distinct)):
        # Spark joins what one level added with itself alone.
        return "a join with itself or a DISTINCT, which UNION ALL would count by levels"
    return next((why for part in children(plan) if (why := not_monotone(part, is_set))), "")


def _is_subset(part: Plan, whole: Plan) -> bool:
    """Whether `part` is `whole` after filters and joins with relations that do not recurse."""
    if part == whole:
        return True
    match part, whole:
        case Filter(child, more), Filter(same, some) if child == same:
            return {*scalar.conjuncts(some)} <= {*scalar.conjuncts(more)}
        case Filter(child), _:
            return _is_subset(child, whole)
        case Map(child, outputs), _:
            unchanged = all(each.scalar == scalar.column(each.name) for each in outputs)
            return unchanged and _is_subset(child, whole)
        case Join(left, right), _:
            recursive = [side for side in (left, right) if recurs(side)]
            return len(recursive) == 1 and _is_subset(recursive[0], whole)
        case _:
            return False
