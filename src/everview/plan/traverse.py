"""Walking a plan: its schema, its children, and the same plan over other children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import assert_never

from everview.expr.types import ITERATION, Column, Schema, type_in
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

CACHE_SIZE = 16_384
"""The number of plans for which the answer to a question about plans is remembered."""
TREE_MAX_NODES = 2_000
"""A plan with more operators, written out as a tree, is treated as the graph that it is."""


@lru_cache(maxsize=CACHE_SIZE)
def schema_of(plan: Plan) -> Schema:
    """The columns of the rows of `plan`, without the weight."""
    match plan:
        case Empty() | Values() | Source() | Change() | Ref() | Recursive():
            return plan.schema
        case Fixpoint(result, _, _, traced):
            came = (Column(ITERATION, "int"),) if traced else ()
            return schema_of(plan.body(result)) + came
        case Filter() | Negate() | Distinct() | Positive() | Restrict() | Groups():
            return schema_of(plan.child)
        case Add():
            return schema_of(plan.left)
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


@lru_cache(maxsize=CACHE_SIZE)
def children(plan: Plan) -> tuple[Plan, ...]:
    """The plans that `plan` is computed from, left to right."""
    match plan:
        case Empty() | Values() | Source() | Change() | Ref() | Recursive():
            return ()
        case Fixpoint(_, equations, _, _):
            return tuple(body for _, body in equations)
        case Filter() | Map() | Unnest() | Negate() | Distinct() | Positive():
            return (plan.child,)
        case Totals() | Groups() | Partition() | Window():
            return (plan.child,)
        case Add() | Join():
            return (plan.left, plan.right)
        case Restrict():
            return (plan.child, plan.to)
        case _:
            assert_never(plan)


def with_children(plan: Plan, parts: tuple[Plan, ...]) -> Plan:
    """The same operator over other children."""
    match plan:
        case Empty() | Values() | Source() | Change() | Ref() | Recursive():
            return plan
        case Fixpoint():
            return replace(plan, equations=tuple(zip(plan.names, parts, strict=True)))
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
    """`rule` applied to every node, the leaves first.

    Equal plans are one object, and a plan that is shared is visited once: as a tree, the same plan
    can be thousands of times as large.
    """
    made: dict[Plan, Plan] = {}

    def visit(node: Plan) -> Plan:
        if node not in made:
            parts = children(node)
            fresh = tuple(map(visit, parts))
            made[node] = rule(with_children(node, fresh) if fresh != parts else node)
        return made[node]

    return visit(plan)


@lru_cache(maxsize=CACHE_SIZE)
def tree_size(plan: Plan) -> int:
    """How many operators a plan has when it is written out as a tree."""
    return 1 + sum(map(tree_size, children(plan)))


def walk(plan: Plan) -> Iterator[Plan]:
    """Every node of the plan, the root first, and one that is shared only once."""
    seen, waiting = {plan}, [plan]
    while waiting:
        node = waiting.pop()
        yield node
        fresh = [part for part in dict.fromkeys(children(node)) if part not in seen]
        seen.update(fresh)
        waiting += reversed(fresh)


@lru_cache(maxsize=CACHE_SIZE)
def sources(plan: Plan) -> tuple[Source, ...]:
    """The stored relations that `plan` reads, each once, in order of appearance."""
    if isinstance(plan, Source):
        return (plan,)
    return tuple(dict.fromkeys(found for part in children(plan) for found in sources(part)))


@lru_cache(maxsize=CACHE_SIZE)
def referred(plan: Plan) -> tuple[Ref, ...]:
    """The relations of earlier steps that `plan` reads, each once."""
    return tuple({node.name: node for node in walk(plan) if isinstance(node, Ref)}.values())


@lru_cache(maxsize=CACHE_SIZE)
def reads_change(plan: Plan) -> bool:
    """Whether `plan` depends on the transaction and not on stored relations alone."""
    return isinstance(plan, Change | Ref) or any(map(reads_change, children(plan)))


@lru_cache(maxsize=CACHE_SIZE)
def recurs(plan: Plan) -> frozenset[str]:
    """The relations of fixpoints around `plan` that it reads."""
    if isinstance(plan, Recursive):
        return frozenset((plan.name,))
    found = frozenset[str]().union(*map(recurs, children(plan)))
    return found - {*plan.names} if isinstance(plan, Fixpoint) else found


@lru_cache(maxsize=CACHE_SIZE)
def has_loops(plan: Plan) -> bool:
    """Whether the plan has fixpoints in it."""
    return isinstance(plan, Fixpoint) or any(map(has_loops, children(plan)))


def loop_free(plan: Plan) -> tuple[Plan, ...]:
    """The bodies of the loops in a plan, and what is left of it with names in their places."""
    if not has_loops(plan):
        return (plan,)
    found: list[Plan] = []

    def named(node: Plan) -> Plan:
        if not isinstance(node, Fixpoint):
            return node
        found.extend(body for _, body in node.equations)
        return Recursive(node.result, schema_of(node))

    left = transform(plan, named)
    return (*found, left)
