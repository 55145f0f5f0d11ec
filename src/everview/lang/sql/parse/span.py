"""The span of a node in the text it was parsed from."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span


def span_of(node: exp.Expr, text: str) -> Span | None:
    """The span of a node in `text`, None where its tokens have no places."""
    places = [
        (part.meta["start"], part.meta["end"]) for part in node.walk() if "start" in part.meta
    ]
    if not places:
        return None
    return Span(text, min(start for start, _ in places), max(end for _, end in places) + 1)
