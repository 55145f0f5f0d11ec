"""Joins that keep rows without a partner, or only ask for one: all made of ⋈, δ, + and −."""

from __future__ import annotations

from everview.expr import scalar
from everview.expr.typing import type_of
from everview.lang.sql.lower.columns import with_partner
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    identity,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


def inner_join(left: Plan, right: Plan, condition: str | None) -> Plan:
    """Pairs of rows that satisfy the condition."""
    return filter_(join(left, right), condition)


def matched(left: Plan, right: Plan, condition: str | None) -> Plan:
    """The rows of `left` that have a partner in `right`: L ⋉ R.

    Where the condition is made of equalities and of conditions on one side, a set of keys of the
    right is enough. Otherwise the rows of the left that occur in the join are.
    """
    keys = _keys_of(left, right, scalar.conjuncts(condition) if condition else ())
    if keys is None:
        return paired(left, inner_join(left, right, condition))
    outputs, ours, theirs, equal = keys
    some = distinct(map_(filter_(right, scalar.conjunction(theirs)), outputs))
    found = filter_(join(filter_(left, scalar.conjunction(ours)), some), scalar.conjunction(equal))
    return project(found, columns_of(left))


def paired(left: Plan, pairs: Plan) -> Plan:
    """The rows of `left` that occur in `pairs`, which has its columns and others."""
    return with_partner(left, distinct(project(pairs, columns_of(left))))


def unmatched(left: Plan, right: Plan, condition: str | None) -> Plan:
    """The rows of `left` that have no partner in `right`: L ▷ R = L − L ⋉ R."""
    return add(left, negate(matched(left, right, condition)))


def outer_join(left: Plan, right: Plan, condition: str | None, side: str) -> Plan:
    """LEFT, RIGHT and FULL: the pairs, and the rows without a partner beside NULLs."""
    found = inner_join(left, right, condition)
    if side in ("LEFT", "FULL"):
        found = add(found, beside_nulls(unmatched(left, right, condition), found))
    if side in ("RIGHT", "FULL"):
        found = add(found, beside_nulls(unmatched(right, left, condition), found))
    return found


def beside_nulls(plan: Plan, like: Plan) -> Plan:
    """The rows of `plan` with the columns of `like`, NULL where they have none of that name."""
    own = {output.name: output for output in identity(schema_of(plan))}
    outputs = tuple(
        own.get(column.name) or Output(column.name, column.type, null_of(column.type))
        for column in schema_of(like)
    )
    return map_(plan, outputs)


def null_of(type_: str) -> str:
    """NULL of a type."""
    return "NULL" if type_ == "void" else scalar.canonical(f"CAST(NULL AS {type_})")


def _keys_of(
    left: Plan, right: Plan, conditions: tuple[str, ...]
) -> tuple[tuple[Output, ...], list[str], list[str], list[str]] | None:
    """The key columns of the right, the conditions on either side, and the equalities of both."""
    ours, theirs = set(columns_of(left)), set(columns_of(right))
    outputs: list[Output] = []
    on_left: list[str] = []
    on_right: list[str] = []
    equal: list[str] = []
    for condition in conditions:
        used = scalar.columns(condition)
        if used <= ours:
            on_left.append(condition)
        elif used <= theirs:
            on_right.append(condition)
        else:
            sides = scalar.equality(condition)
            if sides is None:
                return None
            mine, other = sides if scalar.columns(sides[0]) <= ours else sides[::-1]
            type_ = type_of(other, schema_of(right))
            if not (scalar.columns(mine) <= ours and scalar.columns(other) <= theirs) or not type_:
                return None
            name = f"partner.{len(outputs)}"
            outputs.append(Output(name, type_, other))
            equal.append(scalar.canonical(f"{mine} = {scalar.column(name)}"))
    return tuple(outputs), on_left, on_right, equal
