"""Changes carried upward by equations: Fig. 1, the algorithm of Qian and Wiederhold.

It is here for comparison: what it finds is right, but not minimal (Prop. 1). See `nabla.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.differentiate.sets.transaction import Changes, Transaction
from everview.lang.relalg.build import add, difference, sub, union
from everview.lang.relalg.nodes import (
    Add,
    Difference,
    Expression,
    Intersection,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
    children,
    with_children,
)

Carried = tuple[int, Add | Sub]
"""The number of an equation of Fig. 1, and its right side."""


def carry_insert(expression: Expression) -> Carried | None:
    """An operator over S ∪ ΔS as the operator over S and a change: the even equations."""
    match expression:
        case Select(Add(s, i), p):
            return 2, Add(Select(s, p), Select(i, p))
        case Project(Add(s, i), a):
            return 4, Add(Project(s, a), Difference(Project(i, a), Project(s, a)))
        case Product(Add(s, i), t):
            return 6, Add(Product(s, t), Product(i, t))
        case Product(s, Add(t, i)):
            return 6, Add(Product(s, t), Product(s, i))
        case Union(Add(s, i), t):
            return 8, Add(Union(s, t), Difference(i, t))
        case Union(s, Add(t, i)):
            return 8, Add(Union(s, t), Difference(i, s))
        case Difference(s, Add(t, i)):
            return 12, Sub(Difference(s, t), Intersection(s, i))
        case Intersection(Add(s, i), t):
            return 14, Add(Intersection(s, t), Intersection(i, t))
        case Intersection(s, Add(t, i)):
            return 14, Add(Intersection(s, t), Intersection(s, i))
        case NaturalJoin(Add(s, i), t):
            return 16, Add(NaturalJoin(s, t), NaturalJoin(i, t))
        case NaturalJoin(s, Add(t, i)):
            return 16, Add(NaturalJoin(s, t), NaturalJoin(s, i))
        case Difference(Add(s, i), t):
            return 11, Add(Difference(s, t), Difference(i, t))
        case _:
            return None


def carry_delete(expression: Expression) -> Carried | None:
    """An operator over S − ∇S as the operator over S and a change."""
    match expression:
        case Select(Sub(s, d), p):
            return 1, Sub(Select(s, p), Select(d, p))
        case Project(Sub(s, d), a):
            return 3, Sub(Project(s, a), Difference(Project(s, a), Project(Sub(s, d), a)))
        case Product(Sub(s, d), t):
            return 5, Sub(Product(s, t), Product(d, t))
        case Product(s, Sub(t, d)):
            return 5, Sub(Product(s, t), Product(s, d))
        case Union(Sub(s, d), t):
            return 7, Sub(Union(s, t), Difference(d, t))
        case Union(s, Sub(t, d)):
            return 7, Sub(Union(s, t), Difference(d, s))
        case Difference(Sub(s, d), t):
            return 9, Sub(Difference(s, t), Difference(d, t))
        case Difference(s, Sub(t, d)):
            return 10, Add(Difference(s, t), Intersection(s, d))
        case Intersection(Sub(s, d), t):
            return 13, Sub(Intersection(s, t), Intersection(d, t))
        case Intersection(s, Sub(t, d)):
            return 13, Sub(Intersection(s, t), Intersection(s, d))
        case NaturalJoin(Sub(s, d), t):
            return 15, Sub(NaturalJoin(s, t), NaturalJoin(d, t))
        case NaturalJoin(s, Sub(t, d)):
            return 15, Sub(NaturalJoin(s, t), NaturalJoin(s, d))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Propagated:
    """What the equations make of a query: its changes, and the equations in order of use."""

    changes: Changes
    equations: tuple[int, ...]


def propagated(changed: Transaction, query: Expression) -> Propagated:
    """(Q − ∇Q) ∪ ΔQ from pre(t, Q): operator by operator, positive changes first.

    What goes after something came takes it away again: (S ∪ ΔS) − T = (S − T) ∪ (ΔS − T).
    """
    if isinstance(query, Relation):
        return Propagated(changed.get(query.name, Changes(query)), ())
    below = [propagated(changed, child) for child in children(query)]
    over = with_children(query, (_after(each.changes) for each in below))
    numbers = [number for each in below for number in each.equations]
    steps: list[Add | Sub] = []
    while (carried := carry_insert(over) or carry_delete(over)) is not None:
        number, step = carried
        numbers.append(number)
        steps.append(step)
        over = step.child
    changes = Changes(over)
    for step in reversed(steps):
        match step:
            case Add(_, inserted):
                inserted = union(changes.inserted, inserted)
                changes = Changes(over, changes.deleted, inserted)
            case Sub(_, deleted):
                kept = difference(changes.inserted, deleted)
                changes = Changes(over, union(changes.deleted, deleted), kept)
    return Propagated(changes, tuple(numbers))


def _after(changes: Changes) -> Expression:
    """(S − ∇S) ∪ ΔS, as the equations read it."""
    return add(sub(changes.before, changes.deleted), changes.inserted)
