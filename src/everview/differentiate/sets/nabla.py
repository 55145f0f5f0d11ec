"""∇ and Δ of relational algebra on sets: Fig. 2 of Griffin, Libkin and Trickey, in one pass.

Theorem 1: if the transaction is minimal, then (a) pre(t, Q) = (Q − ∇Q) ∪ ΔQ, (b) ∇Q ⊆ Q and
(c) ΔQ ∩ Q = ∅. If it is not, the result can be wrong, not only larger than it need be.

∇ reads the old sides of ×, ∩, − and ⋈ and what the sides of ∪ and Π will be; Δ the other way.
"""

from __future__ import annotations

from everview.differentiate.sets.transaction import Changes, Transaction
from everview.lang.relalg.build import (
    difference,
    intersection,
    natural_join,
    product,
    project,
    select,
    union,
)
from everview.lang.relalg.nodes import (
    Difference,
    Expression,
    Intersection,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Union,
    children,
)


def nabla(changed: Transaction, query: Expression) -> Expression:
    """The rows that leave a query: ∇(t, Q)."""
    return changes_of(changed, query).deleted


def delta(changed: Transaction, query: Expression) -> Expression:
    """The rows that come into a query: Δ(t, Q)."""
    return changes_of(changed, query).inserted


def changes_of(changed: Transaction, query: Expression) -> Changes:
    """∇(t, Q) and Δ(t, Q) together: each part of the query is visited once."""
    below = [changes_of(changed, child) for child in children(query)]
    match query:
        case Relation(name):
            return changed.get(name, Changes(query))
        case Select(_, condition):
            (s,) = below
            return Changes(query, select(s.deleted, condition), select(s.inserted, condition))
        case Project(_, columns):
            (s,) = below
            return Changes(
                query,
                difference(project(s.deleted, columns), project(s.mod, columns)),
                difference(project(s.inserted, columns), project(s.before, columns)),
            )
        case Product():
            s, t = below
            return Changes(
                query,
                union(product(s.deleted, t.before), product(s.before, t.deleted)),
                union(product(s.mod, t.inserted), product(s.inserted, t.mod)),
            )
        case Union():
            s, t = below
            return Changes(
                query,
                union(difference(s.deleted, t.mod), difference(t.deleted, s.mod)),
                union(difference(s.inserted, t.before), difference(t.inserted, s.before)),
            )
        case Intersection():
            s, t = below
            return Changes(
                query,
                union(intersection(s.deleted, t.before), intersection(t.deleted, s.before)),
                union(intersection(s.inserted, t.mod), intersection(t.inserted, s.mod)),
            )
        case Difference():
            s, t = below
            return Changes(
                query,
                union(difference(s.deleted, t.before), intersection(t.inserted, s.before)),
                union(difference(s.inserted, t.mod), intersection(t.deleted, s.sub)),
            )
        case NaturalJoin():
            s, t = below
            return Changes(
                query,
                union(natural_join(s.deleted, t.before), natural_join(s.before, t.deleted)),
                union(natural_join(s.mod, t.inserted), natural_join(s.inserted, t.mod)),
            )
        case _:
            raise AssertionError(f"{type(query).__name__} occurs in changes only")
