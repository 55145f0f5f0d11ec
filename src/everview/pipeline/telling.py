"""What went wrong, told where the user can see it: the damaged file, the place in the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from everview.engine.protocol import Snapshot
from everview.errors import Span, UserError
from everview.lang.sql.reading import too_deep
from everview.store.faults import damaged_segment


@contextmanager
def sound(snapshot: Snapshot) -> Iterator[None]:
    """Name the damaged file when a failure comes from one."""
    try:
        yield
    except UserError:
        raise
    except Exception as problem:
        for path, reason in snapshot.store.verify(snapshot.manifest).items():
            raise damaged_segment(snapshot.store.absolute(path), reason) from problem
        raise


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
