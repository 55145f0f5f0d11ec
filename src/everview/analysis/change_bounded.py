"""Whether a plan is bounded by the change: its size follows that of the change."""

from __future__ import annotations

from functools import lru_cache

from everview.plan.nodes import Change, Empty, Fixpoint, Join, Plan, Ref, Restrict, Source, Values
from everview.plan.traverse import CACHE_SIZE, children


@lru_cache(maxsize=CACHE_SIZE)
def bounded(plan: Plan) -> bool:
    """Whether the size of `plan` follows the size of the change."""
    match plan:
        case Change() | Ref() | Values() | Empty():
            return True
        case Source() | Fixpoint():
            return False
        case Join(left, right, _, _):
            return bounded(left) or bounded(right)
        case Restrict(_, to, _):
            return bounded(to)
        case _:
            return all(bounded(part) for part in children(plan))
