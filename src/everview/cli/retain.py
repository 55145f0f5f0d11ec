"""`everview retain`: the newest epochs kept, what only older ones need deleted."""

from __future__ import annotations

import click

from everview.cli.options import ENGINE, JSON, MEMORY, STORE

GRACE_SECONDS = 3_600


@click.command()
@STORE
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="How many of the newest epochs stay readable.",
)
@click.option(
    "--grace",
    type=click.IntRange(min=0),
    default=GRACE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Keep also what was the newest epoch less than SECONDS ago, for those who read it.",
)
@ENGINE
@MEMORY
@JSON
def retain(
    store: str, keep: int, grace: int, engine: str, memory: str | None, as_json: bool
) -> None:
    """Delete the old epochs of STORE.

    The newest N epochs stay readable, with --epoch and in the change feed. Older manifests are
    deleted, and then the files that no remaining epoch needs. The answers of the newest epoch stay
    the same. Waits for no reader: a reader of an older epoch that takes longer than --grace fails
    with an error that says so.

    \b
    Example:
      everview retain shop --keep 100
      everview retain shop --keep 1 --grace 0

    \b
    Exit codes:
      0  done, also if there was nothing to delete
      1  there is no such store, or another process writes to it
    """
    from everview.cli.open_store import open_for_writing
    from everview.cli.output import print_json

    with open_for_writing(store, engine, memory=memory, create=False) as db:
        deleted = db.retain(keep, grace=grace)
        epochs = db.store.epochs()
    oldest, newest = epochs[0], epochs[-1]
    if as_json:
        print_json({"oldest": oldest, "newest": newest, "deleted": deleted})
    else:
        files = f"{len(deleted)} file{'s' * (len(deleted) != 1)}"
        click.echo(f"epochs {oldest} to {newest} are kept, {files} deleted")
