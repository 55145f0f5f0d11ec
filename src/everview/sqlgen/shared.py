"""Common subplans: which parts of a plan are written once, so that its SQL stays short.

Equal plans are one object. Written out as a tree, a plan that is shared on every level is
exponentially long: five operators on each of ten levels can be millions.
"""

from __future__ import annotations

from functools import lru_cache

from everview.plan.nodes import Plan
from everview.plan.traverse import CACHE_SIZE, TREE_MAX_NODES, children, tree_size, walk


@lru_cache(maxsize=CACHE_SIZE)
def shared_parts(plan: Plan) -> tuple[Plan, ...]:
    """The parts that occur more than once in a large plan, each after those inside it."""
    if tree_size(plan) <= TREE_MAX_NODES:
        return ()
    uses: dict[Plan, int] = {}
    for node in walk(plan):
        for part in children(node):
            uses[part] = uses.get(part, 0) + 1
    often = (part for part, count in uses.items() if count > 1 and children(part))
    return tuple(sorted(often, key=tree_size))
