"""The delta rules of IncNRC⁺ (nested-collections, Fig. 4), and the degree of an expression (§4.1).

    h[R ⊎ ΔR] = h[R] ⊎ δ(h)[R, ΔR]          (Prop. 4.1)
    deg(δ(h)) = deg(h) − 1 where deg(h) > 0  (Thm 2)

A singleton of a bag that depends on the input is outside: its change is a deep one, which shredding
is for. So is an aggregate of such a bag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import assert_never

from everview.errors import UserError
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
    children,
)
from everview.lang.nested.text import print_expr

DELTA = "Δ"
"""What the name of a change begins with: ΔR is that of R."""

Degrees = Mapping[str, float]
"""The degrees of variables that `let` binds: φ."""


def degree(expr: Expr, changes: frozenset[str], given: Degrees | None = None) -> float:
    """How often an expression can be differentiated before it depends on no relation in `changes`.

    It is infinite outside IncNRC⁺. An expression depends on the input if its degree is above zero.
    """
    known = given or {}

    def of(each: Expr) -> float:
        return degree(each, changes, known)

    match expr:
        case Rel(name):
            return 1 if name in changes else 0
        case Var(name):
            return known.get(name, 0)
        case Const() | Empty():
            return 0
        case Let(name, bound, body):
            return degree(body, changes, {**known, name: of(bound)})
        case For(_, source, where, body):
            return of(source) + of(body) + (inf if where is not None and of(where) else 0)
        case Sng() | Record() | Field() | Apply() | Aggregate():
            return inf if any(map(of, children(expr))) else 0
        case Union(left, right):
            return max(of(left), of(right))
        case Times(left, right):
            return of(left) + of(right)
        case Negate(child) | Flatten(child):
            return of(child)
        case Choice(test, then, otherwise):
            return inf if of(test) else max(of(then), of(otherwise))
        case _:
            assert_never(expr)


def delta(expr: Expr, name: str) -> Expr:
    """What is added to the value of `expr` when ΔR is added to the relation R of that name."""
    return _Delta(name, variable=False).of(expr)


@dataclass(frozen=True, slots=True)
class _Delta:
    """Differentiates by one relation, or by one variable that a `let` binds."""

    name: str
    variable: bool

    def of(self, expr: Expr) -> Expr:
        match expr:
            case Rel(name):
                changed = name == self.name and not self.variable
                return Rel(DELTA + name) if changed else Empty()
            case Var(name):
                changed = name == self.name and self.variable
                return Var(DELTA + name) if changed else Empty()
            case Empty():
                return expr
            case Let():
                return self._let(expr)
            case For(name, source, where, body):
                if where is not None:
                    self._must_not_depend(where)
                if name == self.name and self.variable:
                    return For(name, self.of(source), where, body)
                d_source, d_body = self.of(source), self.of(body)
                return _sum(
                    _for(name, d_source, where, body),
                    _for(name, source, where, d_body),
                    _for(name, d_source, where, d_body),
                )
            case Sng() | Const() | Record() | Field() | Apply() | Aggregate():
                self._must_not_depend(expr)
                return Empty()
            case Union(left, right):
                return _sum(self.of(left), self.of(right))
            case Negate(child):
                change = self.of(child)
                return change if change == Empty() else Negate(change)
            case Flatten(child):
                change = self.of(child)
                return change if change == Empty() else Flatten(change)
            case Times(left, right):
                d_left, d_right = self.of(left), self.of(right)
                pairs = ((d_left, right), (left, d_right), (d_left, d_right))
                return _sum(*(Times(*each) for each in pairs if Empty() not in each))
            case Choice(test, then, otherwise):
                self._must_not_depend(test)
                changes = (self.of(then), self.of(otherwise))
                return Empty() if changes == (Empty(), Empty()) else Choice(test, *changes)
            case _:
                assert_never(expr)

    def _let(self, expr: Let) -> Expr:
        """δ_R(e') ⊎ δ_X(e') ⊎ δ_R(δ_X(e')), where X changes by δ_R(e)."""
        d_bound = self.of(expr.bound)
        shadowed = self.variable and expr.name == self.name
        d_body = Empty() if shadowed else self.of(expr.body)
        if d_bound == Empty():
            return d_body if d_body == Empty() else Let(expr.name, expr.bound, d_body)
        by_variable = _Delta(expr.name, variable=True).of(expr.body)
        mixed = Empty() if shadowed else self.of(by_variable)
        change = _sum(d_body, by_variable, mixed)
        if change == Empty():
            return change
        return Let(expr.name, expr.bound, Let(DELTA + expr.name, d_bound, change))

    def _must_not_depend(self, expr: Expr) -> None:
        if _depends(expr, self):
            raise UserError(
                "N009",
                f"{print_expr(expr)} depends on {self.name}: it has no delta in IncNRC⁺",
                remedy="shred the query, so that its inner bags are labels",
            )


def _depends(expr: Expr, by: _Delta) -> bool:
    """Whether the relation or variable occurs free in an expression."""
    match expr:
        case Rel(name):
            return not by.variable and name == by.name
        case Var(name):
            return by.variable and name == by.name
        case Let(name, bound, body):
            inside = not (by.variable and name == by.name)
            if _depends(bound, by):
                # X carries the dependence into the body (0-04).
                return (inside and _depends(body, by)) or _depends(body, _Delta(name, True))
            return inside and _depends(body, by)
        case For(name, source, where, body):
            if _depends(source, by):
                return True
            inside = not (by.variable and name == by.name)
            return inside and any(_depends(e, by) for e in (where, body) if e is not None)
        case _:
            return any(_depends(each, by) for each in children(expr))


def _sum(*terms: Expr) -> Expr:
    """e ⊎ e', with ∅ ⊎ e = e."""
    kept = [each for each in terms if each != Empty()]
    found = kept[0] if kept else Empty()
    for each in kept[1:]:
        found = Union(found, each)
    return found


def _for(name: str, source: Expr, where: Expr | None, body: Expr) -> Expr:
    """for x in e union e', with ∅ for both."""
    return Empty() if Empty() in (source, body) else For(name, source, where, body)
