"""AGCA text to expressions and definitions of views.

definition := name [ x, … ] := q ;
q          := q + q | q - q | q * q | -q | Sum(q) | R(x, _, …) | x | c
            | (q θ q) | (x := q) | (q) | extract(year from q)
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from everview.errors import Span, UserError
from everview.lang.agca.syntax import (
    UNITS,
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
from everview.lang.agca.tokenize import Token, tokens_of

MAX_DEPTH = 150
"""How deep expressions may be nested, well below the limit of recursion."""
_SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_WORDS = ("sum", "like", "not", "date", "_")


def parse_query(text: str) -> Expr:
    """One expression."""
    parser = Parser(text)
    query = parser.query()
    parser.must_end()
    return query


def parse_definitions(text: str) -> tuple[Definition, ...]:
    """The definitions of a text, each ended by a semicolon but perhaps the last."""
    return Parser(text).definitions()


class Parser:
    """The parser of expressions and definitions, over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.depth = 0

    # Definitions

    def definitions(self) -> tuple[Definition, ...]:
        """The definitions of the text, which ends with them."""
        found: list[Definition] = []
        while self.next.kind != "end":
            found.append(self.definition())
            if not self.takes(";"):
                self.must_end()
        if not found:
            raise self.unexpected("a definition")
        return tuple(found)

    def definition(self) -> Definition:
        """One definition."""
        start = self.next.span
        name = self.name("the name of a view")
        self.expect("[")
        keys: list[Variable] = []
        while not self.closed("]", after=bool(keys)):
            keys.append(self.variable("a group variable"))
        self.expect(":=")
        body = self.query()
        return Definition(name, tuple(keys), body, self.since(start))

    def must_end(self) -> None:
        """Refuse what comes after the end."""
        if self.next.kind != "end":
            raise self.unexpected("the end")

    # Expressions

    def query(self) -> Expr:
        """One expression."""
        terms = [self._product()]
        while self.next.text in ("+", "-") and self.next.kind == "sign":
            negative = self.take().text == "-"
            term = self._product()
            terms.append(Negate(term) if negative else term)
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def _product(self) -> Expr:
        factors = [self._factor()]
        while self.takes("*"):
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
        if self.takes("-"):
            if self.next.kind == "number":
                number = self.take()
                return Constant(-_number(number), self.since(token.span))
            return Negate(self._factor())
        if self.takes("("):
            inner = self._in_parentheses()
            self.expect(")")
            return inner
        match token.kind:
            case "number":
                return Constant(_number(self.take()), token.span)
            case "string":
                return Constant(_string(self.take()), token.span)
            case "name" | "quoted":
                return self._named()
        raise self.unexpected("an expression")

    def _named(self) -> Expr:
        token, following = self.next, self._following
        word = token.text.lower() if token.kind == "name" else ""
        if word == "sum" and following.text == "(":
            self.take()
            self.expect("(")
            body = self.query()
            self.expect(")")
            return Sum(body)
        if word == "date" and following.kind == "string":
            self.take()
            return self._date(self.take(), token.span)
        from_ = following.text == "(" and self._peek(3).text.lower() == "from"
        if word == "extract" and from_:
            return self._extract()
        if following.kind == "sign" and following.text == "(":
            relation = self.name("a relation")
            return Atom(relation, self._arguments(), self.since(token.span))
        return self.variable("an expression")

    def _extract(self) -> Extract:
        self.take()
        self.expect("(")
        unit = self.next
        self.take()
        if unit.text.lower() not in UNITS:
            problem = f"syntax error: {unit.text} is not extracted from a date"
            raise UserError("G001", problem, span=unit.span, remedy=f"write {', '.join(UNITS)}")
        self.take()
        date = self.query()
        self.expect(")")
        return Extract(unit.text.lower(), date)

    def _arguments(self) -> tuple[Variable | Wildcard, ...]:
        self.expect("(")
        found: list[Variable | Wildcard] = []
        while not self.closed(")", after=bool(found)):
            if self.next.text == "_" and self.next.kind == "name":
                self.take()
                found.append(Wildcard())
            else:
                variable = self.variable("a variable or _")
                found.append(replace(variable, nullable=self.takes("?")))
        return tuple(found)

    def _in_parentheses(self) -> Expr:
        start = self.next.span
        if self._following.text == ":=":
            variable = self.variable("a variable")
            self.expect(":=")
            return Assignment(variable, self.query())
        left = self.query()
        operator = self._operator()
        if operator is None:
            return left
        right = self.query()
        return Comparison(operator, left, right, self.since(start))

    def _operator(self) -> str | None:
        if self.next.kind == "sign" and self.next.text in _SIGNS:
            sign = self.take().text
            return "<>" if sign == "!=" else sign
        if self.takes_word("like"):
            return "like"
        if self.takes_word("not"):
            if not self.takes_word("like"):
                raise self.unexpected("like")
            return "not like"
        return None

    def _date(self, token: Token, start: Span) -> Constant:
        try:
            return Constant(date.fromisoformat(_string(token)), self.since(start))
        except ValueError:
            raise UserError(
                "G001", f"{token.text} is no date", span=token.span, remedy="write 'YYYY-MM-DD'"
            ) from None

    def variable(self, what: str) -> Variable:
        """The next token, which must be a variable."""
        token = self.next
        if token.kind == "name" and token.text.lower() in _WORDS:
            raise self.unexpected(what)
        return Variable(self.name(what), span=token.span)

    # Tokens

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.at]

    @property
    def _following(self) -> Token:
        return self._peek(1)

    def _peek(self, ahead: int) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The next token, read."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def takes(self, sign: str) -> bool:
        """Whether the next token is this sign; then it is read."""
        found = self.next.kind == "sign" and self.next.text == sign
        if found:
            self.take()
        return found

    def takes_word(self, word: str) -> bool:
        """Whether the next token is this word; then it is read."""
        found = self.next.kind == "name" and self.next.text.lower() == word
        if found:
            self.take()
        return found

    def expect(self, sign: str) -> None:
        """Read the next token, which must be this sign."""
        if not self.takes(sign):
            raise self.unexpected(sign)

    def closed(self, bracket: str, *, after: bool) -> bool:
        """Whether a list ends here; after its first element a comma stands before the next."""
        if self.takes(bracket):
            return True
        if after and not self.takes(","):
            raise self.unexpected(f", or {bracket}")
        return False

    def name(self, what: str) -> str:
        """The next token, which must be a name."""
        if self.next.kind not in ("name", "quoted"):
            raise self.unexpected(what)
        token = self.take()
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def unexpected(self, wanted: str) -> UserError:
        """The error for a token that is not what was wanted."""
        return UserError(
            "G001",
            f"syntax error: {wanted} was expected, not {self.next.text}",
            span=self.next.span,
            remedy="correct the text; comparisons and assignments stand in parentheses",
        )

    def since(self, start: Span) -> Span:
        """The stretch from a place to the last token read."""
        return Span(self.text, start.start, self.tokens[self.at - 1].span.stop)


def _number(token: Token) -> int | Decimal:
    return Decimal(token.text) if "." in token.text else int(token.text)


def _string(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
