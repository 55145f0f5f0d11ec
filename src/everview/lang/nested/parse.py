"""The text of NRC⁺, read: tokens to expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from math import isfinite

from everview.arguments import named
from everview.errors import Span, UserError
from everview.lang.nested.primitives import ARITIES, PRIMITIVES
from everview.lang.nested.syntax import (
    AGGREGATES,
    Aggregate,
    AggregateName,
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
    Var,
)
from everview.lang.nested.text import WORDS
from everview.lang.nested.types import place

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<sign>:= | ⊎ | \(\+\) | ⊖ | \(-\) | × | \(\*\) | ∅ | \{\s*\}
        | == | != | <= | >= | // | ⟨ | ⟩ | [()<>.,:+\-*/%])
    | (?P<float>\d+\.\d+(?:[eE][-+]?\d+)? | \d+[eE][-+]?\d+)
    | (?P<int>\d+)
    | (?P<string>'(?:[^'\\]|\\.)*')
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<name>[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_ASCII = {"(+)": "⊎", "(-)": "⊖", "(*)": "×"}
_DEPTH_MAX = 50
"""How deep an expression may be nested."""

_INFIX = [
    [name for name, each in PRIMITIVES.items() if each.binds == binds]
    for binds in sorted({each.binds for each in PRIMITIVES.values() if each.infix})
]
_REFUSED = {
    "distinct": "a SQL view with SELECT DISTINCT",
    "empty": "len(e) == 0, or a SQL view with NOT EXISTS",
    "member": "any(for x in e union sng(x == y)), or a SQL view with IN",
    "subtract": "a SQL view with EXCEPT ALL",
}
"""What lies outside the positive fragment, and what is offered instead."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    span: Span


def parse_expr(text: str) -> Expr:
    """The expression that a text means.

    >>> parse_expr("for m in M where m.year >= 2010 union sng(m.name)").name
    'm'
    """
    reader = _Reader(_tokens(text))
    found = reader.expression(frozenset())
    reader.must_end()
    return found


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _syntax(f"{text[at]!r} means nothing here", Span(text, at, at + 1))
        if match.lastgroup != "space":
            sign = _ASCII.get(match[0], "∅" if match[0].startswith("{") else match[0])
            found.append(_Token(str(match.lastgroup), sign, Span(text, at, match.end())))
        at = match.end()
    return [*found, _Token("end", "the end", Span(text, len(text), len(text)))]


Names = frozenset[str]
"""The variables that are bound around an expression; other names are relations."""


