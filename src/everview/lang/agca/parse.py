"""AGCA text to expressions and definitions of views.

definition := name [ x, … ] := q ;
q          := q + q | q - q | q * q | -q | Sum(q) | R(x, _, …) | x | c
            | (q θ q) | (x := q) | (q)
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from everview.errors import Span, UserError
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    Wildcard,
)
from everview.lang.agca.tokenize import Token, tokens_of

MAX_DEPTH = 150
"""How deep expressions may be nested, well below the limit of recursion."""
_SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_WORDS = ("sum", "like", "not", "date", "_")


def parse_query(text: str) -> Expr:
    """One expression."""
    parser = _Parser(text)
    query = parser.query()
    parser.must_end()
    return query


def parse_definitions(text: str) -> tuple[Definition, ...]:
    """The definitions of a text, each ended by a semicolon but perhaps the last."""
    return _Parser(text).definitions()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.depth = 0

    # Definitions

    def definitions(self) -> tuple[Definition, ...]:
        found: list[Definition] = []
        while self.next.kind != "end":
            found.append(self._definition())
            if not self._takes(";"):
                self.must_end()
        if not found:
            raise self._unexpected("a definition")
        return tuple(found)

    def _definition(self) -> Definition:
        start = self.next.span
        name = self._name("the name of a view")
        self._expect("[")
        keys: list[Variable] = []
        while not self._closed("]", after=bool(keys)):
            keys.append(self._variable("a group variable"))
        self._expect(":=")
        body = self.query()
        return Definition(name, tuple(keys), body, self._since(start))

    def must_end(self) -> None:
        if self.next.kind != "end":
            raise self._unexpected("the end")

    # Expressions

    def query(self) -> Expr:
        terms = [self._product()]
        while self.next.text in ("+", "-") and self.next.kind == "sign":
            negative = self._take().text == "-"
            term = self._product()
            terms.append(Negate(term) if negative else term)
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def _product(self) -> Expr:
        factors = [self._factor()]
        while self._takes("*"):
            factors.append(self._factor())
        return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def _factor(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UserError(
                "G001",
                f"the expression is nested more than {MAX_DEPTH} deep",
                span=self.next.span,
                remedy="split it into several views",
            )
        try:
            return self._nested_factor()
        finally:
            self.depth -= 1

    def _nested_factor(self) -> Expr:
        token = self.next
        if self._takes("-"):
            if self.next.kind == "number":
                number = self._take()
                return Constant(-_number(number), self._since(token.span))
            return Negate(self._factor())
        if self._takes("("):
            inner = self._in_parentheses()
            self._expect(")")
            return inner
        match token.kind:
            case "number":
                return Constant(_number(self._take()), token.span)
            case "string":
                return Constant(_string(self._take()), token.span)
            case "name" | "quoted":
                return self._named()
        raise self._unexpected("an expression")

    def _named(self) -> Expr:
        token, following = self.next, self._following
        word = token.text.lower() if token.kind == "name" else ""
        if word == "sum" and following.text == "(":
            self._take()
            self._expect("(")
            body = self.query()
            self._expect(")")
            return Sum(body)
        if word == "date" and following.kind == "string":
            self._take()
            return self._date(self._take(), token.span)
        if following.kind == "sign" and following.text == "(":
            relation = self._name("a relation")
            return Atom(relation, self._arguments(), self._since(token.span))
        return self._variable("an expression")

    def _arguments(self) -> tuple[Variable | Wildcard, ...]:
        self._expect("(")
        found: list[Variable | Wildcard] = []
        while not self._closed(")", after=bool(found)):
            if self.next.text == "_" and self.next.kind == "name":
                self._take()
                found.append(Wildcard())
            else:
                found.append(self._variable("a variable or _"))
        return tuple(found)

    def _in_parentheses(self) -> Expr:
        start = self.next.span
        if self._following.text == ":=":
            variable = self._variable("a variable")
            self._expect(":=")
            return Assignment(variable, self.query())
        left = self.query()
        operator = self._operator()
        if operator is None:
            return left
        right = self.query()
        return Comparison(operator, left, right, self._since(start))

    def _operator(self) -> str | None:
        if self.next.kind == "sign" and self.next.text in _SIGNS:
            sign = self._take().text
            return "<>" if sign == "!=" else sign
        if self._takes_word("like"):
            return "like"
        if self._takes_word("not"):
            if not self._takes_word("like"):
                raise self._unexpected("like")
            return "not like"
        return None

    def _date(self, token: Token, start: Span) -> Constant:
        try:
            return Constant(date.fromisoformat(_string(token)), self._since(start))
        except ValueError:
            raise UserError(
                "G001", f"{token.text} is no date", span=token.span, remedy="write 'YYYY-MM-DD'"
            ) from None

    def _variable(self, what: str) -> Variable:
        token = self.next
        if token.kind == "name" and token.text.lower() in _WORDS:
            raise self._unexpected(what)
        return Variable(self._name(what), token.span)

    # Tokens

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def _following(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def _take(self) -> Token:
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _takes(self, sign: str) -> bool:
        found = self.next.kind == "sign" and self.next.text == sign
        if found:
            self._take()
        return found

    def _takes_word(self, word: str) -> bool:
        found = self.next.kind == "name" and self.next.text.lower() == word
        if found:
            self._take()
        return found

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected(sign)

    def _closed(self, bracket: str, *, after: bool) -> bool:
        """Whether a list ends here; after its first element a comma stands before the next."""
        if self._takes(bracket):
            return True
        if after and not self._takes(","):
            raise self._unexpected(f", or {bracket}")
        return False

    def _name(self, what: str) -> str:
        if self.next.kind not in ("name", "quoted"):
            raise self._unexpected(what)
        return self._take().text.strip("`")

    def _unexpected(self, wanted: str) -> UserError:
        return UserError(
            "G001",
            f"syntax error: {wanted} was expected, not {self.next.text}",
            span=self.next.span,
            remedy="correct the text; comparisons and assignments stand in parentheses",
        )

    def _since(self, start: Span) -> Span:
        return Span(self.text, start.start, self.tokens[self.at - 1].span.stop)


def _number(token: Token) -> int | Decimal:
    return Decimal(token.text) if "." in token.text else int(token.text)


def _string(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
