"""The expressions of AGCA, the aggregation calculus: a closed union of small frozen records.

From ring-of-databases §4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from everview.errors import Span

Value: TypeAlias = int | Decimal | str | date


@dataclass(frozen=True, slots=True)
class Constant:
    """A value in the text: c. Only a number may be a factor or a summand."""

    value: Value
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """The value that a variable is bound to: x.

    As an argument of a relation, a nullable one is bound to NULL too: x?. NULL satisfies no
    comparison, not even x = x, and is 0 as a number.
    """

    name: str
    nullable: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Any value of a column, NULL too, which is bound to nothing: _."""


@dataclass(frozen=True, slots=True)
class Atom:
    """The rows of a relation with their multiplicities, columns bound to variables: R(x, y)."""

    relation: str
    arguments: tuple[Variable | Wildcard, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Add:
    """q + q + …"""

    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """q * q * …; what a factor binds is bound in those to its right."""

    factors: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Negate:
    """−q: the opposite in the ring, which is no difference of sets."""

    body: Expr


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of the values of q over all that q binds and is not bound outside: Sum(q)."""

    body: Expr


@dataclass(frozen=True, slots=True)
class Comparison:
    """1 where the values of two expressions compare so, else 0: q θ q."""

    operator: str
    left: Expr
    right: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Binds a variable to the value of an expression; 1, or 0 if it is bound to another: x := q."""

    variable: Variable
    value: Expr


@dataclass(frozen=True, slots=True)
class Extract:
    """The year, month or day of a date: extract(unit from q)."""

    unit: str
    date: Expr


Expr: TypeAlias = (
    Constant | Variable | Atom | Add | Product | Negate | Sum | Comparison | Assignment | Extract
)

UNITS = ("year", "month", "day")
"""What may be extracted from a date."""

COMPLEMENT = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "like": "not like",
    "not like": "like",
}
"""The comparisons θ, each with the one that holds where it does not: θ̄."""

ZERO = Constant(0)
ONE = Constant(1)


@dataclass(frozen=True, slots=True)
class Definition:
    """A view: its name, its group variables, and the expression that is summed for each group."""

    name: str
    keys: tuple[Variable, ...]
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the group variables."""
        return tuple(each.name for each in self.keys)


def children(query: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression is made of."""
    match query:
        case Add(parts) | Product(parts):
            return parts
        case Negate(body) | Sum(body):
            return (body,)
        case Comparison(_, left, right):
            return (left, right)
        case Assignment(_, value) | Extract(_, value):
            return (value,)
        case _:
            return ()


def walk(query: Expr) -> Iterator[Expr]:
    """An expression and everything in it."""
    yield query
    for each in children(query):
        yield from walk(each)


def rebuilt(query: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with each of its children changed."""
    match query:
        case Add(parts):
            return Add(tuple(map(change, parts)))
        case Product(parts):
            return Product(tuple(map(change, parts)))
        case Negate(body) | Sum(body):
            return replace(query, body=change(body))
        case Comparison(_, left, right):
            return replace(query, left=change(left), right=change(right))
        case Assignment(_, value):
            return replace(query, value=change(value))
        case Extract(_, value):
            return replace(query, date=change(value))
        case _:
            return query


def variables(query: Expr) -> Iterator[Variable]:
    """Every occurrence of a variable, in the order of the text."""
    match query:
        case Variable():
            yield query
        case Atom(_, arguments):
            yield from (each for each in arguments if isinstance(each, Variable))
        case Assignment(variable):
            yield variable
    for each in children(query):
        yield from variables(each)


def bound_variables(query: Expr) -> Iterator[Variable]:
    """The variables that relations and assignments bind, in the order of the text."""
    for each in walk(query):
        if isinstance(each, Atom):
            yield from (a for a in each.arguments if isinstance(a, Variable))
        elif isinstance(each, Assignment):
            yield each.variable


def names_in(query: Expr) -> frozenset[str]:
    """The names of the variables that occur."""
    return frozenset(each.name for each in variables(query))


def substituted(query: Expr, values: dict[str, Expr]) -> Expr:
    """An expression with variables replaced, those that a relation binds by variables only."""

    def of_variable(variable: Variable) -> Variable:
        new = values.get(variable.name, variable)
        assert isinstance(new, Variable), new
        return replace(new, nullable=variable.nullable)

    match query:
        case Variable(name):
            return values.get(name, query)
        case Atom(_, arguments):
            given = (of_variable(a) if isinstance(a, Variable) else a for a in arguments)
            return replace(query, arguments=tuple(given))
        case Assignment(variable, value):
            return Assignment(of_variable(variable), substituted(value, values))
        case _:
            return rebuilt(query, lambda part: substituted(part, values))


def relations(query: Expr) -> tuple[str, ...]:
    """The names of the relations that are read, in the order of the text."""
    return tuple(dict.fromkeys(q.relation for q in walk(query) if isinstance(q, Atom)))


def is_term(query: Expr) -> bool:
    """Whether an expression is a polynomial of variables and constants."""
    return all(isinstance(q, Constant | Variable | Add | Product | Negate) for q in walk(query))


def plus(*terms: Expr) -> Expr:
    """q + q, without zeros."""
    flat = [
        part
        for term in terms
        for part in (term.terms if isinstance(term, Add) else (term,))
        if part != ZERO
    ]
    return flat[0] if len(flat) == 1 else Add(tuple(flat)) if flat else ZERO


def times(*factors: Expr) -> Expr:
    """q * q, without ones; zero if a factor is."""
    flat = [
        part
        for factor in factors
        for part in (factor.factors if isinstance(factor, Product) else (factor,))
        if part != ONE
    ]
    if ZERO in flat:
        return ZERO
    return flat[0] if len(flat) == 1 else Product(tuple(flat)) if flat else ONE


def minus(query: Expr) -> Expr:
    """−q, with −0 = 0 and −−q = q."""
    if query == ZERO:
        return ZERO
    return query.body if isinstance(query, Negate) else Negate(query)
