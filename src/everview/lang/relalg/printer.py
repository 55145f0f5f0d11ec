"""The text of an expression of relational algebra: what `parse_query` reads again."""

from __future__ import annotations

import re

from everview.expr.quoting import spark_name
from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    Mod,
    NaturalJoin,
    Nothing,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
)
from everview.lang.relalg.tokenize import SIGNS

_BINARY: dict[type[Expression], str] = {
    Union: "∪",
    Difference: "−",
    Intersection: "∩",
    Product: "×",
    NaturalJoin: "⋈",
}
_RESERVED = {*SIGNS, "as"}


def print_expression(expression: Expression) -> str:
    """The text of an expression, which nobody needs to know precedences to read.

    >>> from everview.lang.relalg.parse import parse_query
    >>> print_expression(parse_query("select[a>1](r) minus (s join t)"))
    'σ[`a` > 1](r) − (s ⋈ t)'

    What a transaction changes is written as in the paper: ∇R and ΔR, and mod(S) for what S
    will be.
    """
    match expression:
        case Relation(name):
            return print_name(name)
        case Select(child, condition):
            return f"σ[{condition}]({print_expression(child)})"
        case Project(child, columns):
            return f"Π[{', '.join(map(_column, columns))}]({print_expression(child)})"
        case Product(left, right) | Union(left, right) | Intersection(left, right):
            return _between(expression, left, right)
        case Difference(left, right) | NaturalJoin(left, right):
            return _between(expression, left, right)
        case Nothing():
            return "∅"
        case Deleted(name):
            return f"∇{print_name(name)}"
        case Inserted(name):
            return f"Δ{print_name(name)}"
        case Add(child):
            return f"add({print_expression(child)})"
        case Sub(child):
            return f"sub({print_expression(child)})"
        case Mod(child):
            return f"mod({print_expression(child)})"


def print_name(name: str) -> str:
    """A name as it is written in a text, in quotes where it needs them."""
    plain = re.fullmatch(r"[^\W\dσΠ]\w*", name) and name.lower() not in _RESERVED
    return name if plain else spark_name(name)


def _column(pair: tuple[str, str]) -> str:
    own, given = map(print_name, pair)
    return own if own == given else f"{own} AS {given}"


def _between(expression: Expression, left: Expression, right: Expression) -> str:
    return f"{_operand(left)} {_BINARY[type(expression)]} {_operand(right)}"


def _operand(expression: Expression) -> str:
    """An operand, in parentheses where it has an operator between two itself."""
    text = print_expression(expression)
    return f"({text})" if type(expression) in _BINARY else text
