"""The parser of terms: operator precedence, functors and aggregates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from everview.errors import Span, UserError
from everview.lang.datalog.functors import FUNCTORS, UNDEFINED
from everview.lang.datalog.syntax import Aggregate, Call, Constant, Term, Variable, Wildcard
from everview.lang.datalog.tokenize import Token, tokens_of

if TYPE_CHECKING:
    from everview.lang.datalog.syntax import Body

AGGREGATES = ("count", "sum", "min", "max", "mean")

_BINDING = (
    ("lor",),
    ("lxor",),
    ("land",),
    ("bor", "|"),
    ("bxor",),
    ("band", "&"),
    ("bshl", "bshr", "bshru"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""The operators, from those that bind least; each level associates to the left."""
OPERATORS = (*(sign for level in _BINDING for sign in level), "^", "**")
"""Every operator between two terms."""
_SPELLED = {"|": "bor", "&": "band", "~": "bnot", "**": "^"}
_UNARY = {"-": "neg", "bnot": "bnot", "~": "bnot", "lnot": "lnot"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class TokenStream:
    """The tokens of a text, and the position of the parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """The next token, read."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def takes(self, *texts: str) -> bool:
        """Whether the next token is one of these; then it is read."""
        found = self.next.text in texts and self.next.kind != "string"
        if found:
            self.take()
        return found

    def expect(self, text: str) -> Token:
        """The next token, which must be this one."""
        if self.next.text != text or self.next.kind == "string":
            raise self.unexpected(text)
        return self.take()

    def name(self, what: str) -> Token:
        """The next token, which must be a name."""
        if self.next.kind != "name":
            raise self.unexpected(what)
        return self.take()

    def unexpected(self, wanted: str) -> UserError:
        """The error for a token that is not what was wanted."""
        return UserError(
            "D001",
            f"syntax error: {wanted} was expected, not {self.next.text}",
            span=self.next.span,
            remedy="correct the text",
        )

    def refused(self, what: str, span: Span, remedy: str) -> UserError:
        """The refusal of a construct that Soufflé has."""
        return UserError("D002", f"{what} is not part of the language", span=span, remedy=remedy)

    def since(self, start: Span) -> Span:
        """The stretch from a place to the last token read."""
        return Span(self.text, start.start, self.tokens[self.at - 1].span.stop)


class Terms(TokenStream):
    """The parser of terms; `body`, of a subclass, parses the body of an aggregate."""

    body: Callable[[], tuple[Body, ...]]

    def term(self, level: int = 0) -> Term:
        """A term whose operators bind at least as strongly as those of a level."""
        if level == len(_BINDING):
            return self._unary()
        start, left = self.next.span, self.term(level + 1)
        while self.next.kind != "string" and self.next.text in _BINDING[level]:
            sign = self.take().text
            right = self.term(level + 1)
            left = Call(_SPELLED.get(sign, sign), (left, right), self.since(start))
        return left

    def _unary(self) -> Term:
        token = self.next
        if token.kind != "string" and token.text in _UNARY:
            self.take()
            inner = self._unary()
            if token.text == "-" and isinstance(inner, Constant) and inner.kind != "symbol":
                assert not isinstance(inner.value, str)
                return Constant(-inner.value, inner.kind, self.since(token.span))
            return Call(_UNARY[token.text], (inner,), self.since(token.span))
        base = self._plain()
        if self.takes("^", "**"):
            return Call("^", (base, self._unary()), self.since(token.span))
        return base

    def _plain(self) -> Term:
        token = self.next
        match token.kind:
            case "number" | "float" | "address" | "string":
                return _constant(self.take())
            case "name":
                return self._named()
        if self.takes("("):
            inner = self.term()
            self.expect(")")
            return inner
        if token.text in ("$", "[", "@"):
            return self._constructed()
        raise self.unexpected("a term")

    def _named(self) -> Term:
        token = self.take()
        if token.text == "_":
            return Wildcard(token.span)
        if token.text == "nil":
            raise self.refused("a record", token.span, "give every field a column of its own")
        if token.text in AGGREGATES and not self._is_functor():
            return self._aggregate(token)
        if self.next.text == "(" and self.next.kind == "sign":
            return self._call(token)
        return Variable(token.text, token.span)

    def _call(self, token: Token) -> Term:
        if token.text == "as":
            self.expect("(")
            inner = self.term()
            self.expect(",")
            type_ = self.name("a type")
            self.expect(")")
            named = Constant(type_.text, "symbol", type_.span)
            return Call("as", (inner, named), self.since(token.span))
        if token.text in UNDEFINED:
            raise self.refused(token.text, token.span, f"leave it out: {UNDEFINED[token.text]}")
        if token.text not in FUNCTORS:
            known = ", ".join(sorted(name for name in FUNCTORS if name.isidentifier()))
            raise UserError(
                "D003",
                f"there is no functor {token.text}",
                span=token.span,
                remedy=f"there are: {known}",
            )
        return Call(token.text, self.arguments(), self.since(token.span))

    def arguments(self) -> tuple[Term, ...]:
        """Terms between parentheses."""
        self.expect("(")
        found: list[Term] = []
        while not self.takes(")"):
            if found:
                self.expect(",")
            found.append(self.term())
        return tuple(found)

    def _is_functor(self) -> bool:
        """Whether `min` or `max` is followed by arguments and not by what is aggregated."""
        if self.tokens[self.at - 1].text not in ("min", "max") or self.next.text != "(":
            return False
        back = self.at
        try:
            self.arguments()
            return self.next.text != ":"
        except UserError:
            return False
        finally:
            self.at = back

    def _aggregate(self, token: Token) -> Term:
        target = None if token.text == "count" else self.term()
        self.expect(":")
        bodies = self.body()
        return Aggregate(token.text, target, bodies, self.since(token.span))

    def _constructed(self) -> Term:
        """`$Name` is a value; what is built of other values is not part of the language."""
        token = self.take()
        if token.text == "@":
            raise self.refused(
                "a functor of the user's", token.span, "write it with those there are"
            )
        if token.text == "[":
            raise self.refused("a record", token.span, "give every field a column of its own")
        name = self.name("a constructor")
        if self.next.text == "(":
            what = "a constructor with arguments"
            raise self.refused(what, self.since(token.span), "give every part a column of its own")
        return Constant(f"${name.text}", "symbol", self.since(token.span))


def _constant(token: Token) -> Constant:
    text = token.text
    match token.kind:
        case "string":
            return Constant(unescaped(text), "symbol", token.span)
        case "float":
            return Constant(float(text), "float", token.span)
        case "address":
            first, second, third, fourth = map(int, text.split("."))
            number = first << 24 | second << 16 | third << 8 | fourth
            return Constant(number, "number", token.span)
        case _:
            kind = "unsigned" if text.endswith("u") else "number"
            return Constant(int(text.removesuffix("u"), _base(text)), kind, token.span)


def _base(text: str) -> int:
    return {"0x": 16, "0b": 2}.get(text[:2], 10)


def unescaped(text: str) -> str:
    """The value of a string as it is written.

    >>> unescaped('"a \\\\"b\\\\" c"')
    'a "b" c'
    """
    return re.sub(
        r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), text[1:-1], flags=re.DOTALL
    )
