"""The expressions of NRC⁺: a closed union of small frozen nodes.

The paper's calculus has bags only, and a pair is built by ×. Here an element is an expression too:
a tuple, a component, a base value. `sng(⟨a, e⟩)` is the paper's `sng(a) × sng(e)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from typing import Literal, TypeAlias

Value: TypeAlias = bool | int | float | Decimal | str | date | None
"""A base value as a constant is written."""

AggregateName: TypeAlias = Literal["sum", "len", "min", "max", "any", "all"]
AGGREGATES: tuple[AggregateName, ...] = ("sum", "len", "min", "max", "any", "all")


@dataclass(frozen=True, slots=True)
class Rel:
    """A relation of the database: R."""

    name: str


@dataclass(frozen=True, slots=True)
class Var:
    """A variable: an element bound by `for`, or a bag bound by `let`."""

    name: str


@dataclass(frozen=True, slots=True)
class Let:
    """let X := bound in body."""

    name: str
    bound: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class For:
    """for x in source where p union body; without a condition `where` is None."""

    name: str
    source: Expr
    where: Expr | None
    body: Expr


@dataclass(frozen=True, slots=True)
class Sng:
    """The bag with one element, once: sng(e)."""

    item: Expr


@dataclass(frozen=True, slots=True)
class Empty:
    """The empty bag, of any type: ∅."""


@dataclass(frozen=True, slots=True)
class Union:
    """Multiplicities added: e ⊎ e'."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Negate:
    """Every multiplicity with its sign changed: ⊖e."""

    child: Expr


@dataclass(frozen=True, slots=True)
class Times:
    """Pairs of elements, multiplicities multiplied: e × e'."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Flatten:
    """The sum of the bags in a bag: flatten(e)."""

    child: Expr


@dataclass(frozen=True, slots=True)
class Record:
    """A tuple with named components: ⟨a: e, b: e'⟩."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A component of a tuple: e.a."""

    child: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A base value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Apply:
    """A primitive of base values: p(e, …). See primitives.py."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """if test then e else e'."""

    test: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A base value computed from all elements of a bag: sum(e), len(e), …"""

    function: AggregateName
    child: Expr


Expr: TypeAlias = (
    Rel
    | Var
    | Let
    | For
    | Sng
    | Empty
    | Union
    | Negate
    | Times
    | Flatten
    | Record
    | Field
    | Const
    | Apply
    | Choice
    | Aggregate
)


def children(expr: Expr) -> Iterator[Expr]:
    """The expressions directly inside one, in the order in which they are written."""
    if isinstance(expr, Record):
        yield from (each for _, each in expr.fields)
    elif isinstance(expr, Apply):
        yield from expr.args
    else:
        values = (getattr(expr, each.name) for each in fields(expr))
        yield from (each for each in values if hasattr(each, "__dataclass_fields__"))


def with_relations(expr: Expr, queries: Mapping[str, Expr]) -> Expr:
    """The expression with queries in the place of the relations that they define."""
    if isinstance(expr, Rel):
        return queries.get(expr.name, expr)
    if isinstance(expr, Record):
        return Record(tuple((name, with_relations(e, queries)) for name, e in expr.fields))
    if isinstance(expr, Apply):
        return Apply(expr.function, tuple(with_relations(each, queries) for each in expr.args))
    below = {
        each.name: with_relations(part, queries)
        for each in fields(expr)
        if hasattr(part := getattr(expr, each.name), "__dataclass_fields__")
    }
    return replace(expr, **below) if below else expr  # type: ignore[arg-type]


def relations(expr: Expr) -> tuple[str, ...]:
    """The relations that occur in an expression, in order."""
    found: dict[str, None] = {}
    waiting = [expr]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Rel):
            found[each.name] = None
        waiting += reversed(list(children(each)))
    return tuple(found)
