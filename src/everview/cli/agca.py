"""`everview agca`: the views of a text are declared, and printed."""

from __future__ import annotations

from typing import IO

import click

from everview.cli.options import ENGINE, JSON, MEMORY, STORE


@click.command()
@STORE
@click.argument("file", type=click.File(encoding="utf-8"))
@ENGINE
@MEMORY
@JSON
def agca(store: str, file: IO[str], engine: str, memory: str | None, as_json: bool) -> None:
    """Declare the views of the AGCA text in FILE, print them.

    A view has a column for each group variable and the column value: the sum over all bindings of
    the other variables. It is maintained like any other view of the STORE.

    \b
    Example:
      spent[customer] := Sum(orders(_, customer, amount) * amount);
      pairs[] := Sum(orders(_, customer, _) * orders(_, customer, _))

    \b
    With that in spent.agca, and a table orders (id, customer, amount):
      everview agca shop spent.agca
      everview sql shop -c "SELECT * FROM spent WHERE value > 100"

    \b
    Exit codes:
      0  done
      1  the text was refused; the store is as it was
    """
    from everview.cli.open_store import open_for_writing
    from everview.cli.output import print_json, print_rows, records

    try:
        text = file.read()
    except UnicodeDecodeError as problem:
        raise click.UsageError(f"the text is not UTF-8: {problem.reason}") from None
    with open_for_writing(store, engine, memory=memory) as db:
        for name in db.agca(text):
            columns = [column.name for column in db.catalog.schema(name)]
            rows = sorted(db.read(name).rows())  # no value is NULL
            if as_json:
                print_json({"relation": name, "columns": columns, "rows": records(columns, rows)})
            else:
                click.echo(name)
                print_rows(columns, rows)
