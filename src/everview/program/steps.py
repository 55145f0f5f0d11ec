"""The physical program: straight-line steps, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.plan.nodes import Plan
from everview.plan.types import Schema


@dataclass(frozen=True, slots=True)
class State:
    """A stored relation that derivatives read: the value of `plan`, sorted by `sort`."""

    name: str
    plan: Plan
    sort: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeySet:
    """The values of one column of a computed relation, by which a slice is fetched."""

    relation: str
    column: str = ""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Bring the rows of a stored relation whose `by` column is among the keys.

    Without `by` the whole relation is brought, unless the keys have no rows. A slice may hold more
    rows than asked for: whatever reads it joins or restricts it again.
    """

    result: str
    relation: str
    schema: Schema
    by: str | None
    keys: tuple[KeySet, ...]

    @property
    def drivers(self) -> tuple[str, ...]:
        """The relations of which one must have rows for the whole to be brought, if any must."""
        return () if self.by else tuple(key.relation for key in self.keys)


@dataclass(frozen=True, slots=True)
class Compute:
    """Evaluate `plan` over changes, slices and earlier results, and name the result.

    A result that is written is consolidated: equal rows added up, rows that cancel gone.
    """

    result: str
    plan: Plan
    consolidated: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """`plan` must have no rows, or the transaction is refused."""

    rule: str
    table: str
    columns: tuple[str, ...]
    plan: Plan


@dataclass(frozen=True, slots=True)
class Add:
    """Add a computed change to a piece of state, when the epoch commits."""

    state: str
    change: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Add a computed change to a view, when the epoch commits."""

    view: str
    change: str


Step: TypeAlias = Fetch | Compute | Check | Add | Publish


@dataclass(frozen=True, slots=True)
class Program:
    """What a transaction that touches `inputs` does, in rounds: fetches first, then arithmetic.

    Only from the tables in `removing` are rows removed.
    """

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    removing: frozenset[str] = frozenset()


def change_name(relation: str) -> str:
    """The name under which a program knows the change of a relation."""
    return f"Δ{relation}"


def fetch_mark(relation: str, by: str | None) -> str:
    """How a fetch is known in statistics: the relation and what it is looked up by."""
    return f"{relation} by {by}" if by else f"{relation} whole"
