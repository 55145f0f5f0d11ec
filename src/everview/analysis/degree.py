"""How often a plan can be differentiated before it stops reading state."""

from __future__ import annotations

from math import inf
from typing import assert_never

from everview.plan.nodes import (
    Add,
    Change,
    Distinct,
    Empty,
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
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)


def degree(plan: Plan) -> float:
    """The polynomial degree of `plan` in its stored relations (ring-of-databases Def. 6.3).

    Differentiation lowers a finite degree above zero by one when all relations change (Thm 6.4);
    where only some change, by one at least. What is no polynomial has no finite degree.
    """
    match plan:
        case Empty() | Values() | Change() | Ref():
            return 0
        case Source() | Recursive():
            return 1
        case Filter(child, _) | Map(child, _) | Negate(child) | Totals(child, _, _):
            return degree(child)
        case Unnest(child, _, _, _, _):
            return degree(child)
        case Add(left, right):
            return max(degree(left), degree(right))
        case Join(left, right, _, _):
            return degree(left) + degree(right)
        case Distinct() | Positive() | Groups() | Partition() | Window() | Restrict():
            return inf
        case Fixpoint():
            return inf
        case _:
            assert_never(plan)
