"""The sign of a plan: which weights it can have, none, positive ones, or any."""

from __future__ import annotations

from enum import IntEnum
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


class Sign(IntEnum):
    """Ordered by what is possible, so that combining two signs is `max`."""

    ZERO = 0
    POSITIVE = 1
    ANY = 2


def sign(plan: Plan) -> Sign:
    """The weights that occur: ZERO none, POSITIVE a bag (dbsp Def. 4.2), ANY both signs."""
    match plan:
        case Empty():
            return Sign.ZERO
        case Values() | Source() | Recursive():
            return Sign.POSITIVE
        case Change() | Ref():
            return Sign.ANY
        case Filter(child, _) | Map(child, _) | Restrict(child, _, _) | Totals(child, _, _):
            return sign(child)
        case Unnest(child, _, _, _, _):
            return sign(child)
        case Add(left, right):
            return max(sign(left), sign(right))
        case Negate(child):
            return Sign.ZERO if sign(child) is Sign.ZERO else Sign.ANY
        case Join(left, right, _, _):
            both = (sign(left), sign(right))
            return Sign.ZERO if Sign.ZERO in both else max(both)
        case Distinct() | Positive() | Groups() | Partition() | Window():
            return Sign.POSITIVE
        case Fixpoint(result, _, _, traced):
            return Sign.ANY if traced else sign(plan.body(result))
        case _:
            assert_never(plan)
