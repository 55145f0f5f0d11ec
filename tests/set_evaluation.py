"""Relational algebra on sets, evaluated by definition: the oracle of its laws.

A value is a frozenset of rows, NULL is None and equals itself. Nothing here is clever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    Mod,
    NaturalJoin,
    Nothing,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
    children,
)
from scalar_meaning import value

Row = tuple[Any, ...]
Rows = frozenset[Row]
Names = tuple[str, ...]


def holds(condition: str, row: Mapping[str, Any]) -> bool:
    """Whether a condition is true, and not unknown."""
    return value(condition, row) is True


@dataclass(slots=True)
class State:
    """Relations before a transaction, and what it takes away from each and adds to it."""

    names: Mapping[str, Names]
    rows: Mapping[str, Rows]
    gone: Mapping[str, Rows] = field(default_factory=dict)
    come: Mapping[str, Rows] = field(default_factory=dict)
    read: list[Rows] = field(default_factory=list)
    """The slices that were asked for, by which it is told what an evaluation reads."""

    def after(self) -> State:
        """R ← (R − ∇R) ∪ ΔR, all at once."""
        changed = {
            name: (rows - self.deleted(name)) | self.inserted(name)
            for name, rows in self.rows.items()
        }
        return State(self.names, changed)

    def columns(self, name: str) -> Names:
        return self.names[name]

    def deleted(self, name: str) -> Rows:
        return self.gone.get(name, frozenset())

    def inserted(self, name: str) -> Rows:
        return self.come.get(name, frozenset())

    def slice(self, name: str, on: Names, keys: Collection[Row]) -> Rows:
        places = [self.names[name].index(each) for each in on]
        found = frozenset(r for r in self.rows[name] if tuple(r[at] for at in places) in keys)
        self.read.append(found)
        return found


def evaluate(expression: Expression, state: State) -> Rows:
    """The value of an expression; what occurs in it more than once is evaluated once."""
    return _evaluated(expression, state, {})[1]


Known = dict[int, tuple[Names, Rows]]


def _evaluated(expression: Expression, state: State, known: Known) -> tuple[Names, Rows]:
    if id(expression) not in known:
        below = [_evaluated(each, state, known) for each in children(expression)]
        known[id(expression)] = _value(expression, state, below)
    return known[id(expression)]


def _value(
    expression: Expression, state: State, below: list[tuple[Names, Rows]]
) -> tuple[Names, Rows]:
    """What an operator makes of the values below it: each case is its definition."""
    match expression:
        case Nothing():
            return (), frozenset()
        case Relation(name):
            return state.names[name], state.rows[name]
        case Deleted(name):
            return state.names[name], state.deleted(name)
        case Inserted(name):
            return state.names[name], state.inserted(name)
        case Select(_, condition):
            [(names, rows)] = below
            return names, frozenset(r for r in rows if holds(condition, _named(names, r)))
        case Project(_, columns):
            [(names, rows)] = below
            picked = (tuple(_named(names, r)[own] for own, _ in columns) for r in rows)
            return tuple(given for _, given in columns), frozenset(picked)
        case Product() | NaturalJoin():
            return _joined(*below)
        case Union() | Add():
            [(names, rows), (_, others)] = below
            return names, rows | others
        case Intersection():
            [(names, rows), (_, others)] = below
            return names, rows & others
        case Difference() | Sub():
            [(names, rows), (_, others)] = below
            return names, rows - others
        case Mod():
            [(names, rows), (_, gone), (_, come)] = below
            return names, (rows - gone) | come
        case _:
            assert_never(expression)


def _named(names: Names, row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def _joined(left: tuple[Names, Rows], right: tuple[Names, Rows]) -> tuple[Names, Rows]:
    """Pairs equal in the columns of one name; in a product there are none."""
    (ours, rows), (theirs, others) = left, right
    common = [name for name in ours if name in theirs]
    rest = [name for name in theirs if name not in ours]
    pairs = ((_named(ours, a), _named(theirs, b)) for a in rows for b in others)
    joined = (
        (*a.values(), *(b[name] for name in rest))
        for a, b in pairs
        if all(a[name] == b[name] for name in common)
    )
    return (*ours, *rest), frozenset(joined)