@dataclass(slots=True)
class _Reader:
    """Recursive descent over the tokens of one text."""

    tokens: list[_Token]
    at: int = 0
    depth: int = field(default=0)

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def has(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or words."""
        return self.next.kind in ("sign", "name") and self.next.text in texts

    def taken(self, *texts: str) -> bool:
        """Whether the next token was one of these; it is taken then."""
        found = self.has(*texts)
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.taken(text):
            raise _syntax(f"expected {text}, found {self.next.text}", self.next.span)

    def must_end(self) -> None:
        if self.next.kind != "end":
            raise _syntax(f"{self.next.text} is one too many", self.next.span)

    def name(self) -> str:
        token = self.take()
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`")
        if token.kind != "name" or token.text.lower() in WORDS:
            raise _syntax(f"expected a name, found {token.text}", token.span)
        return token.text

    def expression(self, bound: Names) -> Expr:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise _syntax("the expression is nested too deep", self.next.span)
        try:
            return self._expression(bound)
        finally:
            self.depth -= 1

    def _expression(self, bound: Names) -> Expr:
        if self.taken("let"):
            name = self.name()
            self.expect(":=")
            value = self.expression(bound)
            self.expect("in")
            return Let(name, value, self.expression(bound | {name}))
        if self.taken("for"):
            name = self.name()
            self.expect("in")
            source = self.union(bound)
            inner = bound | {name}
            where = self.expression(inner) if self.taken("where") else None
            self.expect("union")
            return For(name, source, where, self.expression(inner))
        if self.taken("if"):
            test = self.expression(bound)
            self.expect("then")
            then = self.expression(bound)
            self.expect("else")
            return Choice(test, then, self.expression(bound))
        return self.union(bound)

    def union(self, bound: Names) -> Expr:
        found = self.times(bound)
        while self.taken("⊎"):
            found = Union(found, self.times(bound))
        return found

    def times(self, bound: Names) -> Expr:
        found = self.infix(0, bound)
        while self.taken("×"):
            found = Times(found, self.infix(0, bound))
        return found

    def infix(self, level: int, bound: Names) -> Expr:
        if level == len(_INFIX):
            return self.postfix(bound)
        found = self.infix(level + 1, bound)
        while self.has(*_INFIX[level]):
            function = self.take().text
            found = Apply(function, (found, self.infix(level + 1, bound)))
        return found

    def postfix(self, bound: Names) -> Expr:
        if self.taken("⊖"):
            return Negate(self.postfix(bound))
        found = self.atom(bound)
        while self.taken("."):
            found = Field(found, self.name())
        return found

    def atom(self, bound: Names) -> Expr:
        token = self.next
        if self.taken("∅"):
            return Empty()
        if self.taken("⟨"):
            return self.record("⟩", bound)
        if self.taken("("):
            return self.parenthesis(bound)
        if self.taken("-"):
            number = self.take()
            if number.kind not in ("int", "float"):
                raise _syntax("expected a number after -", number.span)
            return Const(-_number(number))
        if token.kind in ("int", "float"):
            return Const(_number(self.take()))
        if token.kind == "string":
            return Const(_string(self.take()))
        if token.kind == "name" and self.tokens[self.at + 1].text == "(":
            return self.call(bound)
        if token.text in ("true", "false", "none") and token.kind == "name":
            self.take()
            return Const({"true": True, "false": False, "none": None}[token.text])
        name = self.name()
        return Var(name) if name in bound else Rel(name)

    def parenthesis(self, bound: Names) -> Expr:
        """An expression in parentheses, or a tuple: `(a, b)`, `(x: a)`, `()`."""
        if self.has(")") or self._labelled():
            return self.record(")", bound)
        inner = self.expression(bound)
        return inner if self.taken(")") else self.record(")", bound, inner)

    def record(self, closing: str, bound: Names, first: Expr | None = None) -> Expr:
        """A tuple up to its closing sign; its first component may have been read already."""
        parts = [] if first is None else [(place(0), first)]
        while not self.taken(closing):
            if parts:
                self.expect(",")
            name, span = place(len(parts)), self.next.span
            if self._labelled():
                name = self.name()
                self.expect(":")
            if name in dict(parts):
                raise _syntax(f"two components are called {name}", span)
            parts.append((name, self.expression(bound)))
        return Record(tuple(parts))

    def _labelled(self) -> bool:
        """Whether a component with a name comes."""
        return self.next.kind in ("name", "quoted") and self.tokens[self.at + 1].text == ":"

    def call(self, bound: Names) -> Expr:
        token = self.take()
        self.expect("(")
        if token.text in ("decimal", "date"):
            return self.typed_constant(token)
        args = [self.expression(bound)] if not self.has(")") else []
        while self.taken(","):
            args.append(self.expression(bound))
        self.expect(")")
        wanted = ARITIES.get(token.text, 1)
        if token.text in _REFUSED:
            raise UserError(
                "N002",
                f"{token.text} tests or compares bags, which the positive fragment of NRC has not",
                span=token.span,
                remedy=f"use {_REFUSED[token.text]}",
            )
        build = _CALLS.get(token.text)
        if build is None or len(args) != wanted:
            problem = f"there is no function {named(token.text)} of {len(args)} arguments"
            raise UserError(
                "N001", problem, span=token.span, remedy=f"there are: {', '.join(_CALLS)}"
            )
        return build(*args)

    def typed_constant(self, token: _Token) -> Expr:
        text = self.take()
        self.expect(")")
        try:
            value = _string(text)
            return Const(date.fromisoformat(value) if token.text == "date" else _decimal(value))
        except (ValueError, InvalidOperation):
            problem = f"{text.text} is no {token.text}"
            raise _syntax(problem, text.span) from None


def _primitive(name: str) -> Callable[..., Expr]:
    return lambda *args: Apply(name, args)


def _aggregate(name: AggregateName) -> Callable[..., Expr]:
    return lambda child: Aggregate(name, child)


_CALLS: dict[str, Callable[..., Expr]] = {
    "sng": Sng,
    "flatten": Flatten,
    **{name: _aggregate(name) for name in AGGREGATES},
    **{name: _primitive(name) for name, each in PRIMITIVES.items() if not each.infix},
}


def _number(token: _Token) -> int | float:
    value = int(token.text) if token.kind == "int" else float(token.text)
    if not -(10**38) < value < 10**38 if token.kind == "int" else not isfinite(value):
        raise _syntax(f"{token.text} is too large", token.span)
    return value


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    digits, exponent = len(value.as_tuple().digits), value.as_tuple().exponent
    if not isinstance(exponent, int) or not -38 <= exponent <= 0 or digits > 38:
        raise ValueError
    return value


def _string(token: _Token) -> str:
    if token.kind != "string":
        raise _syntax(f"expected a text in quotes, found {token.text}", token.span)
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], token.text[1:-1], flags=re.S)


def _syntax(problem: str, span: Span) -> UserError:
    return UserError("N001", f"syntax error: {problem}", span=span, remedy="correct the text")
