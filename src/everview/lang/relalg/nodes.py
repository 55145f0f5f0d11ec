"""The operators of relational algebra on sets, and those that only its changes have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from everview.errors import Span


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of a table or view, each once: R."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """The rows of which a condition is true: σₚ(S)."""

    child: Expression
    condition: str
    span: Span | None = field(default=None, compare=False)
    """Where the condition stands."""


@dataclass(frozen=True, slots=True)
class Project:
    """The rows cut down to some columns, each with the name it gets, and each row once: Π_A(S)."""

    child: Expression
    columns: tuple[tuple[str, str], ...]
    span: Span | None = field(default=None, compare=False)
    """Where the columns stand."""


@dataclass(frozen=True, slots=True)
class Product:
    """Every row of one side beside every row of the other: S × T."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of either side: S ∪ T."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Intersection:
    """The rows that both sides have: S ∩ T."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of the left that the right does not have: S − T."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NaturalJoin:
    """Pairs of rows that are equal in all columns of one name, which stand once: S ⋈ T."""

    left: Expression
    right: Expression
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Nothing:
    """The set without rows: ∅. The constructors of `build.py` leave it only as a whole."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The rows that a transaction takes away from a relation: ∇R."""

    name: str


@dataclass(frozen=True, slots=True)
class Inserted:
    """The rows that a transaction adds to a relation: ΔR."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A set with what comes: add(S) = S ∪ ΔS."""

    child: Expression
    inserted: Expression


@dataclass(frozen=True, slots=True)
class Sub:
    """A set without what goes: sub(S) = S − ∇S."""

    child: Expression
    deleted: Expression


@dataclass(frozen=True, slots=True)
class Mod:
    """A set as it will be: mod(S) = (S − ∇S) ∪ ΔS."""

    child: Expression
    deleted: Expression
    inserted: Expression


Binary: TypeAlias = Product | Union | Intersection | Difference | NaturalJoin
Expression: TypeAlias = (
    Relation | Select | Project | Binary | Nothing | Deleted | Inserted | Add | Sub | Mod
)
"""What a view may be, from `Relation` to `NaturalJoin`; the others occur in its changes only."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an operator is applied to."""
    match expression:
        case Select(child) | Project(child):
            return (child,)
        case Product(a, b) | Union(a, b) | Intersection(a, b) | Difference(a, b):
            return a, b
        case NaturalJoin(a, b) | Add(a, b) | Sub(a, b):
            return a, b
        case Mod(child, deleted, inserted):
            return child, deleted, inserted
        case Relation() | Nothing() | Deleted() | Inserted():
            return ()


def with_children(expression: Expression, given: Iterable[Expression]) -> Expression:
    """The operator over other expressions."""
    match expression, tuple(given):
        case (Select() | Project()) as node, (child,):
            return replace(node, child=child)
        case (Product() | Union() | Intersection() | Difference() | NaturalJoin()) as node, (a, b):
            return replace(node, left=a, right=b)
        case Add(), (child, inserted):
            return Add(child, inserted)
        case Sub(), (child, deleted):
            return Sub(child, deleted)
        case Mod(), (child, deleted, inserted):
            return Mod(child, deleted, inserted)
        case _:
            return expression


def relations(query: Expression) -> Iterator[Relation]:
    """The base relations that a query reads, from left to right."""
    if isinstance(query, Relation):
        yield query
    for child in children(query):
        yield from relations(child)
