"""`everview audit`: the law, checked on the stored data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from everview.cli.exit_codes import DIFFERENCE, USER_ERROR
from everview.cli.options import ENGINE, EPOCH, JSON, STORE

if TYPE_CHECKING:
    from everview.database.audit_report import Audit
    from everview.database.verdict import ViewAudit

MAX_ROWS_SHOWN = 10
"""How many missing and how many surplus rows of a view are shown."""

COLUMNS = ("view", "rows", "verdict", "missing", "surplus", "read by")

Names = Mapping[str, Sequence[str]]


@click.command()
@STORE
@click.argument("view", required=False)
@ENGINE
@EPOCH
@JSON
@click.pass_context
def audit(
    ctx: click.Context, store: str, view: str | None, engine: str, epoch: int | None, as_json: bool
) -> None:
    """Compare views with their queries.

    The engine evaluates the query of VIEW from scratch, over the tables alone; without VIEW, the
    query of every view over what it reads, which comes to the same. Rows are compared as bags:
    missing rows are in the query and not in the view, surplus rows are in the view and not in the
    query. Works beside a writer.

    With --engine spark, Spark reads the queries itself, so that nothing is shared with what
    maintains the views; where it cannot, Everview's own reading is used, and why is shown.

    \b
    Example:
      everview audit shop
      everview audit shop revenue --json | jq .ok

    \b
    Exit codes:
      0  every view equals its query
      1  a view could not be checked with this engine, and no other differs
      3  a difference was found
    """
    from everview.cli.open_store import open_for_reading
    from everview.expr.types import names

    with open_for_reading(store, engine, epoch=epoch) as db:
        found = db.audit(view)
        columns = {each.view: names(db.catalog.schema(each.view)) for each in found}
    if as_json:
        _print_json(found, columns)
    else:
        _print_tables(found, columns)
    if not found.ok:
        ctx.exit(USER_ERROR if all(each.ok or each.unchecked for each in found) else DIFFERENCE)


def _print_tables(found: Audit, columns: Names) -> None:
    from everview.cli.output import print_rows

    click.echo(f"epoch {found.epoch}")
    verdicts = [
        (v.view, v.rows, _verdict(v), len(v.missing), len(v.surplus), _reader(v)) for v in found
    ]
    print_rows(COLUMNS, verdicts, right=("rows", "missing", "surplus"))
    for each in found:
        if each.unchecked:
            click.echo(f"\n{each.view}: {each.unchecked}")
        elif not each.ok:
            click.echo(f"\n{each.view}: the first rows that differ")
            print_rows(("", *columns[each.view]), _differing(each))


def _verdict(view: ViewAudit) -> str:
    if view.unchecked:
        return "NOT CHECKED"
    return "equal" if view.ok else "DIFFERENT"


def _reader(view: ViewAudit) -> str:
    if view.unchecked:
        return ""
    return f"everview: {view.ours}" if view.ours else "Spark"


def _differing(view: ViewAudit) -> Iterator[tuple[Any, ...]]:
    for word, rows in (("missing", view.missing), ("surplus", view.surplus)):
        yield from ((word, *row) for row in islice(rows, MAX_ROWS_SHOWN))


def _print_json(found: Audit, columns: Names) -> None:
    from everview.cli.output import print_json, records

    def view(each: ViewAudit) -> dict[str, Any]:
        names = columns[each.view]
        return {
            "view": each.view,
            "rows": each.rows,
            "ok": each.ok,
            "missing": len(each.missing),
            "surplus": len(each.surplus),
            **({"unchecked": each.unchecked} if each.unchecked else {}),
            "read_by": None if each.unchecked else "everview" if each.ours else "spark",
            "why": each.ours or None,
            "first_missing": records(names, each.missing[:MAX_ROWS_SHOWN]),
            "first_surplus": records(names, each.surplus[:MAX_ROWS_SHOWN]),
        }

    print_json({"epoch": found.epoch, "ok": found.ok, "views": [view(each) for each in found]})
