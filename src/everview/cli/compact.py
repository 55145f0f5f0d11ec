"""`everview compact`: the segments of every relation, consolidated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everview.cli.options import ENGINE, JSON, MEMORY, STORE

if TYPE_CHECKING:
    from everview.database.database import Database


@click.command()
@STORE
@ENGINE
@MEMORY
@JSON
def compact(store: str, engine: str, memory: str | None, as_json: bool) -> None:
    """Consolidate the segments of STORE.

    Every transaction adds a segment to each relation that it changes; a row that came and left is
    in two of them. Compaction adds the segments of a relation up to one, in a new epoch. Answers,
    change feeds and older epochs stay the same, so disk space is freed only when `everview retain`
    deletes the old epochs. It also happens by itself where many segments have gathered.

    \b
    Example:
      everview compact shop
      everview compact shop && everview retain shop --keep 100

    \b
    Exit codes:
      0  done
      1  there is no such store, or another process writes to it
    """
    from everview.cli.open_store import open_for_writing
    from everview.cli.output import print_json

    with open_for_writing(store, engine, memory=memory, create=False) as db:
        before = _segments(db)
        epoch = db.compact()
        after = _segments(db)
    if as_json:
        print_json({"epoch": epoch, "segments_before": before, "segments_after": after})
    else:
        click.echo(f"{before} segments before, {after} after")


def _segments(db: Database) -> int:
    return sum(each.segments for each in db.status())
