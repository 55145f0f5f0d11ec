"""Smart constructors of relational algebra: what the empty set makes of an operator."""

from __future__ import annotations

from everview.lang.relalg.nodes import (
    Add,
    Difference,
    Expression,
    Intersection,
    Mod,
    NaturalJoin,
    Nothing,
    Product,
    Project,
    Select,
    Sub,
    Union,
)

NOTHING = Nothing()


def select(child: Expression, condition: str) -> Expression:
    """σₚ(S), with σ(∅) = ∅."""
    return child if child == NOTHING else Select(child, condition)


def project(child: Expression, columns: tuple[tuple[str, str], ...]) -> Expression:
    """Π_A(S), with Π(∅) = ∅."""
    return child if child == NOTHING else Project(child, columns)


def product(left: Expression, right: Expression) -> Expression:
    """S × T, with ∅ × T = S × ∅ = ∅."""
    return NOTHING if NOTHING in (left, right) else Product(left, right)


def natural_join(left: Expression, right: Expression) -> Expression:
    """S ⋈ T, with ∅ ⋈ T = S ⋈ ∅ = ∅."""
    return NOTHING if NOTHING in (left, right) else NaturalJoin(left, right)


def union(left: Expression, right: Expression) -> Expression:
    """S ∪ T, with ∅ ∪ T = T."""
    if left == NOTHING:
        return right
    return left if right == NOTHING else Union(left, right)


def intersection(left: Expression, right: Expression) -> Expression:
    """S ∩ T, with ∅ ∩ T = S ∩ ∅ = ∅."""
    return NOTHING if NOTHING in (left, right) else Intersection(left, right)


def difference(left: Expression, right: Expression) -> Expression:
    """S − T, with ∅ − T = ∅ and S − ∅ = S."""
    return left if NOTHING in (left, right) else Difference(left, right)


def add(child: Expression, inserted: Expression) -> Expression:
    """S ∪ ΔS, with S ∪ ∅ = S."""
    return child if inserted == NOTHING else Add(child, inserted)


def sub(child: Expression, deleted: Expression) -> Expression:
    """S − ∇S, with S − ∅ = S."""
    return child if deleted == NOTHING else Sub(child, deleted)


def mod(child: Expression, deleted: Expression, inserted: Expression) -> Expression:
    """(S − ∇S) ∪ ΔS; where nothing goes or nothing comes it is add(S) or sub(S)."""
    if NOTHING in (deleted, inserted):
        return add(sub(child, deleted), inserted)
    return Mod(child, deleted, inserted)
