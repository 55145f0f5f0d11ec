"""Aggregates of a whole that follow from those of its parts."""

from __future__ import annotations

from dataclasses import replace

from everview.plan import scalar
from everview.plan.nodes import Aggregate, Output, Partition
from everview.plan.traverse import schema_of
from everview.plan.types import type_in

_SETS = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or")
"""Functions of the set of values: f(A ∪ B) = f(f(A), f(B))."""


def merges(aggregate: Aggregate) -> bool:
    """Whether the aggregate of two bags follows from those of each: least values, counts, sums."""
    if aggregate.function in _SETS:
        return True
    whole = aggregate.function == "sum" and aggregate.type == "bigint"
    return not aggregate.distinct and (whole or aggregate.function == "count")


def merging(node: Partition) -> tuple[Aggregate, ...]:
    """The same aggregates, of groups that are aggregated already."""
    sums = {a.name: "sum" if a.function == "count" else a.function for a in node.aggregates}
    return tuple(
        replace(a, column=a.name, distinct=False, function=sums[a.name]) for a in node.aggregates
    )


def single_groups(node: Partition) -> tuple[Output, ...]:
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
