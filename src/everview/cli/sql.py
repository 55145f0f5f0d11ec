"""`everview sql`: statements from a file, the command line, standard input or a prompt."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

import click

from everview.cli.options import ALLOW, ENGINE, EPOCH, JSON, MEMORY, STORE

if TYPE_CHECKING:
    import pyarrow as pa


@click.command()
@STORE
@click.argument("file", required=False, type=click.File(encoding="utf-8"))
@click.option("-c", "--command", metavar="TEXT", help="Run TEXT instead of a file.")
@click.option("--dialect", metavar="D", help="Read another dialect, such as postgres or duckdb.")
@ENGINE
@ALLOW
@MEMORY
@EPOCH
@JSON
def sql(
    store: str,
    file: IO[str] | None,
    command: str | None,
    dialect: str | None,
    engine: str,
    allow: tuple[str, ...],
    memory: str | None,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Run SQL statements on STORE.

    They come from FILE, from -c, from standard input, or from a prompt, and are all parsed before
    the first one runs. Each is a transaction of its own unless BEGIN and COMMIT say otherwise, but
    CREATE statements that stand together are one: all of them take effect, or none.

    STORE is made when it is absent. Statements that only read make none, and work beside a writer.

    \b
    Example:
      everview sql shop schema.sql
      everview sql shop -c "INSERT INTO orders VALUES (1, 7, 10.00)"
      everview sql shop -c "SELECT * FROM revenue" --json | jq '.rows[0].total'
      everview sql shop --engine duckdb

    \b
    Exit codes:
      0  every statement ran
      1  a statement was refused; those before it have taken effect
    """
    from everview.cli import statements

    show = _show_json if as_json else _show_table
    text = _text(file, command)
    if text is None:
        show = _show_json if as_json else _show_paged
        statements.run_prompt(store, engine, dialect, show, allow, epoch, memory)
    else:
        statements.run_text(store, engine, text, dialect, show, allow, epoch, memory)


def _text(file: IO[str] | None, command: str | None) -> str | None:
    """The statements to run; None: ask for them at a prompt."""
    if file is not None and command is not None:
        raise click.UsageError("give either FILE or -c, not both")
    if command is not None:
        return command
    if file is None and sys.stdin.isatty():
        return None
    try:
        return (file or sys.stdin).read()
    except UnicodeDecodeError as problem:
        raise click.UsageError(f"the statements are not UTF-8: {problem.reason}") from None


def _show_table(rows: pa.Table) -> None:
    from everview.cli.output import console
    from everview.runtime.text_table import print_table

    print_table(rows, console=console())


def _show_paged(rows: pa.Table) -> None:
    """A table that does not fit the terminal goes through the pager, $PAGER or less."""
    from everview.cli.output import console
    from everview.runtime.text_table import print_table

    out = console()
    if rows.num_rows + _FRAME_LINES < out.height or not sys.stdout.isatty():
        print_table(rows, console=out)
        return
    with out.pager():
        print_table(rows, console=out)


_FRAME_LINES = 5
"""How many lines a table has beside its rows, the prompt after it included."""


def _show_json(rows: pa.Table) -> None:
    from everview.cli.output import print_json, records

    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    print_json({"columns": rows.column_names, "rows": records(rows.column_names, values)})
