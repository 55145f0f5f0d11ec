"""How a text of statements is run: step by step, each result shown as it comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import click
import pyarrow as pa

from everview import arguments
from everview.cli.cancel import cancel_on_interrupt
from everview.cli.open_store import open_for_reading, open_for_writing
from everview.database.database import Database
from everview.database.error_context import in_original_text
from everview.errors import UserError
from everview.lang.sql.dialects.translate import only_reads, parse_dialect
from everview.lang.sql.parse.statements import Statement, TransactionBracket

Show = Callable[[pa.Table], None]

QUIT = ("\\q", "quit", "exit")


def run_text(
    location: str,
    engine: str,
    text: str,
    dialect: str | None,
    show: Show,
    allow: Sequence[str] = (),
    epoch: int | None = None,
    memory: str | None = None,
) -> None:
    """Run all statements of a text; one that only reads takes no lock and makes no store."""
    arguments.text("the text of the statements", text)
    reads = epoch is not None or only_reads(text, dialect)
    with (
        _opened(location, engine, allow, epoch, memory, reads=reads) as db,
        in_original_text(text, dialect),
    ):
        statements = parse_dialect(text, dialect, db.catalog.schemas)
        _run(db, statements, show)
    brackets = [s.action for s in statements if isinstance(s, TransactionBracket)]
    if brackets and brackets[-1] == "begin":
        click.echo("the last transaction was rolled back: it has no COMMIT", err=True)


def run_prompt(
    location: str,
    engine: str,
    dialect: str | None,
    show: Show,
    allow: Sequence[str] = (),
    epoch: int | None = None,
    memory: str | None = None,
) -> None:
    """Run statements as they are typed; an error or Ctrl-C ends the statement, not the session."""
    with _opened(location, engine, allow, epoch, memory, reads=epoch is not None) as db:
        texts = _texts(db)
        click.echo("Statements end with a semicolon; help shows more, \\q quits.", err=True)
        while _is_cancelled(db, dialect, show, texts):
            click.echo("cancelled", err=True)


def _texts(db: Database) -> Callable[[], Iterator[str]]:
    """Who asks for statements: the shell, or on a terminal that cannot move its cursor, a line."""
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return _typed
    from everview.cli.shell import Shell

    return Shell(lambda: db.catalog.schemas()).texts


def _is_cancelled(
    db: Database, dialect: str | None, show: Show, texts: Callable[[], Iterator[str]]
) -> bool:
    """Run statements as they are typed; whether one was cancelled, and there may be more."""
    try:
        _run_typed(db, dialect, show, texts())
    except KeyboardInterrupt:
        return True
    return False


def _run_typed(db: Database, dialect: str | None, show: Show, texts: Iterator[str]) -> None:
    """Run statements until there are no more, or one is cancelled."""
    for text in texts:
        try:
            with in_original_text(text, dialect), cancel_on_interrupt(db.engine.local.interrupt):
                _run(db, parse_dialect(text, dialect, db.catalog.schemas), show, tell_changed)
        except UserError as problem:
            click.echo(problem.render(), err=True)


def tell_changed(count: int) -> None:
    """Say how many rows a statement changed."""
    click.echo(f"{count} row{'s' * (count != 1)}", err=True)


def _opened(
    location: str,
    engine: str,
    allow: Sequence[str],
    epoch: int | None,
    memory: str | None,
    *,
    reads: bool,
) -> AbstractContextManager[Database]:
    """The database, to read it, at an epoch, or to write it."""
    if reads:
        return open_for_reading(location, engine, allow, epoch, memory)
    return open_for_writing(location, engine, allow, memory)


def _typed() -> Iterator[str]:
    """The texts typed at the prompt, each up to a line that ends with a semicolon."""
    text = ""
    while True:
        try:
            line = input("     ...> " if text else "everview> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            click.echo()
            text = ""
            continue
        if not text and line.strip() in QUIT:
            return
        text += f"{line}\n"
        if line.rstrip().endswith(";"):
            yield text
            text = ""
        elif not text.strip():
            text = ""


def _run(
    db: Database,
    statements: Sequence[Statement],
    show: Show,
    tell: Callable[[int], None] = lambda _: None,
) -> None:
    for result in db.run(statements):
        if result is not None and result.changed is not None:
            tell(result.changed)
        elif result is not None:
            show(result.to_arrow())
