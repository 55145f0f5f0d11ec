"""Columns nobody reads, dropped as early as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from everview.expr import scalar
from everview.plan.build import columns_of, filter_, map_, project
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Source,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import schema_of, with_children

Prune = Callable[[Plan, frozenset[str]], Plan]
"""Drops columns of a plan; one that is shared is looked at once for each set of them."""


def prune_columns(plan: Plan) -> Plan:
    """The same relation, computed from the columns it depends on.

    Groups and windows must be over rows that are there: with fewer columns, one that is missing
    could cancel another.
    """

    @cache
    def prune(node: Plan, needed: frozenset[str]) -> Plan:
        return _pruned(node, needed, prune)

    return prune(plan, frozenset(columns_of(plan)))


def _pruned(plan: Plan, needed: frozenset[str], prune: Prune) -> Plan:
    """`plan` with the columns in `needed`, in the order they had; a source keeps all it has."""
    match plan:
        case Source():
            return plan
        case Filter(child, predicate):
            return _filtered(prune(child, needed | scalar.columns(predicate)), predicate, needed)
        case Map(child, outputs):
            kept = tuple(output for output in outputs if output.name in needed)
            return map_(prune(child, _used(output.scalar for output in kept)), kept)
        case Unnest(child, array, element, position, _):
            own = needed - {element.name, position} | scalar.columns(array)
            counted = position if position in needed else ""
            return _only(replace(plan, child=prune(child, own), position=counted), needed)
        case Add(left, right):
            # A source that keeps all it has is not like what it is added to.
            left, right = prune(left, needed), prune(right, needed)
            return Add(_only(left, needed), _only(right, needed))
        case Negate(child):
            return Negate(prune(child, needed))
        case Join(left, right, on, residual, nulls):
            wanted = needed | (scalar.columns(residual) if residual else frozenset())
            a = wanted & frozenset(columns_of(left)) | {key for key, _ in on}
            b = wanted & frozenset(columns_of(right)) | {key for _, key in on}
            ours, theirs = prune(left, a), prune(right, b)
            if not b and _is_one_row(theirs):
                return _only(filter_(ours, residual), needed)
            if not a and _is_one_row(ours):
                return _only(filter_(theirs, residual), needed)
            return _only(Join(ours, theirs, on, residual, nulls), needed)
        case Positive(child):
            return _only(Positive(prune(child, frozenset(columns_of(child)))), needed)
        case Distinct(child):
            return _only(Distinct(prune(child, frozenset(columns_of(child)))), needed)
        case Groups(Totals(child, keys, measures), _):
            kept_measures = tuple(m for m in measures if m.name in needed)
            read = frozenset(keys) | {name for m in kept_measures for name in m.reads}
            return _only(Groups(Totals(prune(child, read), keys, kept_measures), keys), needed)
        case Partition(child, keys, aggregates):
            kept_aggregates = tuple(a for a in aggregates if a.name in needed)
            read = frozenset(keys).union(*(a.arguments for a in kept_aggregates))
            read |= {order.column for a in kept_aggregates for order in a.order}
            return _only(Partition(prune(child, read), keys, kept_aggregates), needed)
        case Window(child, keys, columns):
            kept_columns = tuple(c for c in columns if c.name in needed)
            own = needed & frozenset(columns_of(child)) | frozenset(keys)
            for column in kept_columns:
                own |= {order.column for order in column.order} | _used(column.arguments)
            return _only(Window(prune(child, own), keys, kept_columns), needed)
        case Fixpoint():
            bodies = tuple(prune_columns(body) for _, body in plan.equations)
            return _only(with_children(plan, bodies), needed)
        case _:
            return _only(plan, needed)


def _filtered(child: Plan, predicate: str, needed: frozenset[str]) -> Plan:
    """The filter below a projection that the pruning of its input made."""
    if isinstance(child, Map):
        inner = {output.name: output.scalar for output in child.outputs}
        below = Filter(child.child, scalar.substitute(predicate, inner))
        return _only(map_(below, child.outputs), needed)
    return _only(Filter(child, predicate), needed)


def _is_one_row(plan: Plan) -> bool:
    """Whether a plan has exactly one row whatever the data: totals without keys."""
    grouped = plan.child if isinstance(plan, Map) else plan
    return isinstance(grouped, Groups) and not grouped.keys


def _used(scalars: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in scalars for name in scalar.columns(text))


def _only(plan: Plan, needed: frozenset[str]) -> Plan:
    return project(plan, tuple(c.name for c in schema_of(plan) if c.name in needed))
