"""Which expressions of a query can fail in the way that one of its values failed."""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of

_LONGEST = 100
"""So many characters of an expression are shown."""

_DIVIDES = (exp.Div, exp.IntDiv, exp.Mod)
_ADDS = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sum, exp.Pow, exp.Cast, exp.DateAdd)
_CASTS = (exp.Cast, exp.TsOrDsToDate, exp.StrToDate, exp.StrToTime, exp.Date)

_WAYS: tuple[tuple[str, tuple[type[exp.Expr], ...], str], ...] = (
    (r"divi\w+ by zero|remainder", _DIVIDES, r"mod|pmod|div|try_divide"),
    (r"overflow|out of range|does not fit|numeric", (*_ADDS, *_DIVIDES), r"factorial|make_\w+"),
    (r"cast|convert|format|malformed|parse|invalid input", _CASTS, r"to_\w+|make_\w+|date"),
    (r"index|element|subscript", (exp.Bracket,), r"element_at|elt|get"),
)
"""Words of a failure, and the operators and functions that fail with them."""


def failing_expressions(why: str, query: str) -> tuple[str, ...]:
    """The expressions of a query that can fail for that reason, as they are written in it."""
    kinds, called = _kinds(why)
    if not kinds:
        return ()
    try:
        tree = parse_query(query)
    except UserError:
        return ()
    found: dict[str, None] = {}
    for node in tree.walk(bfs=False):
        named = isinstance(node, exp.Anonymous) and re.fullmatch(called, node.name.lower())
        if isinstance(node, kinds) or named:
            found[_shortened(_written(node, query))] = None
    return tuple(found)


def _written(node: exp.Expr, query: str) -> str:
    """An expression as it stands in the query; a CAST is not told where it begins."""
    span = None if isinstance(node, exp.Cast) else span_of(node, query)
    return span.stretch if span else node.sql(dialect=DIALECT)


def _kinds(why: str) -> tuple[tuple[type[exp.Expr], ...], str]:
    for words, kinds, called in _WAYS:
        if re.search(words, why, re.IGNORECASE):
            return kinds, called
    return (), ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
