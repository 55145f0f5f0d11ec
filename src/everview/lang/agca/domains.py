"""Domains and arities: which values variables can have, each with the number of its derivations.

From domains-and-arities §1 and 2. A domain is a finite sum of parts, also where it is infinite: a
variable that a part does not bind is free, and a condition whose inputs are not all bound is kept
as it is. Over 𝔹 a sum of parts is a domain, over ℕ it is a domain with arities; union is + (5, 19)
and join is ∗ (4, 18). An arity counts derivations. It is not the value of a map, which may be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from everview.algebra.monoid_ring import FormalSum, Monoid
from everview.algebra.relation import Record, natural_join, record
from everview.algebra.ring import Semiring
from everview.lang.agca.evaluate import Rows, evaluate
from everview.lang.agca.scope import Names, unbound
from everview.lang.agca.syntax import (
    Assignment,
    Comparison,
    Constant,
    Expr,
    Variable,
    substituted,
)

A = TypeVar("A")
Database: TypeAlias = Mapping[str, Rows]


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison or an assignment, and the variables whose values decide it."""

    query: Comparison | Assignment
    inputs: Names


Part: TypeAlias = tuple[Record, frozenset[Condition]]
"""The tuples that extend a record and satisfy conditions whose inputs it does not all bind."""
Domain: TypeAlias = FormalSum[Part, A]


def everything(ring: Semiring[A], database: Database) -> Domain[A]:
    """All tuples, once each: the domain of a constant and of a variable (6, 7)."""
    nothing: Part = (record(), frozenset())
    meets: Callable[[Part, Part], Part | None] = lambda a, b: _meet(a, b, database)  # noqa: E731
    return FormalSum(ring, Monoid(nothing, meets), [(nothing, ring.one)])


def of_records(whole: Domain[A], records: Iterable[tuple[Record, int]]) -> Domain[A]:
    """The domain of a relation (2), each record with its arity."""
    ring = whole.ring
    return whole.like(((each, frozenset()), ring.sum([ring.one] * n)) for each, n in records)


def of_condition(whole: Domain[A], condition: Condition) -> Domain[A]:
    """The domain of a comparison (3) or an assignment (8), decided where its inputs are bound."""
    return whole * whole.like([((record(), frozenset({condition})), whole.ring.one)])


def _meet(left: Part, right: Part, database: Database) -> Part | None:
    """The tuples in both parts, None if there are none for certain."""
    joined = natural_join(left[0], right[0])
    return None if joined is None else _decided(joined, left[1] | right[1], database)


def _decided(bound: Record, conditions: frozenset[Condition], database: Database) -> Part | None:
    """A part without the conditions that its record decides; an assignment may bind more."""
    known = {name for name, _ in bound}
    ready = next((each for each in sorted(conditions, key=repr) if each.inputs <= known), None)
    if ready is None:
        return bound, conditions
    found = evaluate(ready.query, database)(restricted(bound, ready.inputs))
    for more, _ in found:
        joined = natural_join(bound, more)
        return None if joined is None else _decided(joined, conditions - {ready}, database)
    return None


def restricted(bound: Record, columns: Iterable[str]) -> Record:
    """A record with some of its columns only."""
    kept = frozenset(columns)
    return frozenset((name, value) for name, value in bound if name in kept)


def extended(domain: Domain[A], columns: Names) -> Domain[A]:
    """Ext (10): the domain over other variables; arities of what falls together add up.

    A variable more is free, and so needs nothing. One less is projected away; where a condition
    still looks at it, its value stands there instead, and a free one is refused.
    """

    def over_columns(part: Part) -> Part:
        bound, conditions = part
        values = {n: _constant(v) for n, v in bound if n not in columns}
        kept = frozenset(_substituted(each, values, columns) for each in conditions)
        return restricted(bound, columns), kept

    return domain.like((over_columns(part), arity) for part, arity in domain)


def _constant(value: Hashable) -> Expr:
    return Constant(value)  # type: ignore[arg-type]


def _substituted(condition: Condition, values: dict[str, Expr], columns: Names) -> Condition:
    query = condition.query
    target = frozenset({query.variable.name}) if isinstance(query, Assignment) else frozenset[str]()
    lost = (condition.inputs | target) - columns - frozenset(values)
    if lost or target & frozenset(values):
        raise unbound(Variable(min(lost or target)))
    made = substituted(query, {n: v for n, v in values.items() if n in condition.inputs})
    assert isinstance(made, Comparison | Assignment), made
    return Condition(made, condition.inputs - frozenset(values))


def inputs_in(domain: Domain[A], inputs: Names) -> Domain[A]:
    """The values that variables have in a domain, once each, whatever its conditions are.

    Without variables it is everything, also of a domain that is empty: nothing is asked of it.
    """
    one = domain.ring.one
    found = (
        {record(): None}
        if not inputs
        else {restricted(bound, inputs): None for (bound, _), _ in domain}
    )
    return domain.like(((each, frozenset()), one) for each in found)


def arity_at(domain: Domain[A], database: Database, **values: Any) -> A:
    """The arity of a tuple, which must have a value for each variable that a part binds.

    >>> from everview.algebra.ring import NATURALS
    >>> whole = everything(NATURALS, {})
    >>> arity_at(of_records(whole, [(record(a=1), 2)]), {}, a=1, b=7)
    2
    """
    here = record(**values)
    ring = domain.ring
    arities = (
        arity
        for (bound, conditions), arity in domain
        if bound <= here and _decided(here, conditions, database) is not None
    )
    return ring.sum(arities)


def entries(domain: Domain[A], columns: tuple[str, ...]) -> dict[tuple[Any, ...], A]:
    """The tuples of a finite domain, with their arities; a free variable is refused by name."""
    found: dict[tuple[Any, ...], A] = {}
    for (bound, conditions), arity in extended(domain, frozenset(columns)):
        values: dict[str, Any] = dict(bound)
        waiting = [name for each in conditions for name in each.inputs]
        free = [name for name in (*columns, *sorted(waiting)) if name not in values]
        if free:
            raise unbound(Variable(free[0]))
        key = tuple(values[name] for name in columns)
        found[key] = domain.ring.add(found.get(key, domain.ring.zero), arity)
    return found
