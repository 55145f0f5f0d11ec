"""`everview relalg`: a view is declared by an expression of relational algebra."""

from __future__ import annotations

import click

from everview.cli.options import ENGINE, JSON, MEMORY, STORE


@click.command()
@STORE
@click.argument("view")
@click.argument("expression")
@ENGINE
@MEMORY
@JSON
def relalg(
    store: str, view: str, expression: str, engine: str, memory: str | None, as_json: bool
) -> None:
    """Declare VIEW as an EXPRESSION of relational algebra.

    There are σ[condition], Π[columns], ×, ∪, ∩, − and ⋈, or in words: select, project, times,
    union, intersect, minus, join. Tables are read as sets of rows. The view follows its
    tables, and its columns are printed.

    \b
    Example:
      everview relalg shop large "project[customer](select[amount > 5](orders))"
      everview sql shop -c "SELECT * FROM large"
      everview explain shop large --stage nabla

    \b
    Exit codes:
      0  done
      1  the expression was refused; the store is as it was
    """
    from everview.cli.open_store import open_for_writing
    from everview.cli.output import print_json, print_rows, records

    with open_for_writing(store, engine, memory=memory) as db:
        db.relalg(view, expression)
        columns = [(each.name, each.type) for each in db.source(view).schema]
    if as_json:
        print_json({"view": view, "columns": records(("name", "type"), columns)})
    else:
        print_rows(("column", "type"), columns)
