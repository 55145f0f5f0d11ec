"""Sizes of nested values, and the cost of expressions (nested-collections §4.2, Fig. 5).

The size of a bag is its cardinality and the least upper bound of the sizes of its elements: n{c}.
For an incremental update, which is smaller than the input at the outer level and no larger inside,
the delta of an expression costs less than the expression (Thm 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, assert_never

from everview.algebra.zset import ZSet
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Let,
    Negate,
    Record,
    Rel,
    Sng,
    Times,
    Union,
    Var,
)
from everview.lang.nested.types import Bag, Product, Type, place


@dataclass(frozen=True, slots=True)
class One:
    """The cost of a base value: 1. It is the least cost of any type."""

    def __str__(self) -> str:
        return "1"


@dataclass(frozen=True, slots=True)
class Parts:
    """The costs of the components of a tuple."""

    fields: tuple[tuple[str, Cost], ...]

    def __str__(self) -> str:
        return f"⟨{', '.join(str(each) for _, each in self.fields)}⟩"


@dataclass(frozen=True, slots=True)
class Many:
    """The cost of a bag: its cardinality, and the cost of an element."""

    count: int
    element: Cost

    def __str__(self) -> str:
        return f"{self.count}{{{self.element}}}"


Cost: TypeAlias = One | Parts | Many
LEAST: Cost = One()
Costs: TypeAlias = Mapping[str, Cost]


def size(value: Any, type_: Type) -> Cost:
    """The size of a value; elements of negative multiplicity count too.

    >>> from everview.lang.nested.types import Base
    >>> text = Base("string")
    >>> words = [frozenset([("a", 1)]), frozenset([("b", 1)]), frozenset([("c", 1), ("d", 1)])]
    >>> print(size(frozenset((each, 1) for each in words), Bag(Bag(text))))
    3{2{1}}
    """
    match type_:
        case Bag(element):
            sizes = [size(each, element) for each, _ in value]
            count = sum(abs(weight) for _, weight in value)
            return Many(max(count, 1), reduce(supremum, sizes, LEAST))
        case Product(fields):
            known = dict(value)
            return Parts(tuple((name, size(known[name], each)) for name, each in fields))
        case _:
            return LEAST


def is_incremental(change: ZSet[Any], relation: ZSet[Any], element: Type) -> bool:
    """Whether an update is smaller than what it updates: size(ΔR) < size(R)."""
    return less(size(frozenset(change), Bag(element)), size(frozenset(relation), Bag(element)))


def less(left: Cost, right: Cost) -> bool:
    """The strict order of costs: strict at the outermost bag, and not strict inside it."""
    match left, right:
        case Many(n, x), Many(m, y):
            return n < m and at_most(x, y)
        case Parts(xs), Parts(ys):
            return all(less(x, y) for (_, x), (_, y) in zip(xs, ys, strict=True))
        case One(), Many(m, _):
            return m > 1
        case _:
            return False


def at_most(left: Cost, right: Cost) -> bool:
    """The order of costs: ≤ at every level."""
    match left, right:
        case One(), _:
            return True
        case Many(n, x), Many(m, y):
            return n <= m and at_most(x, y)
        case Parts(xs), Parts(ys):
            return all(at_most(x, y) for (_, x), (_, y) in zip(xs, ys, strict=True))
        case _:
            return False


def supremum(left: Cost, right: Cost) -> Cost:
    """The least cost that is at least both; labels of several occurrences have several parts."""
    match left, right:
        case Many(n, x), Many(m, y):
            return Many(max(n, m), supremum(x, y))
        case Parts(xs), Parts(ys):
            one, other = dict(xs), dict(ys)
            names = dict.fromkeys((*one, *other))
            both = ((n, supremum(one.get(n, LEAST), other.get(n, LEAST))) for n in names)
            return Parts(tuple(both))
        case One(), other:
            return other
        case _:
            return left


def time_cost(cost: Cost) -> int:
    """An upper bound of the time to compute a value of a cost: tcost of Lemma 3."""
    match cost:
        case Many(count, element):
            return count * time_cost(element)
        case Parts(fields):
            return sum(time_cost(each) for _, each in fields)
        case One():
            return 1


def cost(expr: Expr, sizes: Costs, around: Costs | None = None) -> Cost:
    """The cost of an expression over relations of these sizes: C of Fig. 5.

    `around` has the costs of free variables.
    """
    known = around or {}

    def of(each: Expr) -> Cost:
        return cost(each, sizes, known)

    match expr:
        case Rel(name):
            return sizes[name]
        case Var(name):
            return known[name]
        case Const() | Apply() | Aggregate():
            return LEAST
        case Empty():
            return Many(1, LEAST)
        case Let(name, bound, body):
            return cost(body, sizes, {**known, name: of(bound)})
        case For(name, source, _, body):
            count, element = _bag(of(source))
            inner, item = _bag(cost(body, sizes, {**known, name: element}))
            return Many(count * inner, item)
        case Sng(item):
            return Many(1, of(item))
        case Union(left, right):
            return supremum(of(left), of(right))
        case Negate(child):
            return of(child)
        case Times(left, right):
            (n, x), (m, y) = _bag(of(left)), _bag(of(right))
            return Many(n * m, Parts(((place(0), x), (place(1), y))))
        case Flatten(child):
            outer, bag = _bag(of(child))
            width, content = _bag(bag)
            return Many(outer * width, content)
        case Record(fields):
            return Parts(tuple((name, of(each)) for name, each in fields))
        case Field(child, name):
            inner_cost = of(child)
            return dict(inner_cost.fields)[name] if isinstance(inner_cost, Parts) else LEAST
        case Choice(_, then, otherwise):
            return supremum(of(then), of(otherwise))
        case _:
            assert_never(expr)


def _bag(cost_: Cost) -> tuple[int, Cost]:
    """Cardinality and element of the cost of a bag; the least of a type is 1{1}."""
    return (cost_.count, cost_.element) if isinstance(cost_, Many) else (1, LEAST)
