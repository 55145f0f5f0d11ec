"""`everview changes`: the change feed."""

from __future__ import annotations

import click

from everview.cli.options import ENGINE, JSON, STORE


@click.command()
@STORE
@click.argument("view")
@click.option(
    "--after",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Only what changed after epoch N.",
)
@click.option("--path", metavar="PATH", help="Of a nested view: the collection inside it.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Only the first N rows.")
@ENGINE
@JSON
def changes(
    store: str,
    view: str,
    after: int,
    path: str | None,
    limit: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Show the change feed of a view or table.

    The oldest rows come first. `_w` is what was added to the weight of a row (1 came, -1 left),
    and `_epoch` the epoch that did it. To follow VIEW, ask again after the last epoch you have
    seen whole. Works beside a writer, and as a rule without starting Spark.

    \b
    Example:
      everview changes shop revenue --after 12
      everview changes shop revenue --json | jq -c '.rows[]'
      everview changes shop related --path _2
    """
    from everview.cli.open_store import open_for_reading
    from everview.cli.output import console, print_json, records
    from everview.runtime.text_table import print_table

    with open_for_reading(store, engine) as db:
        rows = db.changes(view, after=after, path=path).to_arrow()
    if not as_json:
        print_table(rows, limit, console())
        return
    shown = rows.slice(0, limit)
    values = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    more = rows.num_rows - shown.num_rows
    print_json({"view": view, "rows": records(rows.column_names, values), "more": more})
