"""What no message may hold: the names of things that no user has made or seen."""

from __future__ import annotations

import ast
import re

import everview as ev
from everview.plan import nodes

_CLASSES = [
    each.__name__
    for kind in (nodes.Node, ast.expr, ast.stmt, ast.operator)
    for each in kind.__subclasses__()
]

INTERNAL = {
    "an operator of a plan, or a kind of syntax tree": rf"\b(?:{'|'.join(_CLASSES)})\b",
    "a map of a trigger program": r"\bm\d+\b",
    "a column that we add": r"\bmark\d+\b|\b\d+\^\w|/λ|\b__\w+"
    r"|\biteration/|\bbegun/|(?<![\w/:-])\d+/[a-z]|partner\."
    r"|generated \d|change weight|rows to pivot|\bq\d+_\d+\b",
    "a class of ours, or of a library": r"<class |<\w+ object|<function |object at 0x|"
    r"\b[A-Z]\w+\((?:\w+=|this=)|\bArrow[A-Z]\w+|\bsqlglot\.|\bpyarrow\b|\bpy4j\b|\bduckdb\.|"
    r"org\.apache|\bTraceback\b|\bRecursionError\b|NoneType|<Token|TokenType|\bexp\.\w+|\bnumpy\b",
    "the words of an engine about its own query": r"Binder Error|Catalog Error|Parser Error|"
    r"Candidate functions|LINE \d+:|SQLSTATE|JVM|\bstderr\b|Exception\b",
}


def internals(error: ev.UserError, given: str = "") -> list[str]:
    """What a message holds and should not; a word that the user has written is the user's."""
    told = f"{error.problem}\n{error.remedy}"
    found = []
    for kind, pattern in INTERNAL.items():
        for match in re.finditer(pattern, told):
            if match[0].strip() and match[0] not in given:
                found.append(f"{kind}: {match[0]!r} in {told!r}")
    if not re.fullmatch(r"[A-Z]\d{3}", error.code) or not error.remedy.strip():
        found.append(f"no code or no remedy: {error.code!r}, {error.remedy!r}")
    if len(error.problem) > 1000:
        found.append(f"too long: {len(error.problem)} characters")
    if error.span is not None and given and error.span.text != given:
        found.append(f"a text that nobody wrote: {error.span.text!r}")
    error.render().encode()  # can be printed
    return found
