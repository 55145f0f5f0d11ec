"""Which sets of columns identify a row: the unique keys of a plan."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from everview.expr import scalar
from everview.plan.build import columns_of
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

Keys: TypeAlias = frozenset[frozenset[str]]


def keys(plan: Plan) -> Keys:
    """Sets of columns on which no two rows agree, every row having weight one.

    The empty key means at most one row. A plan with any key is a set.
    """
    match plan:
        case Empty():
            return frozenset({frozenset()})
        case Source(_, _, key):
            return frozenset({frozenset(key)}) if key else frozenset()
        case Values(_, rows):
            return frozenset({frozenset()}) if len(rows) <= 1 else frozenset()
        case Change() | Ref() | Recursive() | Add() | Negate() | Totals():
            return frozenset()
        case Fixpoint(result, _, _, traced):
            return frozenset() if traced else keys(plan.body(result))
        case Filter(child, _) | Restrict(child, _, _):
            return keys(child)
        case Map(child, outputs):
            kept = {scalar.as_column(o.scalar): o.name for o in reversed(outputs)}
            survive = (key for key in keys(child) if all(name in kept for name in key))
            return frozenset(frozenset(kept[name] for name in key) for key in survive)
        case Unnest(child, _, _, position, _):
            return frozenset(key | {position} for key in keys(child)) if position else frozenset()
        case Join(left, right, on, _):
            return _join_keys(keys(left), keys(right), on)
        case Positive(child) | Window(child, _, _):
            return keys(child)
        case Distinct(child):
            return keys(child) | {frozenset(columns_of(child))}
        case Groups(_, columns) | Partition(_, columns, _):
            return frozenset({frozenset(columns)})
        case _:
            assert_never(plan)


def is_set(plan: Plan) -> bool:
    """Whether every row of `plan` has weight one."""
    return bool(keys(plan))


def _join_keys(left: Keys, right: Keys, on: tuple[tuple[str, str], ...]) -> Keys:
    """A key of one side is enough where the other side is joined by a key of its own."""
    if not (left and right):
        return frozenset()
    found = {a | b for a in left for b in right}
    if any(key <= {b for _, b in on} for key in right):
        found |= left
    if any(key <= {a for a, _ in on} for key in left):
        found |= right
    return frozenset(found)
