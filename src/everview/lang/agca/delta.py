"""Deltas: Δq, with ⟦q⟧(A + u) = ⟦q⟧(A) + ⟦Δq⟧(A) for a change u of the database (Prop. 6.1).

From ring-of-databases §6. Factors keep their order. An assignment is not treated as an equality,
which does not bind: Δ(x := q) = (x := q + Δq) − (x := q).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from everview.lang.agca.syntax import (
    COMPLEMENT,
    ZERO,
    Add,
    Assignment,
    Atom,
    Comparison,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    minus,
    plus,
    times,
    walk,
)


@dataclass(frozen=True, slots=True)
class Event:
    """The insertion (+1) or deletion (−1) of one row, given by variables: ±R(t₁, …, tₙ)."""

    relation: str
    sign: int
    row: tuple[Variable, ...]


def delta(query: Expr, event: Event) -> Expr:
    """Δ_{±R(t)} q, for one row. The variables of the row must not occur in the query.

    >>> from everview.lang.agca.parse import parse_query
    >>> from everview.lang.agca.printer import print_query
    >>> q = parse_query("Sum(R(a, b) * a)")
    >>> print_query(delta(q, Event("R", +1, (Variable("x"), Variable("y")))))
    'Sum((a := x) * (b := y) * a)'
    """

    def of_atom(atom: Atom) -> Expr:
        if atom.relation != event.relation:
            return ZERO
        bound = zip(atom.arguments, event.row, strict=True)
        row = times(*(Assignment(x, t) for x, t in bound if isinstance(x, Variable)))
        return minus(row) if event.sign < 0 else row

    return derive(query, of_atom)


def batch_delta(query: Expr, changes: Mapping[str, str]) -> Expr:
    """Δq for changes of any size: those of a relation are rows of the relation that stands for it.

    >>> from everview.lang.agca.parse import parse_query
    >>> from everview.lang.agca.printer import print_query
    >>> print_query(batch_delta(parse_query("Sum(R(a) * S(a))"), {"R": "dR"}))
    'Sum(dR(a) * S(a))'
    """

    def of_atom(atom: Atom) -> Expr:
        change = changes.get(atom.relation)
        return ZERO if change is None else replace(atom, relation=change)

    return derive(query, of_atom)


def deltas(query: Expr, *events: Event) -> Expr:
    """The k-th delta: Δ_{uₖ} … Δ_{u₁} q."""
    return reduce(delta, events, query)


def derive(query: Expr, of_atom: Callable[[Atom], Expr]) -> Expr:
    """Δq, with the change of each relation as it is given."""
    match query:
        case Atom():
            return of_atom(query)
        case Add(terms):
            return plus(*(derive(each, of_atom) for each in terms))
        case Negate(body):
            return minus(derive(body, of_atom))
        case Sum(body):
            change = derive(body, of_atom)
            return ZERO if change == ZERO else Sum(change)
        case Product(factors):
            return _of_product(factors, of_atom)
        case Comparison(sign, left, right):
            sides = derive(left, of_atom), derive(right, of_atom)
            if sides == (ZERO, ZERO):
                return ZERO
            new = replace(query, left=plus(left, sides[0]), right=plus(right, sides[1]))
            other = COMPLEMENT[sign]
            became = times(new, replace(query, operator=other))
            ceased = times(replace(new, operator=other), query)
            return plus(became, minus(ceased))
        case Assignment(variable, value):
            change = derive(value, of_atom)
            if change == ZERO:
                return ZERO
            return plus(Assignment(variable, plus(value, change)), minus(query))
        case _:
            return ZERO


def _of_product(factors: tuple[Expr, ...], of_atom: Callable[[Atom], Expr]) -> Expr:
    """Δ(α ∗ β) = Δα ∗ β + α ∗ Δβ + Δα ∗ Δβ."""
    first, rest = factors[0], factors[1:]
    if not rest:
        return derive(first, of_atom)
    d_first, d_rest = derive(first, of_atom), _of_product(rest, of_atom)
    return plus(times(d_first, *rest), times(first, d_rest), times(d_first, d_rest))


def degree(query: Expr) -> int:
    """The polynomial degree (Def. 6.3): how many relations are joined, at most.

    An assignment has the degree of its value, which may read the database too.

    >>> from everview.lang.agca.parse import parse_query
    >>> degree(parse_query("Sum(R(a, b) * S(b, c) * a + 2 * R(a, b))"))
    2
    """
    match query:
        case Atom():
            return 1
        case Product(factors):
            return sum(map(degree, factors))
        case Add(terms):
            return max(map(degree, terms), default=0)
        case Negate(body) | Sum(body):
            return degree(body)
        case Comparison(_, left, right):
            return max(degree(left), degree(right))
        case Assignment(_, value):
            return degree(value)
        case _:
            return 0


def is_simple(query: Expr) -> bool:
    """Whether no condition or assignment in it reads the database.

    Only then a delta lowers the degree: deg(Δq) ≤ max(0, deg(q) − 1) for every event, and it is
    equal for an event of a relation that occurs in a monomial of that degree (Thm 6.4).
    """
    return not any(
        isinstance(each, Comparison | Assignment) and degree(each) > 0 for each in walk(query)
    )
