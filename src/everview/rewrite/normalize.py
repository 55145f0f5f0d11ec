"""One form for what can be written in several: neighbours merged, zeros and identities gone."""

from __future__ import annotations

from everview.plan.build import (
    add,
    distinct,
    filter_,
    groups,
    join,
    map_,
    negate,
    partition,
    positive,
    restrict,
    totals,
    unnest,
    window,
)
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Restrict,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import transform


def normalize(plan: Plan) -> Plan:
    """The plan built again through the smart constructors."""
    return transform(plan, _rebuild)


def _rebuild(node: Plan) -> Plan:
    match node:
        case Filter(child, predicate):
            return filter_(child, predicate)
        case Map(child, outputs):
            return map_(child, outputs)
        case Unnest(child, array, element, position, outer):
            return unnest(child, array, element, position, outer=outer)
        case Add(left, right):
            return add(left, right)
        case Negate(child):
            return negate(child)
        case Join(left, right, on, residual, nulls):
            return join(left, right, on, residual, nulls)
        case Distinct(child):
            return distinct(child)
        case Totals(child, keys, measures):
            return totals(child, keys, measures)
        case Positive(child):
            return positive(child)
        case Groups(child, keys):
            return groups(child, keys)
        case Partition(child, keys, aggregates):
            return partition(child, keys, aggregates)
        case Window(child, keys, columns):
            return window(child, keys, columns)
        case Restrict(child, to, on):
            return restrict(child, to, on)
        case _:
            return node
