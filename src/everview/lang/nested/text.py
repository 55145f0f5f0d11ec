"""The text of NRC⁺, printed.

Each sign has an ASCII spelling that the parser reads too: ⊎ is `(+)`, ⊖ is `(-)`, × is `(*)`, ∅ is
a pair of braces, and ⟨…⟩ is `(…)`.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import assert_never

from everview.expr.quoting import spark_name
from everview.lang.nested.primitives import PRIMITIVES
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Let,
    Negate,
    Record,
    Rel,
    Sng,
    Times,
    Union,
    Value,
    Var,
)
from everview.lang.nested.types import place

_KEYWORDS = "for in where union let if then else sng flatten none true false and or not empty"
WORDS = frozenset((*_KEYWORDS.split(), "sum", "len", "min", "max", "any", "all"))
"""Names that are no names unless they stand in backquotes."""

_PLAIN = re.compile(r"[^\W\d]\w*")
_LOOSE, _UNION, _TIMES, _TIGHT = 0, 1, 2, 10
"""How close a construct binds; primitives lie between × and the tight ones."""


def print_expr(expr: Expr) -> str:
    """The text of an expression, which `parse_expr` reads back.

    >>> print_expr(For("m", Rel("M"), None, Sng(Field(Var("m"), "name"))))
    'for m in M union sng(m.name)'
    """
    return _text(expr, _LOOSE)


def quoted(name: str) -> str:
    """A name, in backquotes where it is a word of the language or has other characters."""
    if _PLAIN.fullmatch(name) and name.lower() not in WORDS:
        return name
    return spark_name(name)


def _text(expr: Expr, around: int) -> str:
    """The text, in parentheses where what stands `around` it binds closer."""
    text, binds = _bare(expr)
    return f"({text})" if binds < around else text


def _bare(expr: Expr) -> tuple[str, int]:
    match expr:
        case Rel(name) | Var(name):
            return quoted(name), _TIGHT
        case Let(name, bound, body):
            return f"let {quoted(name)} := {_text(bound, _LOOSE)} in {_text(body, _LOOSE)}", _LOOSE
        case For(name, source, where, body):
            test = f" where {_text(where, _LOOSE)}" if where is not None else ""
            head = f"for {quoted(name)} in {_text(source, _UNION)}{test}"
            return f"{head} union {_text(body, _LOOSE)}", _LOOSE
        case Sng(item):
            return f"sng({_text(item, _LOOSE)})", _TIGHT
        case Empty():
            return "∅", _TIGHT
        case Union(left, right):
            return f"{_text(left, _UNION)} ⊎ {_text(right, _UNION + 1)}", _UNION
        case Negate(child):
            return f"⊖{_text(child, _TIGHT)}", _TIGHT
        case Times(left, right):
            return f"{_text(left, _TIMES)} × {_text(right, _TIMES + 1)}", _TIMES
        case Flatten(child):
            return f"flatten({_text(child, _LOOSE)})", _TIGHT
        case Record(fields):
            return _record(fields), _TIGHT
        case Field(child, name):
            return f"{_text(child, _TIGHT)}.{quoted(name)}", _TIGHT
        case Const(value):
            return _constant(value), _TIGHT
        case Apply(function, args):
            return _applied(function, args)
        case Choice(test, then, otherwise):
            parts = (_text(test, _UNION), _text(then, _UNION), _text(otherwise, _LOOSE))
            return "if {} then {} else {}".format(*parts), _LOOSE
        case Aggregate(function, child):
            return f"{function}({_text(child, _LOOSE)})", _TIGHT
        case _:
            assert_never(expr)


def _record(fields: tuple[tuple[str, Expr], ...]) -> str:
    if all(name == place(i) for i, (name, _) in enumerate(fields)):
        return f"⟨{', '.join(_text(each, _LOOSE) for _, each in fields)}⟩"
    return f"⟨{', '.join(f'{quoted(name)}: {_text(each, _LOOSE)}' for name, each in fields)}⟩"


def _applied(function: str, args: tuple[Expr, ...]) -> tuple[str, int]:
    primitive = PRIMITIVES[function]
    if not primitive.infix:
        return f"{function}({', '.join(_text(each, _LOOSE) for each in args)})", _TIGHT
    binds = primitive.binds + _TIMES
    left, right = _text(args[0], binds), _text(args[1], binds + 1)
    return f"{left} {function} {right}", binds


def _constant(value: Value) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
        case float():
            text = repr(value)
            return text if "e" in text else f"{text}e0"
        case Decimal():
            return f"decimal('{value:f}')"
        case date():
            return f"date('{value.isoformat()}')"
        case int():
            return str(value) if value >= 0 else f"({value})"
