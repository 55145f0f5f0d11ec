"""Spark's errors in the words of a user, and what is tried again after one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, QueryContextType
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.sql import SparkSession

from everview.errors import Span, UserError
from everview.runtime.retry import not_computed, retry_consolidated

Answer = TypeVar("Answer")
INFERENCE = "spark.sql.constraintPropagation.enabled"
DATA_EXCEPTIONS = ("22", "P0001")
"""SQL states for values that cannot be computed with, and for those that we refuse ourselves."""


NOT_ACCEPTED = "Q010"
_INSIDE = (
    "java.lang.ClassCastException",
    "java.util.NoSuchElementException",
    "[INTERNAL_ERROR]",
    "[UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.",
)
"""What Spark's optimizer raises for itself, or for a subquery that the analyzer had accepted."""


def not_accepted(
    problem: PySparkException, written: str = "", asked: str = "", span: Span | None = None
) -> UserError:
    """What Spark's analyzer does not accept, without its plan dump.

    Spark read what was `written` of a text that was `asked`: its place is shown in that one.
    """
    span = span or _place(problem, written, asked)
    condition = problem.getCondition() or ""
    remedy = "correct the query; Spark's SQL reference lists the functions and types"
    if condition.startswith("UNRESOLVED_ROUTINE"):
        remedy = "check the spelling of the function"
    elif condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        remedy = "create the table or view first, or correct its name"
    return UserError(NOT_ACCEPTED, in_words(problem), span=span, remedy=remedy)


@contextmanager
def explained() -> Iterator[None]:
    """Turn what goes wrong while Spark computes with the user's data into a UserError."""
    try:
        yield
    except PySparkException as problem:
        # Anything else, an analysis error too, is our bug: the plan is ours.
        if not (problem.getSqlState() or "").startswith(DATA_EXCEPTIONS):
            raise
        raise not_computed(in_words(problem)) from problem


def innermost(problem: Py4JJavaError) -> Exception:
    """What first went wrong in Java, where Spark has wrapped it on the way to an iterator."""
    cause = problem.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    found: Exception = convert_exception(cause)
    return found


def is_unreadable(problem: Py4JJavaError) -> bool:
    """Whether Spark gave up on a file that is not what it should be."""
    return any(words in str(problem.java_exception) for words in ("FAILED_READ_FILE", "MALFORMED_"))


def in_words_of_java(problem: Py4JJavaError) -> str:
    """What Spark says of a job that failed, and of what first went wrong, without its codes."""
    outer = inner = problem.java_exception
    while inner.getCause() is not None:
        inner = inner.getCause()
    told = (_without_codes(each.getMessage() or "") for each in (outer, inner))
    return " ".join(dict.fromkeys(each for each in told if each))


def _without_codes(message: str) -> str:
    line = message.strip().partition("\n")[0]
    return re.sub(r"^\[[A-Z_.]+\] ", "", line).split(" SQLSTATE:")[0].strip()


def ends_early(problem: Exception) -> bool:
    """Whether Spark ended a recursion at a limit of its own."""
    return any(words in str(problem) for words in ("RECURSION_LEVEL_LIMIT", "RECURSION_ROW_LIMIT"))


def fails_inside(problem: Exception) -> bool:
    """Whether Spark's optimizer fails on a text that it should not fail on."""
    return any(words in str(problem) for words in _INSIDE)


def in_words(problem: PySparkException) -> str:
    """What Spark says, without its codes."""
    condition = problem.getCondition() or ""
    line = str(problem).strip().partition("\n")[0]
    return line.removeprefix(f"[{condition}] ").split(" SQLSTATE:")[0].strip()


def _place(problem: PySparkException, written: str, asked: str) -> Span | None:
    """Where the words that Spark complains of stand in what was asked, if they stand there once."""
    for context in problem.getQueryContext():
        if context.contextType() is QueryContextType.SQL and context.startIndex() >= 0:
            words = written[context.startIndex() : context.stopIndex() + 1].replace("`", "")
            found = list(re.finditer(re.escape(words), asked, re.IGNORECASE)) if words else []
            return Span(asked, found[0].start(), found[0].end()) if len(found) == 1 else None
    return None


def retry_as_written(session: SparkSession, compute: Callable[[bool], Answer]) -> Answer:
    """What `compute(False)` gives; after an error, `compute(True)` without inferred conditions.

    From a = b AND b - 1 > 0 Spark infers a - 1 > 0, which it computes of rows that join nothing:
    that is cheaper than to join them first, and changes nothing but errors.
    """

    def attempt(consolidated: bool) -> Answer:
        if not consolidated:
            return compute(False)
        with _no_inference(session):
            return compute(True)

    return retry_consolidated(attempt)


@contextmanager
def _no_inference(session: SparkSession) -> Iterator[None]:
    """While Spark infers no conditions; others who use the session now only wait longer."""
    before = session.conf.get(INFERENCE, None)
    session.conf.set(INFERENCE, "false")
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(INFERENCE)
        else:
            session.conf.set(INFERENCE, before)
