"""`everview explain`: how a view is kept fresh."""

from __future__ import annotations

import click

from everview.cli.options import ENGINE, JSON, STORE

STAGES = ("operators", "plan", "derivative", "program", "sql")


@click.command()
@STORE
@click.argument("view")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="operators",
    show_default=True,
    help="operators: the law, state and reading of each; plan: the query; derivative: its change; "
    "program: the steps of a transaction; sql: each step as SQL.",
)
@ENGINE
@JSON
def explain(store: str, view: str, stage: str, engine: str, as_json: bool) -> None:
    """Show how VIEW is kept fresh, at one stage.

    Each operator is shown with the law of its change, the state kept for it, and the rows it
    read for each changed row the last time: that is the price of the view.

    \b
    Example:
      everview explain shop revenue
      everview explain shop revenue --stage program
    """
    from everview.cli.opening import reading
    from everview.cli.output import print_json

    with reading(store, engine) as db:
        text = db.explain(view, stage)
    if as_json:
        print_json({"view": view, "stage": stage, "text": text})
    else:
        click.echo(text)
