"""What the demo shows: what was built, a row for each transaction, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from everview.database.audit_report import Audit
from everview.database.introspect.status import RelationStatus

WIDTH = 110
"""Narrower terminals see the changed rows of all views together."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction: the rows it changed, in the tables and in each view, and its time."""

    number: int
    rows: int
    published: dict[str, int]
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """Everything measured."""

    steps: Sequence[Step]
    recomputed: tuple[float, float]
    audit: Audit
    lines: int
    store: str | None

    @property
    def ratio(self) -> float:
        """How many times faster the median transaction is than the faster recomputation."""
        return min(self.recomputed) / median(step.seconds for step in self.steps)


def steps_table(
    console: Console, views: Sequence[str], steps: Sequence[Step], recomputed: float
) -> Table:
    """A row for each transaction so far."""
    wide = console.width >= WIDTH
    table = Table(
        title="Rows changed in the tables and in each view; time; time to compute all again",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    heads = [view.replace("_", "\n") for view in views] if wide else ["all views"]
    for head in ("no.", "rows", *heads, "time", "again", "faster"):
        table.add_column(head, justify="right", no_wrap=True)
    for step in steps:
        counts = [step.published.get(view, 0) for view in views]
        shown = counts if wide else [sum(counts)]
        table.add_row(
            str(step.number),
            f"{step.rows:,}",
            *(f"{count:,}" if count else "·" for count in shown),
            f"[bold]{step.seconds:.2f} s[/]",
            f"{recomputed:.2f} s",
            f"{recomputed / step.seconds:.1f} ×",
        )
    return table


def relations_table(relations: Sequence[RelationStatus]) -> Table:
    """The tables and views, with what each reads and holds."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("kind", "name", "reads"):
        table.add_column(head)
    table.add_column("rows", justify="right")
    for each in relations:
        if each.kind != "state":
            table.add_row(each.kind, each.name, ", ".join(each.reads), f"{each.rows:,}")
    return table


def show_report(console: Console, report: Report) -> None:
    """The summary, for someone who sees this for the first time."""
    times = [step.seconds for step in report.steps]
    start, end = report.recomputed
    changed = round(median(step.rows for step in report.steps))
    wrong = [each for each in report.audit if not each.ok]
    console.rule("Summary")
    console.print(
        f"{len(times)} transactions, each of about {changed:,} changed rows, on tables with "
        f"{report.lines:,} order lines.\nAfter each of them all {len(report.audit.views)} views "
        "were fresh before the transaction returned.\n"
    )
    facts = Table.grid(padding=(0, 2))
    facts.add_row("one transaction, median", f"{median(times):.2f} s")
    facts.add_row("one transaction, slowest", f"{max(times):.2f} s")
    facts.add_row(
        "computing all views again", f"{start:.2f} s at the start, {end:.2f} s at the end"
    )
    facts.add_row("the median is faster by", f"[bold]{report.ratio:.1f} times[/]")
    console.print(facts)
    console.print(
        "\nWhat was compared: the time of a transaction is all of it, from its beginning to its "
        "commit: finding the old rows, checking primary keys, changing tables and views, writing "
        "and compacting files. Computing again is plain Spark SQL in the same session over "
        "ordinary Parquet copies of the tables, the better of two runs, its results not even "
        "written; the faster of start and end counts.\n"
    )
    if wrong:
        for each in wrong:
            console.print(
                f"[bold red]{each.view} is wrong:[/] {len(each.missing)} rows missing, "
                f"{len(each.surplus)} surplus"
            )
    else:
        console.print(
            f"[bold green]Audit: all {len(report.audit.views)} views equal their queries[/], "
            "evaluated from the tables by Spark, row for row."
        )
    _show_next(console, report)


def _show_next(console: Console, report: Report) -> None:
    store = report.store or "DIR"
    again = "" if report.store else " keep the store with --store DIR, then"
    console.print(
        f"\nWhere to look next:{again}\n"
        f"  everview explain {store} big_spenders              how a view is kept fresh\n"
        f"  everview explain {store} big_spenders --stage sql  the statements that are run\n"
        f"  everview changes {store} big_spenders              the rows that came and went",
        soft_wrap=True,
    )
