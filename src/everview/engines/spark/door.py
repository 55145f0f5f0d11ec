"""The one place where Spark is given SQL: nothing but words that are known comes through."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from everview.arguments import did_you_mean
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.lang.sql.allowlist.allow import Allow
from everview.lang.sql.allowlist.checked_text import spelled
from everview.lang.sql.allowlist.words import stranger
from everview.lang.sql.parse.functions import PARSED_FUNCTIONS

_REMEDY = "check its spelling, or register it with db.function"
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
            remedy=did_you_mean(word, PARSED_FUNCTIONS) + _REMEDY,
        )
    return session.sql(sql)


def allowed_frame(session: SparkSession, table: exp.Table, allow: Allow) -> DataFrame | None:
    """A table of Spark's, or files, that may be read; None for any other."""
    if spelled(table) in allow.tables:
        return session.table(".".join(spark_name(part.name) for part in table.parts))
    found = allow.file(table)
    return session.read.format(found[0]).load(found[1]) if found is not None else None


def register(session: SparkSession, name: str) -> None:
    """Let queries of a session call a function of the user's."""
    _REGISTERED[session] = callable_in(session) | {name.lower()}


def callable_in(session: SparkSession) -> frozenset[str]:
    """The functions that were registered for a session."""
    return _REGISTERED.get(session, frozenset())
