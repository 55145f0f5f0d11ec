"""Filters as near to the sources as they go; equalities between two sides become join keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.expr.types import INTEGERS, Type
from everview.plan.build import (
    columns_of,
    distinct,
    filter_,
    groups,
    identity,
    join,
    map_,
    negate,
    partition,
    positive,
    project,
    totals,
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
    Output,
    Partition,
    Plan,
    Positive,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import children, schema_of, with_children

Predicates = tuple[str, ...]
Push = Callable[[Plan, Predicates], Plan]
"""Moves predicates into a plan; one that is shared is looked at once for each set of them."""


def push_filters(plan: Plan) -> Plan:
    """σ moved through every operator it commutes with (dbsp Prop. 4.4 for distinct)."""

    @cache
    def push(node: Plan, predicates: Predicates) -> Plan:
        return _pushed(node, predicates, push)

    return push(plan, ())


def _pushed(plan: Plan, predicates: Predicates, push: Push) -> Plan:
    match plan:
        case Filter(child, predicate):
            return push(child, predicates + scalar.conjuncts(predicate))
        case Map(child, outputs):
            inner = {output.name: output.scalar for output in outputs}
            below = tuple(scalar.substitute(p, inner) for p in predicates)
            return map_(push(child, below), outputs)
        case Add(left, right):
            return Add(push(left, predicates), push(right, predicates))
        case Negate(child):
            return negate(push(child, predicates))
        case Distinct(child):
            return distinct(push(child, predicates))
        case Positive(child):
            return positive(push(child, predicates))
        case Groups(Totals(child, keys, measures), _):
            below, above = _split(predicates, keys)
            grouped = groups(totals(push(child, below), keys, measures), keys)
            return filter_(grouped, scalar.conjunction(above))
        case Partition(child, keys, aggregates):
            below, above = _split(predicates, keys)
            made = partition(push(child, below), keys, aggregates)
            return filter_(made, scalar.conjunction(above))
        case Window(child, keys, columns):
            below, above = _split(predicates, keys)
            made = window(push(child, below), keys, columns)
            return filter_(made, scalar.conjunction(above))
        case Unnest(child):
            # A row that stays without elements stays or goes by its own columns alone.
            below, above = _split(predicates, columns_of(child))
            made = replace(plan, child=push(child, below))
            return filter_(made, scalar.conjunction(above))
        case Join():
            return _push_join(plan, predicates, push)
        case _:
            parts = tuple(push(child, ()) for child in children(plan))
            return filter_(with_children(plan, parts), scalar.conjunction(predicates))


def _split(predicates: Predicates, keys: tuple[str, ...]) -> tuple[Predicates, Predicates]:
    """Predicates on whole groups go below; the one group without keys stays whatever happens."""
    below = tuple(p for p in predicates if scalar.columns(p) and scalar.columns(p) <= set(keys))
    return below, tuple(p for p in predicates if p not in below)


@dataclass(slots=True)
class _Parts:
    """The conditions of a join, sorted by what they look at."""

    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)
    on: list[tuple[str, str]] = field(default_factory=list)
    residual: list[str] = field(default_factory=list)
    left_keys: list[Output] = field(default_factory=list)
    right_keys: list[Output] = field(default_factory=list)


def _push_join(node: Join, predicates: Predicates, push: Push) -> Plan:
    inherited = scalar.conjuncts(node.residual) if node.residual else ()
    parts = _Parts(on=list(node.on))
    for predicate in dict.fromkeys(inherited + predicates):
        _place(predicate, node, parts)
    nulls = node.nulls or (not parts.on and _place_null_safe(node, parts))
    left = _with_keys(push(node.left, tuple(parts.left)), parts.left_keys)
    right = _with_keys(push(node.right, tuple(parts.right)), parts.right_keys)
    on, residual = tuple(dict.fromkeys(parts.on)), scalar.conjunction(parts.residual)
    made = join(left, right, on, residual, nulls)
    return project(made, columns_of(node)) if parts.left_keys or parts.right_keys else made


def _with_keys(plan: Plan, keys: list[Output]) -> Plan:
    return map_(plan, identity(schema_of(plan)) + tuple(keys)) if keys else plan


def _place(predicate: str, node: Join, parts: _Parts) -> None:
    used = scalar.columns(predicate)
    if used <= set(columns_of(node.left)):
        parts.left.append(predicate)
    elif used <= set(columns_of(node.right)):
        parts.right.append(predicate)
    elif node.nulls or not _place_key(scalar.equality(predicate), node, parts):
        parts.residual.append(predicate)


def _place_null_safe(node: Join, parts: _Parts) -> bool:
    """Make keys of the residual conditions `a <=> b`; whether there are any."""
    parts.residual = [
        predicate
        for predicate in parts.residual
        if not _place_key(scalar.equality(predicate, nulls=True), node, parts)
    ]
    return bool(parts.on)


def _place_key(equal: tuple[str, str] | None, node: Join, parts: _Parts) -> bool:
    """Make a key of an equality of the two sides, if it is one."""
    sides = equal and _sides(*equal, node)
    if not sides:
        return False
    a = _key(sides[0], parts.left_keys, f"key.{len(parts.on)}.l")
    b = _key(sides[1], parts.right_keys, f"key.{len(parts.on)}.r")
    parts.on.append((a, b))
    return True


def _key(side: tuple[str, Type], computed: list[Output], name: str) -> str:
    text, type_ = side
    plain = scalar.as_column(text)
    if plain is not None:
        return plain
    computed.append(Output(name, type_, text))
    return name


def _sides(first: str, second: str, node: Join) -> tuple[tuple[str, Type], tuple[str, Type]] | None:
    """The expressions of the left and of the right, where both have one known type."""
    left, right = set(columns_of(node.left)), set(columns_of(node.right))
    if not (scalar.columns(first) <= left):
        first, second = second, first
    if not (scalar.columns(first) and scalar.columns(first) <= left):
        return None
    if not (scalar.columns(second) and scalar.columns(second) <= right):
        return None
    a, b = type_of(first, schema_of(node.left)), type_of(second, schema_of(node.right))
    if a is None or b is None or not (a == b or (a in INTEGERS and b in INTEGERS)):
        return None
    return (first, a), (second, b)
