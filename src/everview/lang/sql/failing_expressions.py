"""Which expressions of a query can raise a given error, to show them beside it."""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of

_SHOWN_MAX_CHARACTERS = 100

_DIVIDES = (exp.Div, exp.IntDiv, exp.Mod)
_ADDS = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sum, exp.Pow, exp.Cast, exp.DateAdd)
_CASTS = (exp.Cast, exp.TsOrDsToDate, exp.StrToDate, exp.StrToTime, exp.Date)

_FAILURES: tuple[tuple[str, tuple[type[exp.Expr], ...], str], ...] = (
    (r"divi\w+ by zero|remainder", _DIVIDES, r"mod|pmod|div|try_divide"),
    (r"overflow|out of range|does not fit|numeric", (*_ADDS, *_DIVIDES), r"factorial|make_\w+"),
    (r"cast|convert|format|malformed|parse|invalid input", _CASTS, r"to_\w+|make_\w+|date"),
    (r"index|element|subscript", (exp.Bracket,), r"element_at|elt|get"),
)
"""A pattern of the error, and the operators and functions that can raise it."""


def failing_expressions(why: str, query: str) -> tuple[str, ...]:
    """The expressions of a query that can fail for the reason `why`, as the query has them."""
    kinds, called = _kinds(why)
    if not kinds:
        return ()
    try:
        tree = parse_query(query)
    except UserError:
        return ()
    shown: dict[str, None] = {}
    for node in tree.walk(bfs=False):
        named = isinstance(node, exp.Anonymous) and re.fullmatch(called, node.name.lower())
        if isinstance(node, kinds) or named:
            shown[_shortened(_written(node, query))] = None
    return tuple(shown)


def _written(node: exp.Expr, query: str) -> str:
    """An expression as it stands in the query; the parser does not say where a CAST begins."""
    span = None if isinstance(node, exp.Cast) else span_of(node, query)
    return span.stretch if span else node.sql(dialect=DIALECT)


def _kinds(why: str) -> tuple[tuple[type[exp.Expr], ...], str]:
    for words, kinds, called in _FAILURES:
        if re.search(words, why, re.IGNORECASE):
            return kinds, called
    return (), ""


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX_CHARACTERS else f"{text[:_SHOWN_MAX_CHARACTERS]}…"
