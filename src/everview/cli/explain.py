"""`everview explain`: how a view is kept fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everview.cli.options import ENGINE, EPOCH, JSON, STORE

if TYPE_CHECKING:
    from everview.database.database import Database

STAGES = (
    "operators",
    "plan",
    "derivative",
    "program",
    "sql",
    "deltas",
    "domains",
    "nabla",
    "pre",
    "agca",
    "triggers",
    "shredded",
)


@click.command()
@STORE
@click.argument("view")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    default="operators",
    show_default=True,
    help="operators: the law, state and reading of each; plan: the query; derivative: its change; "
    "program: the steps of a transaction; sql: each step as SQL; deltas: its degree and the maps "
    "that each change reads; domains: subqueries with inputs, and how many values these have; "
    "nabla: what leaves and what comes, in relational algebra; agca: a GROUP BY as sums of "
    "products; triggers: what one row would add to each map; shredded: the flat relations of a "
    "nested view.",
)
@ENGINE
@EPOCH
@JSON
def explain(
    store: str, view: str, stage: str, engine: str, epoch: int | None, as_json: bool
) -> None:
    """Show how VIEW is kept fresh, at one stage.

    Each operator is shown with the law of its change, the state kept for it, and the rows it
    read for each changed row the last time: that is the price of the view. A recursion is shown
    with its iterations the last time, and with the rows kept of each.

    \b
    Example:
      everview explain shop revenue
      everview explain shop revenue --stage program
    """
    from everview.cli.open_store import open_for_reading
    from everview.cli.output import print_json

    with open_for_reading(store, engine, epoch=epoch) as db:
        text = db.explain(view, stage)
        loops = _strata(db, view) if as_json and stage == "operators" else []
    if as_json:
        strata = {"strata": loops} if loops else {}
        print_json({"view": view, "stage": stage, "text": text, **strata})
    else:
        click.echo(text)


def _strata(db: Database, view: str) -> list[dict[str, Any]]:
    """The recursions of a view: their iterations the last time, and the rows kept of each."""
    from everview.database.introspect.explain import strata_of
    from everview.database.introspect.fetch_costs import measured_costs

    strata = strata_of(db.catalog, db.catalog.relation(view), measured_costs(db.store, db.catalog))
    return [
        {
            "relations": list(each.relations),
            "from_scratch": each.from_scratch,
            "iterations": each.iterations,
            "rows_by_iteration": {
                state: [{"iteration": at, "rows": rows} for at, rows in kept.items()]
                for state, kept in each.states.items()
            },
        }
        for each in strata
    ]
