"""What went wrong, told where the user can see it: the damaged file, the place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from everview.errors import Span, UserError
from everview.lang.sql.bind.failing_expressions import failing_expressions
from everview.lang.sql.parse.trees import too_deep
from everview.runtime.protocol import Snapshot
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError
from everview.store.errors import damaged_segment, translating

_UNREADABLE = "it cannot be read"


@contextmanager
def sound(snapshot: Snapshot) -> Iterator[None]:
    """Name the damaged file, or what the operating system refused, when a failure comes from it."""
    store = snapshot.store
    try:
        with translating(store.folder.shown):
            yield
    except UserError:
        raise
    except Exception as problem:
        damaged = _named(problem, snapshot) or store.verify(snapshot.manifest)
        for path, reason in damaged.items():
            good = store.log.last_without(damaged)
            raise damaged_segment(store.absolute(path), reason, good) from problem
        raise


def _named(problem: Exception, snapshot: Snapshot) -> dict[str, str]:
    """The stored files that a failure names, with what is wrong with each."""
    store, spoken = snapshot.store, str(problem)
    files = {file.path: file for file in snapshot.manifest.files if file.path in spoken}
    return {path: store.damage(file) or _UNREADABLE for path, file in files.items()}


@contextmanager
def in_time(snapshot: Snapshot) -> Iterator[None]:
    """Say that an epoch was removed while it was read, where that is why a read failed."""
    try:
        yield
    except Exception as problem:
        removed = snapshot.store.removed(snapshot.manifest.epoch)
        if removed is None:
            raise
        raise removed from problem


def in_views(problem: CalculationError, queries: Mapping[str, str]) -> CalculationError:
    """The error with the views whose expressions can have failed, by name and as written."""
    found = {view: failing_expressions(problem.problem, query) for view, query in queries.items()}
    certain = {view: expressions for view, expressions in found.items() if expressions}
    where = (
        f"{' or '.join(expressions)} in the view {view}" if expressions else f"the view {view}"
        for view, expressions in (certain or found).items()
    )
    return problem.located("; ".join(where)) if queries else problem


@contextmanager
def in_text(span: Span) -> Iterator[None]:
    """Name the expressions of a statement in which a value cannot be computed."""
    try:
        yield
    except CalculationError as problem:
        found = failing_expressions(problem.problem, span.text[span.start : span.stop])
        if problem.where or not found:
            raise
        raise problem.located(" or ".join(found)) from problem


def placed_rows(result: Result, span: Span) -> Result:
    """The rows of a query that are read later; what goes wrong then is told as if it were now."""

    def arrow() -> pa.Table:
        with placed_in(span), in_text(span):
            return result.arrow()

    return Result(arrow, result.frame)


def written_rows(result: Result, text: str, dialect: str | None) -> Result:
    """Rows that are read later, for a text of another dialect."""

    def arrow() -> pa.Table:
        with as_written(text, dialect):
            return result.arrow()

    return Result(arrow, result.frame)


@contextmanager
def as_written(text: str, dialect: str | None) -> Iterator[None]:
    """Show places in a text of another dialect as it was written, not as it was translated."""
    try:
        yield
    except UserError as problem:
        if dialect is None or problem.span is None or problem.span.text == text:
            raise
        if isinstance(problem, CalculationError) and problem.where not in text:
            problem.problem = problem.problem.removesuffix(f", in {problem.where}")
        problem.span = _same(problem.span, text)
        raise


def _same(span: Span, text: str) -> Span:
    """What a span shows in another text, where it stands there once; else all of that."""
    word = span.text[span.start : span.stop]
    places = [each.start() for each in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)]
    start, stop = (places[0], places[0] + len(word)) if len(places) == 1 else (0, len(text))
    return Span(text, start, stop)


@contextmanager
def placed_in(whole: Span) -> Iterator[None]:
    """Show a place in a part of a statement as a place in the text that the user wrote."""
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
