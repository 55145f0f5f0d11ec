"""`everview explain`: how a view is kept fresh."""

from __future__ import annotations

import click

from everview.cli.options import ENGINE, JSON, STORE

STAGES = ("plan", "derivative", "program", "sql")


@click.command()
@STORE
@click.argument("view")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="program",
    show_default=True,
    help="plan: the query; derivative: its change; program: the steps of a transaction; "
    "sql: each step as SQL.",
)
@ENGINE
@JSON
def explain(store: str, view: str, stage: str, engine: str, as_json: bool) -> None:
    """Show how VIEW is kept fresh, at one stage.

    The program names every slice that is fetched, by which key, and how many rows it brought
    last: that is the price of the view.

    \b
    Example:
      everview explain shop revenue
      everview explain shop revenue --stage derivative
    """
    from everview.cli.opening import reading
    from everview.cli.output import print_json

    with reading(store, engine) as db:
        text = db.explain(view, stage)
    if as_json:
        print_json({"view": view, "stage": stage, "text": text})
    else:
        click.echo(text)
