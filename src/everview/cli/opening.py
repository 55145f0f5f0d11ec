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
def reading(
    location: str, engine: str, allow: Sequence[str] = (), epoch: int | None = None
) -> Iterator[Database]:
    """The database at `location`, which must be there; Spark starts only if it is needed."""
    with everview.open(location, engine=engine, read_only=True, allow=allow, epoch=epoch) as db:
        yield db


@contextmanager
def writing(location: str, engine: str, allow: Sequence[str] = ()) -> Iterator[Database]:
    """The database at `location`, made when there is none; says what came of it on stderr."""
    with _create_or_open(location, engine, allow) as db:
        before = db.epoch
        if sys.stderr.isatty():
            db.handle.on_progress = _show_progress
        try:
            yield db
        finally:
            if db.epoch != before:
                click.echo(f"epoch {db.epoch}", err=True)


def _show_progress(doing: str) -> None:
    """One line that is written over, and gone when nothing is done any more."""
    click.echo(f"\r\x1b[K{doing}", err=True, nl=False)


def _create_or_open(location: str, engine: str, allow: Sequence[str]) -> Database:
    try:
        return everview.open(location, engine=engine, create=False, allow=allow)
    except UserError as problem:
        if problem.code != _NO_STORE:
            raise
    db = everview.open(location, engine=engine, allow=allow)
    click.echo(f"created the store {location}", err=True)
    return db
