"""An AGCA text as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from everview.errors import Span, UserError

_TOKEN = re.compile(
    r"""(?P<space>\s+ | //[^\n]* | /\*.*?\*/)
    | (?P<number>\d+(?:\.\d+)?(?![\w.]))
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`\n]|``)+`)
    | (?P<name>[^\W\d]\w*'*)
    | (?P<sign>:=|\+=|<=|>=|<>|!=|[=<>()\[\],;:+\-*?])""",
    re.VERBOSE | re.DOTALL,
)
_UNCLOSED = {
    "'": "a string is not closed",
    "/*": "a comment is not closed",
    "`": "a name in backquotes is empty or not closed",
}


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
            opened = "/*" if text.startswith("/*", at) else text[at]
            problem = _UNCLOSED.get(opened, f"{text[at]!r} means nothing here")
            span = Span(text, at, at + 1)
            raise UserError("G001", f"syntax error: {problem}", span=span, remedy="correct it")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0], Span(text, at, match.end())))
        at = match.end()
    return [*found, Token("end", "the end of the text", Span(text, len(text), len(text)))]
