"""Expressions of AGCA as text that reads back as the same expression."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from everview.expr import scalar
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
    Wildcard,
)

_PLAIN = re.compile(r"[^\W\d]\w*'*")
_RESERVED = ("sum", "like", "not", "date", "_")


def print_definition(definition: Definition) -> str:
    """A definition, without the semicolon."""
    keys = ", ".join(print_name(each) for each in definition.key_names)
    return f"{print_name(definition.name)}[{keys}] := {print_query(definition.body)}"


def print_query(query: Expr) -> str:
    """An expression as text.

    >>> print_query(Sum(Product((Atom("R", (Variable("a"),)), Negate(Variable("a"))))))
    'Sum(R(a) * -a)'
    """
    if not isinstance(query, Add):
        return _product(query)
    first, *others = query.terms
    text = _product(first)
    for each in others:
        text += f" - {_product(each.body)}" if isinstance(each, Negate) else f" + {_product(each)}"
    return text


def _product(query: Expr) -> str:
    if isinstance(query, Product):
        return " * ".join(map(_factor, query.factors))
    return _factor(query)


def _factor(query: Expr) -> str:
    match query:
        case Constant(value):
            return print_value(value)
        case Variable(name):
            return print_name(name)
        case Atom(relation, arguments):
            return f"{print_name(relation)}({', '.join(map(_argument, arguments))})"
        case Sum(body):
            return f"Sum({print_query(body)})"
        case Negate(Constant(int() | Decimal()) as number):
            return f"-({print_value(number.value)})"
        case Negate(body):
            return f"-{_factor(body)}"
        case Comparison(operator, left, right):
            return f"({print_query(left)} {operator} {print_query(right)})"
        case Assignment(variable, value):
            return f"({print_name(variable.name)} := {print_query(value)})"
        case Extract(unit, value):
            return f"extract({unit} from {print_query(value)})"
        case _:
            return f"({print_query(query)})"


def _argument(argument: Variable | Wildcard) -> str:
    if isinstance(argument, Wildcard):
        return "_"
    return print_name(argument.name) + "?" * argument.nullable


def print_value(value: int | Decimal | str | date) -> str:
    """A constant as text."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case date():
            return f"date '{value.isoformat()}'"
        case Decimal():
            text = f"{value:f}"
            return text if "." in text else f"{text}.0"
        case _:
            return str(value)


def print_name(name: str) -> str:
    """A name, in backquotes where it needs them."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _RESERVED
    return name if plain else scalar.column(name)
