"""`everview repair`: damaged views and states, built again from the tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from everview.cli.exit_codes import DIFFERENCE
from everview.cli.options import ENGINE, JSON, MEMORY, STORE
from everview.cli.verify import as_record, epoch_ranges, print_damage, progress

if TYPE_CHECKING:
    from everview.database.repair import Repair


@click.command()
@STORE
@ENGINE
@MEMORY
@JSON
@click.pass_context
def repair(ctx: click.Context, store: str, engine: str, memory: str | None, as_json: bool) -> None:
    """Build what is damaged of STORE again, from its tables.

    Views and states of the newest epoch that are damaged are built again, in a new epoch; the feed
    of such a view begins there. What is damaged of a table cannot be built from anything: its rows
    and the epochs that wrote them are named, and the last epoch that is whole, which
    --epoch opens. Older epochs stay as they are.

    \b
    Example:
      everview verify shop
      everview repair shop

    \b
    Exit codes:
      0  the newest epoch is whole
      3  rows of a table, or a manifest, are lost
    """
    from everview.cli.output import print_json
    from everview.database.open import repaired

    done = repaired(store, engine=engine, memory=memory, on_progress=progress())
    if as_json:
        print_json({**asdict(done), "found": as_record(done.found), "ok": done.ok})
    else:
        _print(done)
    if not done.ok:
        ctx.exit(DIFFERENCE)


def _print(done: Repair) -> None:
    print_damage(done.found)
    if done.epoch is not None:
        click.echo(f"epoch {done.epoch}: built again {', '.join(done.rebuilt)}")
    elif not done.ok and not done.lost:
        click.echo("the newest manifest cannot be built again: restore it from a backup")
    for each in done.lost:
        files, epochs = ", ".join(each.files), epoch_ranges(each.epochs)
        click.echo(
            f"lost: up to {each.rows} rows of {each.table}, written by epoch {epochs}: "
            f"restore {files} from a backup"
        )
    for name in done.waiting:
        click.echo(f"not built: {name} reads a table that is damaged")
