"""The change of mergeable aggregates: a group's new value from its old one and what it gains."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from everview.analysis.sign import Sign, sign
from everview.expr import scalar
from everview.expr.types import is_nested, type_in
from everview.plan.build import (
    add,
    columns_of,
    fresh,
    join,
    map_,
    negate,
    partition,
    positive,
    project,
    restrict_to_keys,
)
from everview.plan.nodes import Aggregate, Output, Partition, Plan
from everview.plan.traverse import schema_of


def is_mergeable(plan: Plan) -> bool:
    """Whether the rows are a bag, and each aggregate of a group follows from those of its parts.

    Without keys there is one group, which any deletion would read whole.
    """
    return _is_over_a_bag(plan) and bool(plan.keys) and all(map(_merges, plan.aggregates))


def is_extremes(plan: Plan) -> bool:
    """Whether the rows are a bag, and all that is asked of a group is least and greatest values."""
    if not _is_over_a_bag(plan) or not plan.aggregates:
        return False
    return all(map(_is_extreme, plan.aggregates))


def _is_over_a_bag(plan: Plan) -> TypeGuard[Partition]:
    return isinstance(plan, Partition) and sign(plan.child) is not Sign.ANY


def merged(node: Partition, d_child: Plan) -> Plan:
    """The groups a change touches, after it: Φ′ₖ(Q ⋉ K + ΔQ + ΦₖQ ⋉ ΔQ − ΦₖQ ⋉ K).

    As Φ(A + B) = Φ′(ΦA + B), the old value of a group that loses nothing stands for its rows. Only
    the rows of the others are read, K = (−ΔQ)⁺.
    """
    old = restrict_to_keys(node, d_child, node.keys)
    return _merged(node, old, _lost(d_child), d_child)


def merged_extremes(node: Partition, d_child: Plan) -> Plan:
    """The same, where a group is read only if it loses a least or greatest value.

    Whatever else is lost is left out of the change.
    """
    lost, old = _lost(d_child), restrict_to_keys(node, d_child, node.keys)
    losing = _reaching(node, old, lost)
    kept = negate(restrict_to_keys(lost, losing, node.keys))
    return _merged(node, old, losing, d_child, lost, kept)


def _lost(d_child: Plan) -> Plan:
    """The rows that a change takes away."""
    return positive(negate(d_child))


def _merged(node: Partition, old: Plan, losing: Plan, *gained: Plan) -> Plan:
    """Groups from what they gain and their old values, or their rows where they are `losing`."""
    known = add(old, negate(restrict_to_keys(old, losing, node.keys)))
    rows = add(restrict_to_keys(node.child, losing, node.keys), *gained)
    return partition(add(map_(rows, _single_groups(node)), known), node.keys, _merging(node))


_EXTREMES = {"max": ">=", "min": "<="}
"""How a value that is the greatest or the least compares with all values of its group."""


def _is_extreme(aggregate: Aggregate) -> bool:
    return aggregate.function in _EXTREMES and not is_nested(aggregate.type)


def _reaching(node: Partition, old: Plan, lost: Plan) -> Plan:
    """Of lost rows, those with a greatest or least value; all, of a group that has none."""
    taken, schema = columns_of(lost), schema_of(node)
    names = {column.name: fresh(f"old {column.name}", taken) for column in schema}
    renamed = tuple(Output(names[c.name], c.type, scalar.column(c.name)) for c in schema)
    tests = []
    for aggregate in node.aggregates:
        value = scalar.column(names[aggregate.name])
        reached = f"{scalar.column(aggregate.column or '')} {_EXTREMES[aggregate.function]} {value}"
        tests.append(f"{value} IS NULL OR {reached}")
    reached = scalar.canonical(" OR ".join(tests))
    on = tuple((key, names[key]) for key in node.keys)
    return project(join(lost, map_(old, renamed), on, reached, nulls=True), taken)


_SETS = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or")
"""Functions of the set of values: f(A ∪ B) = f(f(A), f(B))."""


def _merges(aggregate: Aggregate) -> bool:
    """Whether the aggregate of two bags follows from those of each: least values, counts, sums."""
    if aggregate.function in _SETS:
        return True
    whole = aggregate.function == "sum" and aggregate.type == "bigint"
    return not aggregate.distinct and (whole or aggregate.function == "count")


def _merging(node: Partition) -> tuple[Aggregate, ...]:
    """The same aggregates, of groups that are aggregated already."""
    sums = {a.name: "sum" if a.function == "count" else a.function for a in node.aggregates}
    return tuple(
        replace(a, column=a.name, distinct=False, function=sums[a.name]) for a in node.aggregates
    )


def _single_groups(node: Partition) -> tuple[Output, ...]:
    """Every row of the child as a group of its own."""
    schema = schema_of(node.child)
    kept = (Output(key, type_in(schema, key), scalar.column(key)) for key in node.keys)
    return (*kept, *(Output(a.name, a.type, _single(a)) for a in node.aggregates))


def _single(aggregate: Aggregate) -> str:
    """The aggregate of a group of one row."""
    if aggregate.column is None:
        return scalar.canonical("CAST(1 AS BIGINT)")
    column = scalar.column(aggregate.column)
    match aggregate.function:
        case "count":
            there = f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END"
            return scalar.canonical(f"CAST({there} AS BIGINT)")
        case "sum":
            return scalar.canonical(f"CAST({column} AS BIGINT)")
        case _:
            return column
