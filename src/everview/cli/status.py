"""`everview status`: what a store holds, and what its transactions cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from everview.cli.options import ENGINE, EPOCH, JSON, MEMORY, STORE

if TYPE_CHECKING:
    from everview.database.introspect.history import Entry
    from everview.database.introspect.status import MemoryStatus, RelationStatus

COLUMNS = ("name", "kind", "rows", "bytes", "segments", "reads", "refresh", "policy", "states")
COSTS = ("epoch", "view", "how", "in", "out", "read", "jobs", "ms", "of which", "state")


@click.command()
@STORE
@click.option("--history", is_flag=True, help="Show what the newest epochs cost instead.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="With --history: how many epochs.",
)
@ENGINE
@MEMORY
@EPOCH
@JSON
def status(
    store: str,
    history: bool,
    limit: int,
    engine: str,
    memory: str | None,
    epoch: int | None,
    as_json: bool,
) -> None:
    """Show the epoch, tables, views and states of STORE.

    A state is what is stored so that views need not be recomputed; segments are the immutable
    pieces of a relation. A view is refreshed incrementally, or by recomputing a part of it where
    it was declared WITH (refresh = 'auto'). Its policy says what is stored for it; if its last
    transactions read much more than another would, that one is named. The memory budget is that of
    a writer with the same --memory. Works beside a writer, and as a rule without starting Spark.

    With --history: for each epoch as a whole, and for each view it changed, the rows that came in,
    went out and were read, Spark jobs, milliseconds by phase, and the bytes of its states. The
    same as SQL: SELECT * FROM everview.history.

    \b
    Example:
      everview status shop
      everview status shop --history --limit 5
      everview status shop --json | jq '.relations[] | select(.kind == "view") | .rows'
    """
    from everview.cli.open_store import open_for_reading
    from everview.cli.output import print_json

    with open_for_reading(store, engine, epoch=epoch, memory=memory) as db:
        shown, budget = db.epoch, db.memory
        if history:
            relations, entries = [], db.history(limit)
        else:
            relations, entries = db.status(), []
    if as_json:
        listed = {"history": entries} if history else {"relations": relations}
        print_json(
            {
                "epoch": shown,
                "memory": asdict(budget),
                **{k: [asdict(each) for each in v] for k, v in listed.items()},
            }
        )
        return
    click.echo(f"epoch {shown}")
    click.echo(_memory(budget))
    if history:
        _print_costs(entries)
    else:
        _print_relations(relations)


def _memory(memory: MemoryStatus) -> str:
    """The budget of a writer with these options, and what this process holds of it."""
    from everview.cli.output import human_size

    share = "" if memory.given else ", a share of this machine"
    return f"memory {human_size(memory.budget)}{share}; {human_size(memory.held)} held now"


def _print_relations(relations: list[RelationStatus]) -> None:
    from everview.cli.output import human_size, print_rows

    sizes = {each.name: each.bytes for each in relations if each.kind == "state"}
    rows = [
        (
            r.name,
            r.kind,
            "" if r.rows is None else r.rows,
            human_size(r.bytes),
            r.segments,
            ", ".join(r.reads),
            r.refresh,
            r.policy.partition(" ")[0],
            f"{len(r.states)}, {human_size(sum(sizes[s] for s in r.states))}" if r.states else "",
        )
        for r in relations
    ]
    print_rows(COLUMNS, rows, right=("rows", "bytes", "segments"))
    for each in relations:
        if each.advice:
            click.echo(f"advice for {each.name}: {each.advice}")


def _print_costs(entries: list[Entry]) -> None:
    from everview.cli.output import human_size, print_rows

    rows = [
        (
            each.epoch,
            each.view or f"({each.kind})",
            _how(each),
            *(_shown(n) for n in (each.rows_in, each.rows_out, each.rows_read, each.jobs)),
            _shown(each.total_ms) if each.view is None else "",
            _phases(each) if each.view is None else each.fetches,
            human_size(each.state_bytes),
        )
        for each in entries
    ]
    print_rows(COSTS, rows, right=("epoch", "in", "out", "read", "jobs", "ms", "state"))


def _how(entry: Entry) -> str:
    """The gear, and where the two ways were weighed: the one taken, and what each was to cost."""
    gear = entry.gear or ""
    if entry.expected_incremental_ms is None or entry.expected_recompute_ms is None:
        return gear
    expected = {
        "incremental": entry.expected_incremental_ms,
        "recompute": entry.expected_recompute_ms,
    }
    taken = expected.pop(str(entry.way))
    [(other, price)] = expected.items()
    return (
        f"{gear}, {entry.way}: {entry.views_ms:.0f} ms for views, "
        f"expected {taken:.0f}; {other} {price:.0f}"
    )


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"


def _phases(entry: Entry) -> str:
    spent = asdict(entry)
    names = ("compile", "load", "fetch", "compute", "write", "commit")
    return ", ".join(f"{n} {spent[f'{n}_ms']:.0f}" for n in names if spent[f"{n}_ms"] is not None)
