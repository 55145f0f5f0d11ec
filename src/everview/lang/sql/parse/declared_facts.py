"""SHOW and COMMENT ON, as data."""

from __future__ import annotations

from dataclasses import dataclass

from everview.errors import Span


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW of all tables or views, of the columns of one, or of the statement that creates it."""

    what: str
    name: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Comment:
    """COMMENT ON a table, a view or a column; an empty text takes it away."""

    relation: str
    column: str | None
    text: str
    span: Span
    kind: str
