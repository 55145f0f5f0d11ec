"""A text of relational algebra as an expression.

Π and σ bind closest, then × and ⋈, then ∩, then ∪ and −; equals from the left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.lang.relalg.condition import condition_tree
from everview.lang.relalg.nodes import (
    Binary,
    Difference,
    Expression,
    Intersection,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Union,
)
from everview.lang.relalg.tokenize import Token, condition_end, syntax_error, token_at

LEVELS: tuple[dict[str, Callable[[Expression, Expression, Span], Binary]], ...] = (
    {"∪": Union, "−": Difference},
    {"∩": Intersection},
    {"×": Product, "⋈": NaturalJoin},
)
"""The operators between two expressions; those of a later level bind closer."""


@lru_cache(maxsize=1024)
def parse_query(text: str) -> Expression:
    """The expression that a text says, with the places of its parts."""
    reading = _Reading(text)
    query = reading.binary()
    if reading.token.kind != "end":
        raise syntax_error(f"{reading.token.text} comes after the end", reading.token.span)
    return query


class _Reading:
    """One text that is read from left to right, a token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = token_at(text, 0)

    def binary(self, level: int = 0) -> Expression:
        """Expressions between operators of one level, from the left."""
        if level == len(LEVELS):
            return self._unary()
        query = self.binary(level + 1)
        while self.token.kind == "sign" and self.token.text in LEVELS[level]:
            operator = self._next()
            query = LEVELS[level][operator.text](query, self.binary(level + 1), operator.span)
        return query

    def _unary(self) -> Expression:
        """A relation, a selection, a projection, or an expression in parentheses."""
        token = self._next()
        if token.kind == "name":
            return Relation(token.text, token.span)
        if token.text == "(" and token.kind == "sign":
            return self._closed()
        if token.text == "σ" and token.kind == "sign":
            condition, span = self._condition()
            return Select(self._operand(), condition, span)
        if token.text == "Π" and token.kind == "sign":
            columns, span = self._columns()
            return Project(self._operand(), columns, span)
        raise syntax_error(f"a relation is missing before {token.text}", token.span)

    def _operand(self) -> Expression:
        self._expect("(")
        return self._closed()

    def _closed(self) -> Expression:
        query = self.binary()
        self._expect(")")
        return query

    def _condition(self) -> tuple[str, Span]:
        """The condition in brackets, in one spelling, and where it stands."""
        opened = self.token.span
        if self.token.text != "[":
            raise self._missing("[")
        stop = condition_end(self.text, opened.stop)
        if stop is None:
            raise syntax_error("the bracket of a condition is not closed", opened)
        span = Span(self.text, opened.stop, stop)
        self.token = token_at(self.text, stop)
        self._expect("]")
        return scalar.text(condition_tree(span)), span

    def _columns(self) -> tuple[tuple[tuple[str, str], ...], Span]:
        """The columns in brackets, each with the name that AS gives it."""
        start = self._expect("[").span.start
        columns = [self._column()]
        while self.token.kind == "sign" and self.token.text == ",":
            self._next()
            columns.append(self._column())
        return tuple(columns), Span(self.text, start, self._expect("]").span.stop)

    def _column(self) -> tuple[str, str]:
        column = self._name()
        quoted = self.text[self.token.span.start :].startswith("`")
        if self.token.kind == "name" and self.token.text.lower() == "as" and not quoted:
            self._next()
            return column, self._name()
        return column, column

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise syntax_error(
                f"a column is missing before {token.text}",
                token.span,
                "name columns, between commas; computed columns belong in a view in SQL",
            )
        return token.text

    def _expect(self, sign: str) -> Token:
        if self.token.kind != "sign" or self.token.text != sign:
            raise self._missing(sign)
        return self._next()

    def _missing(self, sign: str) -> UserError:
        return syntax_error(f"{sign} is missing before {self.token.text}", self.token.span)

    def _next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.token = token_at(self.text, token.span.stop)
        return token
