"""Outer, semi and anti joins, made of ⋈, δ, + and −."""

from __future__ import annotations

from dataclasses import replace

from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.lang.sql.lower.columns import null_of
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


def semi_join_on(left: Plan, right: Plan, condition: str | None) -> Plan:
    """The rows of `left` that have a partner in `right`: L ⋉ R.

    Where the condition is made of equalities and of conditions on one side, a set of keys of the
    right is enough. Otherwise the rows of the left that occur in the join are.
    """
    keys = _keys_of(left, right, scalar.conjuncts(condition) if condition else ())
    if keys is None:
        return occurring_in(left, inner_join(left, right, condition))
    outputs, ours, theirs, equal = keys
    some = distinct(map_(filter_(right, scalar.conjunction(theirs)), outputs))
    pairs = join(filter_(left, scalar.conjunction(ours)), some)
    return project(filter_(pairs, scalar.conjunction(equal)), columns_of(left))


def semi_join(plan: Plan, keys: Plan) -> Plan:
    """The rows of `plan` that occur in `keys`, a set over some of its columns; NULL equals NULL."""
    mark = "partner."
    theirs = map_(keys, tuple(replace(o, name=mark + o.name) for o in identity(schema_of(keys))))
    pairs = tuple((name, mark + name) for name in columns_of(keys))
    return project(join(plan, theirs, pairs, nulls=True), columns_of(plan))


def occurring_in(left: Plan, pairs: Plan) -> Plan:
    """The rows of `left` that occur in `pairs`, which has its columns and others."""
    return semi_join(left, distinct(project(pairs, columns_of(left))))


def anti_join_on(left: Plan, right: Plan, condition: str | None) -> Plan:
    """The rows of `left` that have no partner in `right`: L ▷ R = L − L ⋉ R."""
    return add(left, negate(semi_join_on(left, right, condition)))


def outer_join(left: Plan, right: Plan, condition: str | None, side: str) -> Plan:
    """LEFT, RIGHT and FULL: the pairs, and the rows without a partner beside NULLs."""
    joined = inner_join(left, right, condition)
    if side in ("LEFT", "FULL"):
        joined = add(joined, padded_with_nulls(anti_join_on(left, right, condition), joined))
    if side in ("RIGHT", "FULL"):
        joined = add(joined, padded_with_nulls(anti_join_on(right, left, condition), joined))
    return joined


def padded_with_nulls(plan: Plan, like: Plan) -> Plan:
    """The rows of `plan` with the columns of `like`, NULL where they have none of that name."""
    own = {output.name: output for output in identity(schema_of(plan))}
    outputs = tuple(
        own.get(column.name) or Output(column.name, column.type, null_of(column.type))
        for column in schema_of(like)
    )
    return map_(plan, outputs)


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
