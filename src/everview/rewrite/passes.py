"""The meaning-preserving passes, in the order they run."""

from __future__ import annotations

from collections.abc import Callable

from everview.plan.nodes import Plan
from everview.rewrite.distinct import eliminate_distinct
from everview.rewrite.join_order import order_joins
from everview.rewrite.loop_normal_form import flatten_loops
from everview.rewrite.normalize import normalize
from everview.rewrite.plain_equality import plain_equality
from everview.rewrite.preaggregate import preaggregate
from everview.rewrite.prune import prune_columns
from everview.rewrite.pushdown import push_filters
from everview.rewrite.shorten_order import shorten_orders

PASSES: tuple[Callable[[Plan], Plan], ...] = (
    normalize,
    order_joins,
    push_filters,
    eliminate_distinct,
    shorten_orders,
    prune_columns,
    preaggregate,
    plain_equality,
    flatten_loops,
    normalize,
)


def rewrite(plan: Plan) -> Plan:
    """The same relation, by a plan that is cheaper to maintain."""
    for simplify in PASSES:
        plan = simplify(plan)
    return plan
