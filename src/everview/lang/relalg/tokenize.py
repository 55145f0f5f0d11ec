"""A text of relational algebra as tokens; what is in brackets after σ is left to SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from everview.errors import Span, UserError

_TOKEN = re.compile(
    r"""(?P<space>\s+ | --[^\n]* | /\*.*?\*/)
    | (?P<name>`(?:[^`]|``)+` | [^\W\dσΠ]\w*)
    | (?P<sign>[σΠ×∪∩−⋈()\[\],-])""",
    re.VERBOSE | re.DOTALL,
)
_IN_CONDITION = re.compile(
    r"""\b[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*`
    | --[^\n]* | /\*.*?\*/ | .""",
    re.VERBOSE | re.DOTALL,
)
"""A piece of a condition: a bracket inside a string, a quoted name or a comment is none."""

SIGNS = {
    "select": "σ",
    "project": "Π",
    "times": "×",
    "union": "∪",
    "intersect": "∩",
    "minus": "−",
    "join": "⋈",
    "-": "−",
}
"""What may be written for a sign that is not on a keyboard."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: a name or a sign, and where it stands. The last one is the end."""

    kind: str
    text: str
    span: Span


def token_at(text: str, start: int) -> Token:
    """The first token from a place in the text."""
    match = _TOKEN.match(text, start)
    while match is not None and match.lastgroup == "space":
        start = match.end()
        match = _TOKEN.match(text, start)
    if start == len(text):
        return Token("end", "the end of the text", Span(text, start, start))
    if match is None:
        raise _unreadable(text, start)
    written, span = match[0], Span(text, start, match.end())
    if written.startswith("`"):
        return Token("name", written[1:-1].replace("``", "`"), span)
    sign = SIGNS.get(written.lower())
    if sign is not None or match.lastgroup == "sign":
        return Token("sign", sign or written, span)
    return Token("name", written, span)


def condition_end(text: str, start: int) -> int | None:
    """Where the bracket is that closes a condition; None where none does."""
    depth, at = 0, start
    while at < len(text):
        match = _IN_CONDITION.match(text, at)
        assert match is not None, "any character is a piece"
        if match[0] == "]" and depth == 0:
            return at
        depth += (match[0] == "[") - (match[0] == "]")
        at = match.end()
    return None


def syntax_error(problem: str, span: Span, remedy: str = "") -> UserError:
    """The error for a text that is no expression of the algebra."""
    usual = "write relations with σ[condition](…), Π[columns](…), ×, ∪, ∩, − and ⋈"
    return UserError("R001", f"syntax error: {problem}", span=span, remedy=remedy or usual)


def _unreadable(text: str, at: int) -> UserError:
    unclosed = {"`": "a name is not closed", "/": "a comment is not closed"}
    problem = unclosed.get(text[at], f"{text[at]!r} means nothing here")
    return syntax_error(problem, Span(text, at, at + 1))
