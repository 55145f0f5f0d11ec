"""SQL text to sqlglot trees, or a syntax error with its place."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.arguments import did_you_mean, shown
from everview.errors import Span, UserError
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.respelled import respelled
from everview.lang.sql.parse.row_values import must_not_ask_rows, without_row_values

logging.getLogger("sqlglot").setLevel(logging.ERROR)


def read_trees(text: str) -> tuple[list[exp.Expr], list[list[Token]]]:
    """The tree of each statement of a text, and its tokens."""
    parts = [part for part in _split(_tokens(text)) if part]
    for part in parts:
        _must_be_finished(part, text)
        if found := decimal_literal(part, text):
            remedy = "write the number with BD after it: 1.5BD"
            problem = f"{found.stretch} is no literal of Spark's"
            raise UserError("Q001", f"syntax error: {problem}", span=found, remedy=remedy)
    return [read_tree(part, text) for part in parts], parts


def read_tree(tokens: list[Token], text: str) -> exp.Expr:
    """The tree of one statement; whatever goes wrong in reading it is an error in the text."""
    parser = QUERIES().parser()
    try:
        tree = parser.parse(respelled(tokens), text)[0]
    except ParseError as problem:
        raise _syntax_error(problem, text, tokens) from None
    except RecursionError:
        raise too_deep(Span(text, tokens[0].start, tokens[-1].end + 1)) from None
    except Exception:
        reached = min(max(getattr(parser, "_index", 0), 0), len(tokens) - 1)
        raise _error(_unreadable(tokens, reached), text, tokens[reached]) from None
    if not isinstance(tree, exp.Expr):
        raise _error(_unreadable(tokens, len(tokens) - 1), text, tokens[-1])
    return without_row_values(tree, text)


def decimal_literal(tokens: Sequence[Token], text: str) -> Span | None:
    """The first place that says DECIMAL '1.5', which some dialects read as a cast, others not."""
    for type_, literal in pairwise(tokens):
        if type_.token_type in _DECIMALS and literal.token_type is TokenType.STRING:
            return Span(text, type_.start, literal.end + 1)
    return None


_DECIMALS = (TokenType.DECIMAL, TokenType.BIGDECIMAL)


def foreign_decimal_literal(text: str, dialect: str) -> Span | None:
    """The same in a text of another dialect that can be read."""
    return decimal_literal(sqlglot.tokenize(text, read=dialect), text)


def read_foreign(text: str, dialect: str) -> list[exp.Expr]:
    """The tree of each statement of a text of another dialect."""
    must_be_dialect(dialect)
    try:
        trees = [tree for tree in sqlglot.parse(text, read=dialect) if isinstance(tree, exp.Expr)]
    except ParseError as problem:
        raise _syntax_error(problem, text, ()) from None
    except TokenError as problem:
        raise _open_literal(problem, text) from None
    except ValueError as problem:
        raise UserError("Q002", str(problem), remedy="name a dialect that sqlglot knows") from None
    for tree in trees:
        must_not_ask_rows(tree, text)
    return trees


def must_be_dialect(name: str) -> None:
    """Refuse a dialect that sqlglot has no reader of its own for."""
    known = sorted(name for name in sqlglot.Dialect.classes if name not in ("", "dialect"))
    if name.lower() not in known:
        raise UserError(
            "Q002",
            f"there is no dialect {shown(name)}",
            remedy=f"{did_you_mean(name, known)}there are: {', '.join(known)}",
        )


def too_deep(span: Span) -> UserError:
    """The error for a statement that is nested too deep."""
    return UserError(
        "Q001",
        "the statement is nested too deep to be read",
        span=span,
        remedy="write part of it as a view, or in WITH",
    )


def _tokens(text: str) -> list[Token]:
    try:
        return list(QUERIES().tokenize(text))
    except TokenError as problem:
        raise _open_literal(problem, text) from None


def _open_literal(problem: TokenError, text: str) -> UserError:
    return UserError(
        "Q001",
        f"the text cannot be read: {problem}",
        span=Span(text, 0, len(text)),
        remedy="close the quote or comment that is open, or correct the literal",
    )


def _split(tokens: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_OPEN = (TokenType.COMMA, TokenType.SELECT, TokenType.DISTINCT, TokenType.ON)
"""Tokens after which something must follow."""
_CLAUSES = (
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.UNION,
    TokenType.INTERSECT,
    TokenType.EXCEPT,
)
_ENDS = (TokenType.R_PAREN, TokenType.COMMA, *_CLAUSES)
_LISTS = (TokenType.IN, TokenType.USING, TokenType.VALUES)
"""Words before a list that may not be empty."""


def _must_be_finished(tokens: list[Token], text: str) -> None:
    """Refuse what the parser silently ignores: a lone comma, an empty list, …"""
    kinds = [token.token_type for token in tokens]
    for token in tokens:
        if "\0" in token.text and token.token_type is not TokenType.STRING:
            raise _error("a character NUL is in a name", text, token)
    for at, (kind, following) in enumerate(pairwise([*kinds, TokenType.R_PAREN])):
        compared = kind is TokenType.DISTINCT and at and kinds[at - 1] in _BEFORE_DISTINCT_FROM
        if kind in _OPEN and following in _ENDS and not compared:
            raise _error(f"something is missing after {tokens[at].text}", text, tokens[at])
        if kind is TokenType.L_PAREN and following is TokenType.COMMA:
            raise _error("something is missing before ,", text, tokens[at + 1])
        if kind in _LISTS and kinds[at + 1 : at + 3] == [TokenType.L_PAREN, TokenType.R_PAREN]:
            raise _error(f"{tokens[at].text} lists nothing", text, tokens[at])


_BEFORE_DISTINCT_FROM = (TokenType.IS, TokenType.NOT)


def _error(problem: str, text: str, token: Token) -> UserError:
    return UserError(
        "Q001",
        f"syntax error: {problem}",
        span=Span(text, token.start, token.end + 1),
        remedy=_REMEDY,
    )


_REMEDY = "correct the text at the place shown; Spark's dialect is expected"


def _syntax_error(problem: ParseError, text: str, tokens: Sequence[Token]) -> UserError:
    detail = problem.errors[0]
    lines = text.split("\n")
    highlight = detail.get("highlight") or ""
    line = int(detail.get("line") or 1)
    stop = sum(len(each) + 1 for each in lines[: line - 1]) + int(detail.get("col") or 1)
    start = max(stop - max(len(highlight), 1), 0)
    message = str(detail.get("description") or "the text is not SQL").rstrip(".")
    return UserError(
        "Q001",
        f"syntax error: {_plainly(message, tokens, start)}",
        span=Span(text, start, max(stop, start + 1)),
        remedy=_REMEDY,
    )


def _plainly(message: str, tokens: Sequence[Token], start: int) -> str:
    """A message of the parser without the names of its classes."""
    message = re.sub(r" but got <Token [^>]*SENTINEL.*?>", ", but the text ends", message)
    message = re.sub(r"<Token .*?text: (.*?), line.*?>", r"\1", message)
    at = sum(token.start <= start for token in tokens) - 1
    if (missed := re.search(r"<class 'sqlglot\.expressions\.(\w+)\.", message)) is not None:
        return _unreadable(tokens, at, call=missed[1] not in _NO_CALLS)
    counts = re.findall(r"arguments \((\d+)\)", message)
    name = _called(tokens, at)
    if len(counts) == 2 and name:
        return f"{name} takes at most {counts[1]} arguments, not {counts[0]}"
    if name and message.startswith("takes "):
        return f"{name} {message}"
    return message[:1].lower() + message[1:]


_NO_CALLS = ("constraints", "ddl", "dml", "query")
"""Modules of sqlglot whose expressions are not functions."""


def _unreadable(tokens: Sequence[Token], at: int, *, call: bool = True) -> str:
    """The message for a place where the parser misses something."""
    name = _called(tokens, at) if call else None
    if name is not None:
        return f"{name} does not have the arguments that it needs"
    if at < 0:
        return "something is missing"
    where = "after" if at == len(tokens) - 1 else "at"
    return f"something is missing {where} {tokens[at].text}"


def _called(tokens: Sequence[Token], at: int) -> str | None:
    """The function whose call the token at a place ends."""
    if at < 0 or tokens[at].token_type is not TokenType.R_PAREN:
        return None
    depth = 0
    for place in range(at, 0, -1):
        depth += _DEPTH.get(tokens[place].token_type, 0)
        if not depth:
            name = tokens[place - 1].text
            return name if name.isidentifier() else None
    return None


_DEPTH = {TokenType.R_PAREN: 1, TokenType.L_PAREN: -1}
