"""Walking a plan: its schema, its children, and the same plan over other children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from everview.plan.nodes import (
    Add,
    Change,
    Distinct,
    Empty,
    Filter,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.types import Column, Schema, type_in


def schema_of(plan: Plan) -> Schema:
    """The columns of the rows of `plan`, without the weight."""
    match plan:
        case Empty(schema) | Values(schema, _) | Source(_, schema, _) | Change(_, schema):
            return schema
        case Ref(_, schema):
            return schema
        case Filter(child, _) | Negate(child) | Distinct(child) | Positive(child):
            return schema_of(child)
        case Restrict(child, _, _):
            return schema_of(child)
        case Groups(child, _) | Add(child, _):
            return schema_of(child)
        case Map(_, outputs):
            return tuple(Column(output.name, output.type) for output in outputs)
        case Unnest(child, _, element, position, _):
            counted = (Column(position, "int"),) if position else ()
            return (*schema_of(child), *counted, element)
        case Join(left, right, _, _):
            return schema_of(left) + schema_of(right)
        case Totals(child, keys, measures):
            return _keyed(child, keys) + tuple(Column(m.name, m.type) for m in measures)
        case Partition(child, keys, aggregates):
            return _keyed(child, keys) + tuple(Column(a.name, a.type) for a in aggregates)
        case Window(child, _, columns):
            return schema_of(child) + tuple(Column(c.name, c.type) for c in columns)
        case _:
            assert_never(plan)


def _keyed(child: Plan, keys: tuple[str, ...]) -> Schema:
    schema = schema_of(child)
    return tuple(Column(key, type_in(schema, key)) for key in keys)


def children(plan: Plan) -> tuple[Plan, ...]:
    """The plans that `plan` is computed from, left to right."""
    match plan:
        case Empty() | Values() | Source() | Change() | Ref():
            return ()
        case Filter(child, _) | Map(child, _) | Negate(child) | Distinct(child) | Positive(child):
            return (child,)
        case Unnest(child, _, _, _, _):
            return (child,)
        case Totals(child, _, _) | Groups(child, _) | Partition(child, _, _) | Window(child, _, _):
            return (child,)
        case Add(left, right) | Join(left, right, _, _) | Restrict(left, right, _):
            return (left, right)
        case _:
            assert_never(plan)


def with_children(plan: Plan, parts: tuple[Plan, ...]) -> Plan:
    """The same operator over other children."""
    match plan:
        case Empty() | Values() | Source() | Change() | Ref():
            return plan
        case Filter() | Map() | Unnest() | Negate() | Distinct() | Positive():
            return replace(plan, child=parts[0])
        case Totals() | Groups() | Partition() | Window():
            return replace(plan, child=parts[0])
        case Add() | Join():
            return replace(plan, left=parts[0], right=parts[1])
        case Restrict():
            return replace(plan, child=parts[0], to=parts[1])
        case _:
            assert_never(plan)


def transform(plan: Plan, rule: Callable[[Plan], Plan]) -> Plan:
    """`rule` applied to every node, the leaves first."""
    parts = children(plan)
    fresh = tuple(transform(part, rule) for part in parts)
    return rule(with_children(plan, fresh) if fresh != parts else plan)


def walk(plan: Plan) -> Iterator[Plan]:
    """Every node of the plan, the root first."""
    yield plan
    for part in children(plan):
        yield from walk(part)


def sources(plan: Plan) -> tuple[Source, ...]:
    """The stored relations that `plan` reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(node for node in walk(plan) if isinstance(node, Source)))


def reads_change(plan: Plan) -> bool:
    """Whether `plan` depends on the transaction and not on stored relations alone."""
    return any(isinstance(node, Change | Ref) for node in walk(plan))
