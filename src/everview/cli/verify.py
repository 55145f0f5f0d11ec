"""`everview verify`: every file of a store, checked against its checksum."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from everview.cli.exit_codes import DIFFERENCE
from everview.cli.options import JSON, STORE

if TYPE_CHECKING:
    from everview.database.verify import Damaged, Verification

COLUMNS = ("file", "relations", "epochs", "what is wrong")


@click.command()
@STORE
@JSON
@click.pass_context
def verify(ctx: click.Context, store: str, as_json: bool) -> None:
    """Check every file of STORE.

    All that its epochs need is read and compared with the checksums that were written with it. What
    is damaged is named, with the relations and epochs that need it and the last epoch that needs
    none of it. Needs no engine, changes nothing, and works beside a writer.

    \b
    Example:
      everview verify shop
      everview verify shop --json | jq .last_good

    \b
    Exit codes:
      0  everything is as it was written
      3  something is damaged
    """
    from everview.cli.output import human_size, print_json
    from everview.database.open import verified

    found = verified(store, progress())
    if as_json:
        print_json(as_record(found))
    else:
        size = human_size(found.bytes)
        click.echo(f"epochs {found.oldest} to {found.newest}: {found.files} files, {size}")
        print_damage(found)
    if not found.ok:
        ctx.exit(DIFFERENCE)


def progress() -> Any:
    """Shows how many files are verified, on one line that is overwritten."""

    def show(done: int, of: int) -> None:
        if sys.stderr.isatty():
            text = f"\r\x1b[K{done} of {of} files" if done < of else "\r\x1b[K"
            click.echo(text, err=True, nl=False)

    return show


def print_damage(found: Verification) -> None:
    """What is damaged, and the last epoch that can be read whole."""
    from everview.cli.output import print_rows

    if found.ok:
        click.echo("everything is as it was written")
        return
    print_rows(COLUMNS, map(_row, found.damaged))
    good = found.last_good
    click.echo(f"the last good epoch is {good}" if good is not None else "no epoch is whole")


def as_record(found: Verification) -> dict[str, Any]:
    """A verification as JSON."""
    return {**asdict(found), "ok": found.ok, "last_good": found.last_good}


def _row(each: Damaged) -> tuple[str, ...]:
    return each.path, ", ".join(each.relations), epoch_ranges(each.epochs), each.reason


def epoch_ranges(epochs: Sequence[int]) -> str:
    """Ascending numbers, with consecutive ones as a range.

    >>> epoch_ranges((1, 2, 3, 7, 9, 10))
    '1-3, 7, 9-10'
    """
    ranges: list[list[int]] = []
    for epoch in epochs:
        if ranges and ranges[-1][1] == epoch - 1:
            ranges[-1][1] = epoch
        else:
            ranges.append([epoch, epoch])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
