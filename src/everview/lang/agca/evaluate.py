"""The meaning of AGCA: ⟦q⟧ in the avalanche ring of relations, by definition.

From ring-of-databases §4, without regard to cost. Sum is taken at ⟨⟩ only, an assignment to a
variable that is bound compares, and a variable that occurs twice in an atom stands for one value.
A variable is not bound to NULL, and a row with a NULL in its column is not there, unless the
variable is nullable.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from everview.algebra.avalanche import Avalanche
from everview.algebra.relation import Record, Relation, record
from everview.algebra.ring import RATIONALS
from everview.errors import UserError
from everview.lang.agca.printer import print_query
from everview.lang.agca.scope import in_order, span_of, unbound
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Extract,
    Negate,
    Product,
    Sum,
    Variable,
)

Rows: TypeAlias = Iterable[tuple[tuple[Any, ...], int]]
"""Rows, each with its multiplicity."""
Meaning: TypeAlias = Avalanche[Record, Relation[Fraction]]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "like": lambda text, pattern: matches(pattern, text),
    "not like": lambda text, pattern: not matches(pattern, text),
}
NOTHING: Relation[Fraction] = Relation(RATIONALS)


def evaluate(query: Expr, database: Mapping[str, Rows]) -> Meaning:
    """⟦q⟧(A): from the bound variables to the records that the query binds, with their values.

    >>> r = {"R": [((1, 2), 5), ((3, 1), 7)]}
    >>> from everview.lang.agca.parse import parse_query
    >>> evaluate(parse_query("Sum(R(x, y) * 3 * x)"), r)(record())
    Relation({} ↦ 78)
    """
    match query:
        case Add(terms):
            return reduce(operator.add, (evaluate(each, database) for each in terms))
        case Product(factors):
            return reduce(operator.mul, (evaluate(each, database) for each in factors))
        case Negate(body):
            return -evaluate(body, database)
        case Sum(body):
            inner = evaluate(body, database)
            return Avalanche(NOTHING, lambda b: inner(b).project(()))
        case Atom():
            return _atom(query, database[query.relation])
        case Constant() | Variable():
            return Avalanche(NOTHING, lambda b: _scalar(_number(_bound(query, b), query)))
        case Comparison(sign, left, right):
            sides = _value(left, database), _value(right, database)
            return Avalanche(NOTHING, lambda b: _scalar(_holds(sign, sides[0](b), sides[1](b))))
        case Extract():
            part = _value(query, database)
            return Avalanche(NOTHING, lambda b: _scalar(_number(part(b), query)))
        case Assignment(variable, value):
            return _assignment(variable.name, _value(value, database))


def value_of(query: Expr, database: Mapping[str, Rows], **bound: Any) -> Fraction:
    """⟦q⟧(A)(b)(⟨⟩): the number that an expression is, at a binding."""
    return evaluate(query, database)(record(**bound))[record()]


def rows_of(
    definition: Definition, factors: Iterable[tuple[Expr, ...]], database: Mapping[str, Rows]
) -> dict[tuple[Any, ...], Fraction]:
    """The rows of a view from its monomials: a value for each group that has bindings."""
    keys = definition.key_names
    groups: dict[tuple[Any, ...], Fraction] = {} if keys else {(): Fraction(0)}
    for each in factors:
        ordered = in_order(each, frozenset())
        assert ordered is not None, each
        numbers = [f for f in ordered if not isinstance(f, Atom | Comparison | Assignment)]
        others = [f for f in ordered if isinstance(f, Atom | Comparison | Assignment)]
        for bindings, multiplicity in evaluate(_product(others), database)(record()):
            bound = dict(bindings)
            key = tuple(bound[name] for name in keys)
            value = evaluate(_product(numbers), database)(bindings)[record()]
            groups[key] = groups.get(key, Fraction(0)) + multiplicity * value
    return groups


def _product(factors: Sequence[Expr]) -> Expr:
    return Product((Constant(1), *factors))


def _scalar(value: Any) -> Relation[Fraction]:
    return Relation.scalar(RATIONALS, Fraction(value))


def _atom(atom: Atom, rows: Rows) -> Meaning:
    found: list[tuple[Record, Fraction]] = []
    for row, multiplicity in rows:
        held = [
            (argument, value)
            for argument, value in zip(atom.arguments, row, strict=True)
            if isinstance(argument, Variable)
        ]
        pairs = frozenset((argument.name, value) for argument, value in held)
        agrees = len(pairs) == len({name for name, _ in pairs})
        if agrees and all(argument.nullable or value is not None for argument, value in held):
            found.append((pairs, Fraction(multiplicity)))
    return Avalanche.constant(Relation(RATIONALS, found))


def _assignment(name: str, value: Any) -> Meaning:
    def at(b: Record) -> Relation[Fraction]:
        found, before = value(b), dict(b)
        new = record(**{name: found})
        agrees = name not in before or _holds("=", before[name], found)
        return Relation(RATIONALS, [(new, Fraction(1))] if agrees else ())

    return Avalanche(NOTHING, at)


def _value(query: Expr, database: Mapping[str, Rows]) -> Any:
    """The value of an expression at a binding: of any type if it is a variable or a constant."""
    if isinstance(query, Variable | Constant):
        return lambda b: _bound(query, b)
    if isinstance(query, Extract):
        date, unit = _value(query.date, database), query.unit
        return lambda b: None if date(b) is None else getattr(date(b), unit)
    meaning = evaluate(query, database)
    return lambda b: meaning(b)[record()]


def _bound(query: Variable | Constant, b: Record) -> Any:
    bound: dict[str, Any] = dict(b)
    if isinstance(query, Variable) and query.name not in bound:
        raise unbound(query)
    value = query.value if isinstance(query, Constant) else bound[query.name]
    return Fraction(value) if isinstance(value, Decimal) else value


def _holds(sign: str, left: Any, right: Any) -> bool:
    return left is not None and right is not None and _COMPARE[sign](left, right)


def _number(value: Any, query: Expr) -> Fraction:
    if value is None:
        return Fraction(0)
    if isinstance(value, int | Fraction | Decimal) and not isinstance(value, bool):
        return Fraction(value)
    raise UserError(
        "G005",
        f"{print_query(query)} is no number",
        span=span_of(query),
        remedy="compare it instead",
    )


def matches(pattern: str, text: str) -> bool:
    """LIKE: `_` is any character, `%` any text, and a backslash takes the next one literally.

    >>> matches("PROMO%", "PROMO BRASS"), matches("a_c", "abbc")
    (True, False)
    """
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    shown = (wild.get(each) or re.escape(each[-1]) for each in parts)
    return re.fullmatch("".join(shown), text, re.DOTALL) is not None
