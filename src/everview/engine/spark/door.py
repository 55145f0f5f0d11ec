"""The one place where Spark is given SQL: nothing but words that are known comes through."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from everview.errors import Span, UserError
from everview.lang.sql.words import stranger

_REGISTERED: WeakKeyDictionary[SparkSession, frozenset[str]] = WeakKeyDictionary()


def ask(
    session: SparkSession,
    sql: str,
    functions: frozenset[str] = frozenset(),
    span: Span | None = None,
) -> DataFrame:
    """What Spark makes of a text that calls pure functions, those of the user, and `functions`."""
    word = stranger(sql, callable_in(session) | functions)
    if word is not None:
        raise UserError(
            "Q023",
            f"{word.lower()} is no function that is known to be pure",
            span=span,
            remedy="check its spelling, or register it with db.function",
        )
    return session.sql(sql)


def register(session: SparkSession, name: str) -> None:
    """Let queries of a session call a function of the user's."""
    _REGISTERED[session] = callable_in(session) | {name.lower()}


def callable_in(session: SparkSession) -> frozenset[str]:
    """The functions that were registered for a session."""
    return _REGISTERED.get(session, frozenset())
