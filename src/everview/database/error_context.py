"""Attaches to an error what the user can see of it: a damaged file, a view, a place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from everview.errors import Span, UserError
from everview.lang.sql.failing_expressions import failing_expressions
from everview.lang.sql.parse.trees import too_deep
from everview.runtime.protocol import Snapshot
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError
from everview.store.errors import damaged_segment, translating

_UNREADABLE = "it cannot be read"


@contextmanager
def report_damage(snapshot: Snapshot) -> Iterator[None]:
    """Name the damaged file, or what the operating system refused, where a failure comes from it.

    When the engine names no stored file, every file of the epoch is verified.
    """
    store = snapshot.store
    try:
        with translating(store.folder.shown):
            yield
    except UserError:
        raise
    except Exception as problem:
        damaged = _files_named(problem, snapshot) or store.verify(snapshot.manifest)
        for path, reason in damaged.items():
            good = store.log.last_without(damaged)
            raise damaged_segment(store.absolute(path), reason, good) from problem
        raise


def _files_named(problem: Exception, snapshot: Snapshot) -> dict[str, str]:
    """The stored files that a failure names, with what is wrong with each."""
    store, message = snapshot.store, str(problem)
    files = {file.path: file for file in snapshot.manifest.files if file.path in message}
    return {path: store.damage(file) or _UNREADABLE for path, file in files.items()}


@contextmanager
def report_removed_epoch(snapshot: Snapshot) -> Iterator[None]:
    """Say that retention removed the epoch, where that is why a read failed."""
    try:
        yield
    except Exception as problem:
        removed = snapshot.store.removed(snapshot.manifest.epoch)
        if removed is None:
            raise
        raise removed from problem


def name_views(problem: CalculationError, queries: Mapping[str, str]) -> CalculationError:
    """The error with the views whose expressions can have failed, by name and as written."""
    suspects = {
        view: failing_expressions(problem.problem, query) for view, query in queries.items()
    }
    certain = {view: expressions for view, expressions in suspects.items() if expressions}
    where = (
        f"{' or '.join(expressions)} in the view {view}" if expressions else f"the view {view}"
        for view, expressions in (certain or suspects).items()
    )
    return problem.located("; ".join(where)) if queries else problem


@contextmanager
def name_expressions(span: Span) -> Iterator[None]:
    """Name the expressions of a statement in which a value cannot be computed."""
    try:
        yield
    except CalculationError as problem:
        expressions = failing_expressions(problem.problem, span.text[span.start : span.stop])
        if problem.where or not expressions:
            raise
        raise problem.located(" or ".join(expressions)) from problem


def rows_with_span(result: Result, span: Span) -> Result:
    """The rows of a statement, read when asked for; an error then shows the statement."""

    @contextmanager
    def shown() -> Iterator[None]:
        with with_span(span), name_expressions(span):
            yield

    return replace(result.within(shown), frame=result.frame)


def rows_in_original_text(result: Result, text: str, dialect: str | None) -> Result:
    """Rows read when asked for, whose errors show the text of another dialect."""
    explained = result.within(lambda: in_original_text(text, dialect))
    return replace(explained, frame=result.frame)


@contextmanager
def in_original_text(text: str, dialect: str | None) -> Iterator[None]:
    """Show an error in the text that the user wrote in another dialect, not in its translation."""
    try:
        yield
    except UserError as problem:
        if dialect is None or problem.span is None or problem.span.text == text:
            raise
        if isinstance(problem, CalculationError) and problem.where not in text:
            problem.problem = problem.problem.removesuffix(f", in {problem.where}")
        problem.span = _corresponding_span(problem.span, text)
        raise


def _corresponding_span(span: Span, text: str) -> Span:
    """The same words in another text if they stand there exactly once; else the whole text."""
    word = span.text[span.start : span.stop]
    places = [each.start() for each in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)]
    start, stop = (places[0], places[0] + len(word)) if len(places) == 1 else (0, len(text))
    return Span(text, start, stop)


@contextmanager
def with_span(whole: Span) -> Iterator[None]:
    """Give an error a span in the user's text: its own, moved from a part of it, or `whole`."""
    try:
        yield
    except RecursionError:
        raise too_deep(whole) from None
    except UserError as problem:
        span = problem.span or whole
        if span.text != whole.text:
            offset = whole.text.find(span.text, whole.start)
            moved = Span(whole.text, span.start + offset, span.stop + offset)
            span = moved if offset >= 0 else whole
        problem.span = span
        raise
