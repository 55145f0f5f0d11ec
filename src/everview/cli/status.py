"""`everview status`: what a store holds."""

from __future__ import annotations

from dataclasses import asdict

import click

from everview.cli.options import ENGINE, JSON, STORE

COLUMNS = ("name", "kind", "rows", "bytes", "segments", "reads", "refresh")


@click.command()
@STORE
@ENGINE
@JSON
def status(store: str, engine: str, as_json: bool) -> None:
    """Show the epoch, tables, views and states of STORE.

    A state is what is stored so that views need not be recomputed; segments are the immutable
    pieces of a relation. A view is refreshed incrementally, or by recomputing a part of it where
    it was declared WITH (refresh = 'auto'). Works beside a writer, and as a rule without starting
    Spark.

    \b
    Example:
      everview status shop
      everview status shop --json | jq '.relations[] | select(.kind == "view") | .rows'
    """
    from everview.cli.opening import reading
    from everview.cli.output import human_size, print_json, print_rows

    with reading(store, engine) as db:
        epoch, found = db.epoch, db.status()
    if as_json:
        print_json({"epoch": epoch, "relations": [asdict(each) for each in found]})
        return
    click.echo(f"epoch {epoch}")
    rows = [
        (r.name, r.kind, r.rows, human_size(r.bytes), r.segments, ", ".join(r.reads), r.refresh)
        for r in found
    ]
    print_rows(COLUMNS, rows, right=("rows", "bytes", "segments"))
