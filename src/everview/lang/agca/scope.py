"""Range restriction: every variable is bound before, from the left, where its value is used."""

from __future__ import annotations

from collections.abc import Iterable

from everview.errors import Span, UserError
from everview.lang.agca.printer import print_name, print_query
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Expr,
    Product,
    Sum,
    Variable,
    children,
    names_in,
    walk,
)

Names = frozenset[str]


def check_scope(query: Expr, bound: Names) -> Names:
    """The variables bound after an expression, given those bound before it.

    After a sum of expressions, only those are bound that every one of them binds.
    """
    match query:
        case Variable(name):
            if name not in bound:
                raise unbound(query)
            return bound
        case Atom():
            return bound | names_in(query)
        case Assignment(variable, value):
            _check_value(value, bound)
            return bound | {variable.name}
        case Comparison(_, left, right):
            _check_value(left, bound)
            _check_value(right, bound)
            return bound
        case Sum(body):
            check_scope(body, bound)
            return bound
        case Product(factors):
            for each in factors:
                bound = check_scope(each, bound)
            return bound
        case Add(terms):
            return frozenset.intersection(*(check_scope(each, bound) for each in terms))
        case _:
            for each in children(query):
                bound = check_scope(each, bound)
            return bound


def in_order(factors: Iterable[Expr], bound: Names) -> tuple[Expr, ...] | None:
    """The factors so that each comes after what binds its variables; None if there is no order.

    Factors that could stand in several places keep the order of the text.
    """
    left, found = list(factors), list[Expr]()
    while left:
        ready = next((each for each in left if needs(each) <= bound), None)
        if ready is None:
            return None
        left.remove(ready)
        found.append(ready)
        bound |= binds(ready)
    return tuple(found)


def binds(factor: Expr) -> Names:
    """The variables that a factor of a monomial binds."""
    match factor:
        case Atom():
            return names_in(factor)
        case Assignment(variable):
            return frozenset({variable.name})
        case _:
            return frozenset()


def needs(factor: Expr) -> Names:
    """The variables that must be bound before a factor of a monomial."""
    match factor:
        case Atom():
            return frozenset()
        case Assignment(_, value):
            return needs_of_value(value)
        case _:
            return needs_of_value(factor)


def needs_of_value(query: Expr) -> Names:
    """The variables whose values an expression uses and does not bind itself."""
    match query:
        case Variable(name):
            return frozenset({name})
        case Sum(body):
            return _free(body)
        case _:
            return frozenset[str]().union(*(needs_of_value(each) for each in children(query)))


def _free(query: Expr) -> Names:
    """The variables that are used in an expression before anything in it binds them."""
    match query:
        case Product(factors):
            found, bound = frozenset[str](), frozenset[str]()
            for each in factors:
                found |= _free(each) - bound
                bound |= _bound_by(each)
            return found
        case Add(terms):
            return frozenset[str]().union(*map(_free, terms))
        case Atom():
            return frozenset()
        case Assignment(_, value):
            return _free(value)
        case Variable(name):
            return frozenset({name})
        case _:
            return frozenset[str]().union(*map(_free, children(query)))


def _bound_by(query: Expr) -> Names:
    match query:
        case Product(factors):
            return frozenset[str]().union(*map(_bound_by, factors))
        case Add(terms):
            return frozenset.intersection(*map(_bound_by, terms))
        case Sum() | Comparison():
            return frozenset()
        case Atom() | Assignment():
            return binds(query)
        case _:
            return frozenset[str]().union(*map(_bound_by, children(query)))


def _check_value(query: Expr, bound: Names) -> None:
    """Check an expression that stands for one value: it binds nothing but inside a Sum."""
    match query:
        case Atom() | Assignment():
            raise UserError(
                "G004",
                f"{print_query(query)} stands where one value is wanted",
                span=span_of(query),
                remedy="write Sum(…) around it",
            )
        case Sum() | Comparison() | Variable():
            check_scope(query, bound)
        case _:
            for each in children(query):
                _check_value(each, bound)


def unbound(variable: Variable) -> UserError:
    """The error for a variable without a value."""
    name = print_name(variable.name)
    return UserError(
        "G003",
        f"the variable {name} is not bound here",
        span=variable.span,
        remedy=f"bind it to the left, by a relation or by ({name} := …)",
    )


def span_of(query: Expr) -> Span | None:
    """A place in the text where an expression stands."""
    spans = (getattr(each, "span", None) for each in walk(query))
    return next((each for each in spans if each is not None), None)
