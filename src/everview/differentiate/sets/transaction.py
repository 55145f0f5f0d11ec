"""Transactions on sets: what changes in each relation, what a query will be, minimal changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from everview.lang.relalg.build import NOTHING, add, difference, intersection, mod, sub
from everview.lang.relalg.nodes import (
    Deleted,
    Expression,
    Inserted,
    Relation,
    children,
    with_children,
)


@dataclass(frozen=True, slots=True)
class Changes:
    """A set before a transaction, with what the transaction takes away from it and adds to it.

    It is minimal if ∇S ⊆ S and ΔS ∩ S = ∅.
    """

    before: Expression
    deleted: Expression = NOTHING
    inserted: Expression = NOTHING

    @property
    def add(self) -> Expression:
        """add(S) = S ∪ ΔS."""
        return add(self.before, self.inserted)

    @property
    def sub(self) -> Expression:
        """sub(S) = S − ∇S."""
        return sub(self.before, self.deleted)

    @property
    def mod(self) -> Expression:
        """mod(S) = (S − ∇S) ∪ ΔS, what S will be."""
        return mod(self.before, self.deleted, self.inserted)


Transaction: TypeAlias = Mapping[str, Changes]
"""R ← (R − ∇R) ∪ ΔR for each relation in it, all at once, read in the old state."""


def transaction(names: Iterable[str]) -> Transaction:
    """The transaction that changes some relations, by whatever it is given for each."""
    return {name: Changes(Relation(name), Deleted(name), Inserted(name)) for name in names}


def minimized(changes: Changes) -> Changes:
    """The minimal changes that lead to the same set (Prop. 2).

    ∇₂ = (S ∩ ∇₁) − Δ₁ and Δ₂ = Δ₁ − S. Without "− Δ₁" a row that goes and comes would be lost.
    """
    before, deleted, inserted = changes.before, changes.deleted, changes.inserted
    gone = difference(intersection(before, deleted), inserted)
    return Changes(before, gone, difference(inserted, before))


def minimal(changed: Transaction) -> Transaction:
    """The same transaction, each change minimal: what Fig. 2 needs to be right."""
    return {name: minimized(changes) for name, changes in changed.items()}


def pre(changed: Transaction, query: Expression) -> Expression:
    """What a query will be, as an expression to evaluate before the transaction: pre(t, S).

    Each relation in it is replaced by (R − ∇R) ∪ ΔR.
    """
    if isinstance(query, Relation):
        return changed[query.name].mod if query.name in changed else query
    return with_children(query, (pre(changed, child) for child in children(query)))
