"""How a command opens a store: to read it beside a writer, or to write it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

import everview
from everview.database.database import Database
from everview.errors import UserError

_NO_STORE = "S004"


@contextmanager
def open_for_reading(
    location: str,
    engine: str,
    allow: Sequence[str] = (),
    epoch: int | None = None,
    memory: str | None = None,
) -> Iterator[Database]:
    """The database at `location`, which must be there; Spark starts only if it is needed."""
    with everview.open(
        location, engine=engine, memory=memory, read_only=True, allow=allow, epoch=epoch
    ) as db:
        if sys.stderr.isatty():
            db.handle.on_progress = _show_progress
        yield db


@contextmanager
def open_for_writing(
    location: str,
    engine: str,
    allow: Sequence[str] = (),
    memory: str | None = None,
    *,
    create: bool = True,
) -> Iterator[Database]:
    """The database at `location`, created if it may be; a new epoch is shown on stderr."""
    with _open(location, engine, allow, memory, create=create) as db:
        before = db.epoch
        if sys.stderr.isatty():
            db.handle.on_progress = _show_progress
        try:
            yield db
        finally:
            if db.epoch != before:
                click.echo(f"epoch {db.epoch}", err=True)


def _show_progress(doing: str) -> None:
    """One line that is overwritten, and empty when nothing is done any more."""
    click.echo(f"\r\x1b[K{doing}", err=True, nl=False)


def _open(
    location: str, engine: str, allow: Sequence[str], memory: str | None, *, create: bool
) -> Database:
    try:
        return everview.open(location, engine=engine, memory=memory, create=False, allow=allow)
    except UserError as problem:
        if problem.code != _NO_STORE or not create:
            raise
    db = everview.open(location, engine=engine, memory=memory, allow=allow)
    click.echo(f"created the store {location}", err=True)
    return db
