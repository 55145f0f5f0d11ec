"""A Datalog text as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from everview.errors import Span, UserError

_TOKEN = re.compile(
    r"""(?P<space>\s+ | //[^\n]* | /\*.*?\*/)
    | (?P<directive>\.(?:decl|type|number_type|symbol_type|input|output|printsize|limitsize|pragma
        |functor|comp|init|override|plan|include|once|lattice)\b)
    | (?P<address>\d+\.\d+\.\d+\.\d+)
    | (?P<float>\d+\.\d+(?:[eE][-+]?\d+)? | \d+[eE][-+]?\d+)
    | (?P<number>(?:0x[0-9a-fA-F]+|0b[01]+|\d+)u?\b)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<name>[A-Za-z_?][A-Za-z0-9_?]*)
    | (?P<sign>:-|<:|<=|>=|!=|\*\*|[=<>()\[\]{},;:.!+\-*/%^|$@&~])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: its kind, how it is written, and where."""

    kind: str
    text: str
    span: Span


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, without spaces and comments, and an end."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0], Span(text, at, match.end())))
        at = match.end()
    return [*found, Token("end", "the end of the text", Span(text, len(text), len(text)))]


def _unreadable(text: str, at: int) -> UserError:
    if text[at] == "#":
        return UserError(
            "D002",
            "preprocessor lines are not part of the language",
            span=Span(text, at, at + 1),
            remedy="write out what they stand for",
        )
    unclosed = {'"': "a string is not closed", "/": "a comment is not closed"}
    problem = unclosed.get(text[at], f"{text[at]!r} means nothing here")
    return UserError(
        "D001", f"syntax error: {problem}", span=Span(text, at, at + 1), remedy="correct the text"
    )
