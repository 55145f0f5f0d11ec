"""Random types, values, queries and updates of NRC⁺, well typed by construction."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

from everview.algebra.zset import ZSet
from everview.lang.nested.syntax import (
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
from everview.lang.nested.types import Bag, Base, Product, Type

INT = Base("bigint")
INNER = Product((("c", INT), ("d", Bag(INT))))
ROWS: dict[str, Type] = {
    "R": Product((("a", INT), ("b", Bag(INT)), ("e", Bag(INNER)))),
    "S": INT,
}
"""The elements of two relations."""


class Generator:
    """Writes queries of a type; `nests` lets them build bags of what depends on the input."""

    def __init__(self, rng: random.Random, *, nests: bool) -> None:
        self.rng = rng
        self.nests = nests
        self.names = count()

    def type(self, depth: int = 2) -> Type:
        """A type of an element."""
        kind = self.rng.choice(("int", "pair", "bag") if depth else ("int",))
        if kind == "bag":
            return Bag(self.type(depth - 1))
        if kind == "pair":
            return Product((("_1", self.type(depth - 1)), ("_2", self.type(depth - 1))))
        return INT

    def value(self, type_: Type, *, change: bool = False) -> Any:
        """A value; the bags of a change have elements of negative multiplicity."""
        match type_:
            case Bag(element):
                entries = [
                    (self.value(element, change=change), self.rng.choice((1, 1, 2, -1)))
                    for _ in range(self.rng.randint(0, 3))
                ]
                return frozenset(ZSet((v, w if change else abs(w)) for v, w in entries))
            case Product(fields):
                return tuple((name, self.value(each, change=change)) for name, each in fields)
            case _:
                return self.rng.randint(0, 2)

    def relations(self, *, change: bool = False) -> dict[str, ZSet[Any]]:
        """A bag for each relation."""
        return {n: ZSet(self.value(Bag(t), change=change)) for n, t in ROWS.items()}

    def bag(self, element: Type, scope: dict[str, Type], depth: int) -> Expr:
        """A query with elements of a type."""
        choices = ["for"] if depth else []
        choices += [name for name, row in ROWS.items() if row == element] * 2
        choices += ["scope"] if self._in_scope(Bag(element), scope) else []
        if depth:
            choices += ["union", "negate", "let", "choice", "flatten", "for", "empty"]
            if isinstance(element, Product) and [n for n, _ in element.fields] == ["_1", "_2"]:
                choices += ["times"] * 2
        if self.nests or not depth:
            choices.append("sng")
        if not self.nests and "sng" in choices and len(choices) > 1 and depth:
            choices.remove("sng")
        kind = self.rng.choice(choices)
        below = max(depth - 1, 0)
        match kind:
            case "R" | "S":
                return Rel(kind)
            case "scope":
                return self.rng.choice(self._in_scope(Bag(element), scope))
            case "empty":
                return Empty()
            case "sng":
                return Sng(self.element(element, scope, below))
            case "union":
                return Union(self.bag(element, scope, below), self.bag(element, scope, below))
            case "negate":
                return Negate(self.bag(element, scope, below))
            case "times":
                assert isinstance(element, Product)
                (_, left), (_, right) = element.fields
                return Times(self.bag(left, scope, below), self.bag(right, scope, below))
            case "flatten":
                return Flatten(self.bag(Bag(element), scope, below))
            case "choice":
                return Choice(
                    self.test(scope),
                    self.bag(element, scope, below),
                    self.bag(element, scope, below),
                )
            case "let":
                name, inner = f"X{next(self.names)}", self.type(1)
                bound = self.bag(inner, scope, below)
                return Let(name, bound, self.bag(element, {**scope, name: Bag(inner)}, below))
            case _:
                name = f"x{next(self.names)}"
                source = self.rng.choice((None, *ROWS))
                row = self.type(1) if source is None else ROWS[source]
                over = Rel(source) if source else self.bag(row, scope, below)
                inside = {**scope, name: row}
                where = self.test(inside) if self.rng.random() < 0.4 else None
                return For(name, over, where, self.bag(element, inside, below))

    def element(self, type_: Type, scope: dict[str, Type], depth: int) -> Expr:
        """An expression of a type; its bags depend on the input only if it `nests`."""
        known = self._in_scope(type_, scope, elements=True)
        if known and (self.rng.random() < 0.6 or not depth):
            return self.rng.choice(known)
        match type_:
            case Bag(inner):
                if self.nests:
                    return self.bag(inner, scope, depth)
                return Sng(self.element(inner, scope, 0)) if self.rng.random() < 0.7 else Empty()
            case Product(fields):
                parts = ((name, self.element(each, scope, depth)) for name, each in fields)
                return Record(tuple(parts))
            case _:
                return Const(self.rng.randint(0, 2))

    def test(self, scope: dict[str, Type]) -> Expr:
        """A predicate of base values."""
        sides = (self.element(INT, scope, 0), self.element(INT, scope, 0))
        return Apply(self.rng.choice(("==", "!=", "<", ">=")), sides)

    def _in_scope(
        self, type_: Type, scope: dict[str, Type], *, elements: bool = False
    ) -> list[Expr]:
        """Variables and their components of a type; those of `let` are no elements."""
        found: list[Expr] = []
        for name, known in scope.items():
            if elements and name.startswith("X") and not self.nests:
                continue
            found += [Var(name)] if known == type_ else []
            if isinstance(known, Product):
                found += (Field(Var(name), field) for field, each in known.fields if each == type_)
        return found
