"""What a text in another language than SQL declares, while nobody else writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from everview import arguments
from everview.database import agca, datalog
from everview.database.commit import install_relalg
from everview.database.handle import Handle
from everview.errors import Span

T = TypeVar("T")


def declare_datalog(db: Handle, text: str, facts: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Declare a Datalog program; the names of its outputs."""
    arguments.text("text", text)
    rows = {} if facts is None else arguments.mapping("facts", facts)
    return _declared(db, text, lambda: datalog.declare(db, text, rows)).outputs


def declare_agca(db: Handle, text: str) -> tuple[str, ...]:
    """Declare the views of an AGCA text; their names."""
    arguments.text("text", text)
    return _declared(db, text, lambda: agca.declare(db, text))


def declare_relalg(db: Handle, name: str, text: str) -> None:
    """Declare a view by an expression of relational algebra."""
    arguments.text("name", name)
    whole = Span(arguments.text("text", text), 0, len(text))
    _declared(db, text, lambda: install_relalg(db, name, whole))


def _declared(db: Handle, text: str, declare: Callable[[], T]) -> T:
    db.must_declare(Span(text, 0, len(text)))
    return db.exclusively(declare)
