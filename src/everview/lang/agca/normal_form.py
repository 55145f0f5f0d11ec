"""The polynomial normal form: a sum of monomials, each a number times factors in order.

From ring-of-databases §5: products distribute over sums, constants come first, and a Sum that is a
factor is opened, its own variables renamed where they would meet others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    is_term,
    minus,
    names_in,
    plus,
    substituted,
    times,
    variables,
)

Factor: TypeAlias = Expr
Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Monomial:
    """A number times factors: relations, comparisons, assignments and values."""

    coefficient: Fraction
    factors: tuple[Factor, ...]

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The relations among the factors."""
        return tuple(each for each in self.factors if isinstance(each, Atom))

    def as_query(self) -> Expr:
        """The monomial as an expression."""
        if abs(self.coefficient) == 1:
            body = times(*self.factors)
        else:
            body = times(constant(abs(self.coefficient)), *self.factors)
        return minus(body) if self.coefficient < 0 else body


def normal_form(
    query: Expr, bound: Names = frozenset(), whole: Iterable[Names] = ()
) -> tuple[Monomial, ...]:
    """The monomials of an expression, equal ones added up.

    A polynomial over variables that are among those of one of `whole` stays one factor.

    >>> from everview.lang.agca.parse import parse_query
    >>> from everview.lang.agca.printer import print_query
    >>> q = parse_query("(2 * R(x) - S(x)) * (x + 1)")
    >>> print_query(polynomial(normal_form(q)))
    '2 * R(x) * x + 2 * R(x) - S(x) * x - S(x)'
    """
    return added(monomials(query, bound, whole=whole))


def added(terms: Iterable[Monomial]) -> tuple[Monomial, ...]:
    """Monomials with equal ones added up, and those gone whose coefficient is zero."""
    sums: dict[tuple[Factor, ...], Fraction] = {}
    for each in terms:
        sums[each.factors] = sums.get(each.factors, Fraction(0)) + each.coefficient
    return tuple(Monomial(number, factors) for factors, number in sums.items() if number)


def polynomial(terms: Iterable[Monomial]) -> Expr:
    """The sum of monomials."""
    return plus(*(each.as_query() for each in terms))


def monomials(
    query: Expr,
    bound: Names = frozenset(),
    *,
    whole_terms: bool = False,
    whole: Iterable[Names] = (),
) -> tuple[Monomial, ...]:
    """The monomials of an expression, as they come, where some variables are bound outside.

    With `whole_terms`, a polynomial of variables and constants stays one factor.
    """
    expansion = _Expansion(query, bound, whole_terms, tuple(whole))
    return tuple(Monomial(number, factors) for number, factors, _ in expansion.of(query, bound))


def monomials_of(definition: Definition) -> tuple[tuple[Factor, ...], ...]:
    """The factors of each monomial of a view, with its coefficient as one of them."""
    found = monomials(definition.body, frozenset(definition.key_names), whole_terms=True)
    return tuple((*each.factors, constant(each.coefficient)) for each in found)


def constant(number: Fraction) -> Constant:
    """A number that has finitely many decimal places, as a constant."""
    if number.denominator == 1:
        return Constant(number.numerator)
    places = next(n for n in range(1, 400) if 10**n % number.denominator == 0)
    digits = number.numerator * (10**places // number.denominator)
    sign, shown = (1 if digits < 0 else 0), tuple(map(int, str(abs(digits))))
    return Constant(Decimal((sign, shown, -places)))


Expanded: TypeAlias = tuple[Fraction, tuple[Factor, ...], Names]


class _Expansion:
    """Expands one expression; names it makes up occur nowhere else in it."""

    def __init__(
        self, query: Expr, bound: Names, whole_terms: bool, whole: tuple[Names, ...]
    ) -> None:
        self.whole = whole
        self.whole_terms = whole_terms
        self.occurrences = Counter(each.name for each in variables(query))
        self.occurrences.update(bound)

    def of(self, query: Expr, bound: Names) -> Iterator[Expanded]:
        """Coefficient, factors and bound variables of each monomial."""
        match query:
            case Add(terms) if not self._stays(query):
                for each in terms:
                    yield from self.of(each, bound)
            case Negate(body) if not (self.whole_terms and is_term(query)):
                for number, factors, names in self.of(body, bound):
                    yield -number, factors, names
            case Product(factors):
                yield from self._product(factors, bound)
            case Sum(body):
                yield from self._opened(body, bound)
            case Constant(int() | Decimal() as value):
                yield Fraction(value), (), bound
            case Atom():
                yield Fraction(1), (query,), bound | names_in(query)
            case Assignment(variable, value):
                made = Assignment(variable, self._with_fresh_variables(value, bound))
                yield Fraction(1), (made,), bound | {variable.name}
            case Comparison():
                yield Fraction(1), (self._with_fresh_variables(query, bound),), bound
            case _:
                yield Fraction(1), (query,), bound

    def _stays(self, query: Expr) -> bool:
        if not is_term(query):
            return False
        used = names_in(query)
        return self.whole_terms or (bool(used) and any(used <= each for each in self.whole))

    def _product(self, factors: tuple[Expr, ...], bound: Names) -> Iterator[Expanded]:
        if not factors:
            yield Fraction(1), (), bound
            return
        *before, last = factors
        for number, head, names in self._product(tuple(before), bound):
            for other, tail, more in self.of(last, names):
                yield number * other, head + tail, more

    def _opened(self, body: Expr, bound: Names) -> Iterator[Expanded]:
        """The monomials of a Sum; those of its variables that others are called like, renamed."""
        inside = Counter(each.name for each in variables(body))
        for number, factors, names in self.of(body, bound):
            values: dict[str, Expr] = {}
            for name in sorted(names - bound):
                if self.occurrences[name] > inside[name]:
                    values[name] = Variable(self._fresh(name))
            renamed = (substituted(each, values) for each in factors) if values else factors
            yield number, tuple(renamed), bound

    def _with_fresh_variables(self, value: Expr, bound: Names) -> Expr:
        """A value whose own variables, those of a Sum in it, are called like no others."""
        inside = Counter(each.name for each in variables(value))
        values: dict[str, Expr] = {
            name: Variable(self._fresh(name))
            for name in sorted({*inside} - bound)
            if self.occurrences[name] > inside[name]
        }
        return substituted(value, values) if values else value

    def _fresh(self, name: str) -> str:
        while name in self.occurrences:
            name += "'"
        self.occurrences[name] += 1
        return name
