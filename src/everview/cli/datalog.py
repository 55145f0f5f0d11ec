"""`everview datalog`: a program is declared, its facts are read, and its outputs are printed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import click

from everview.cli.options import ENGINE, JSON, MEMORY

if TYPE_CHECKING:
    from everview.database.database import Database
    from everview.lang.datalog.program import Declarations


@click.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--store", metavar="STORE", help="Keep the relations in STORE, and maintain them.")
@click.option(
    "--facts",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where R.facts is for each relation R with .input: a fact a line, values between tabs.",
)
@ENGINE
@MEMORY
@JSON
def datalog(
    file: IO[str],
    store: str | None,
    facts: Path | None,
    engine: str,
    memory: str | None,
    as_json: bool,
) -> None:
    """Run the Datalog program in FILE, print its relations.

    The language is Soufflé's: .decl, .input, .output, facts, rules, negation, aggregates. What is
    given becomes tables, each derived relation a view. With --store they stay: change the facts
    with `everview sql`, and every relation follows.

    \b
    Example:
      .decl edge(x: number, y: number)
      .decl reach(x: number, y: number)
      .output reach
      edge(1, 2). edge(2, 3).
      reach(x, y) :- edge(x, y).
      reach(x, z) :- reach(x, y), edge(y, z).

    \b
    With that in reach.dl:
      everview datalog reach.dl
      everview datalog reach.dl --store graph
      everview sql graph -c "DELETE FROM edge WHERE x = 2; SELECT * FROM reach"

    \b
    Exit codes:
      0  done
      1  the program was refused; the store is as it was
    """
    from everview.cli.open_store import open_for_writing
    from everview.lang.datalog.program import declarations

    text = _text(file)
    program = declarations(text)
    rows = {} if facts is None else _facts(program, facts)
    with ExitStack() as stack:
        if store is None:
            import everview

            folder = TemporaryDirectory(prefix="everview-", ignore_cleanup_errors=True)
            location = str(Path(stack.enter_context(folder)) / "store")
            db = stack.enter_context(everview.open(location, engine=engine, memory=memory))
        else:
            db = stack.enter_context(open_for_writing(store, engine, memory=memory))
        db.datalog(text, rows)
        _show(db, program, as_json)


def _text(file: IO[str]) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as problem:
        raise click.UsageError(f"the program is not UTF-8: {problem.reason}") from None


def _facts(program: Declarations, folder: Path) -> dict[str, Any]:
    """The facts of each relation that the program reads and the folder has a file for."""
    from everview.lang.datalog.facts import facts_in

    facts: dict[str, Any] = {}
    for each in program.given:
        if each.read is None:
            continue
        path = folder / each.read.parameters.get("filename", f"{each.relation}.facts")
        if path.exists():
            text = path.read_text(encoding="utf-8")
            facts[each.relation] = list(facts_in(text, each, str(path)))
    return {name: rows for name, rows in facts.items() if rows}


def _show(db: Database, program: Declarations, as_json: bool) -> None:
    from everview.cli.output import print_json, print_rows, records

    for name in program.outputs:
        columns = [column.name for column in db.catalog.schema(name)]
        rows = sorted(db.read(name).rows())
        if as_json:
            print_json({"relation": name, "columns": columns, "rows": records(columns, rows)})
        else:
            click.echo(name)
            print_rows(columns, rows)
    for name in program.sizes:
        size = len(db.read(name).rows())
        if as_json:
            print_json({"relation": name, "size": size})
        else:
            click.echo(f"{name}\t{size}")
