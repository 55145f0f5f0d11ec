"""`everview fuzz`: random views, kept fresh and compared with their queries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from everview.cli.exit_codes import DIFFERENCE
from everview.errors import UserError

if TYPE_CHECKING:
    from everview_fuzz.nested.search import Settings as NestedSettings
    from everview_fuzz.search import Engine, Progress, Report


@click.command()
@click.option(
    "--engine",
    type=click.Choice(("duckdb", "spark")),
    help="duckdb: that engine alone, without Java. spark: Spark, and DuckDB beside it. "
    "Without it: both in turn, where there is Java.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="N",
    help="How long to search.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="S")
@click.option("--case", type=click.IntRange(min=0), metavar="K", help="Run only case K.")
@click.option("--cases", type=click.IntRange(min=1), metavar="N", help="Run at most N cases.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many cases run at once on the embedded engine; as a rule one for each processor.",
)
@click.option(
    "--oracle/--no-oracle",
    default=None,
    help="Whether plain Spark is asked for every answer too; it is where there is Java.",
)
@click.option(
    "--policy",
    type=click.Choice(("first-order", "circuit", "higher-order")),
    help="Declare every view with this policy; without it, each with one at random or none.",
)
@click.option("--keep-going", is_flag=True, help="Go on after a failure.")
@click.option(
    "--nested",
    is_flag=True,
    help="Nested views: random comprehensions and SQL over flat and nested tables, with deep "
    "updates, against CPython.",
)
@click.pass_context
def fuzz(
    ctx: click.Context,
    engine: Engine | None,
    seconds: float,
    seed: int,
    case: int | None,
    cases: int | None,
    jobs: int | None,
    oracle: bool | None,
    policy: str | None,
    keep_going: bool,
    nested: bool,
) -> None:
    """Search for wrong answers with random views.

    A case is some tables, four to ten views, and transactions. After every transaction each view is
    compared with its query, evaluated from scratch, with --engine spark also with the same view
    on DuckDB, and with what plain Spark answers to the text of its query as it is written, over the
    same rows. Seed and case decide what is done, the time only how many cases are run.

    A failure is made as small as possible and printed as a script for `everview sql`; progress and
    counts go to standard error.

    \b
    Example:
      everview fuzz --engine duckdb --seconds 600
      everview fuzz --seed 7 --case 12 > case.sql
      everview fuzz --policy higher-order --engine duckdb
      everview fuzz --nested --engine duckdb --cases 100

    \b
    Exit codes:
      0  nothing was found
      3  a failure was found
    """
    try:
        from everview_fuzz.nested.search import Settings as NestedSettings
        from everview_fuzz.report import finding_text, summary_text
        from everview_fuzz.search import Settings, processors, search
    except ModuleNotFoundError as problem:
        if not str(problem.name).startswith("everview_fuzz"):
            raise
        raise UserError(
            "L002",
            "the package everview_fuzz is not installed",
            remedy="install Everview from its wheel, which has it: pip install everview",
        ) from problem

    chosen: Engine = engine or ("both" if _has_java() else "duckdb")
    if nested:
        numbers = (1, case) if case is not None else (cases, 0)
        _search_nested(ctx, NestedSettings(chosen, seed, seconds, *numbers, keep_going))
        return
    settings = Settings(
        engine=chosen,
        seed=seed,
        seconds=seconds,
        cases=cases if case is None else 1,
        first=case or 0,
        jobs=1 if chosen == "spark" or case is not None else jobs or processors(),
        oracle=_has_java() if oracle is None else oracle,
        keep_going=keep_going,
        policy=policy or "",
    )
    printed = 0

    def shown(report: Report, now: str) -> None:
        """Print a failure when it is found: a search may go on for hours."""
        nonlocal printed
        for finding in report.findings[printed:]:
            click.echo(finding_text(finding))
        printed = len(report.findings)
        progress(report, now)

    with _shown_progress(seconds) as progress:
        report = search(settings, shown)
    click.echo(summary_text(report), err=True)
    if report.findings:
        ctx.exit(DIFFERENCE)


def _search_nested(ctx: click.Context, settings: NestedSettings) -> None:
    """Search with functions of comprehensions, and print what is found and the counts."""
    from everview_fuzz.nested.search import search

    report = search(settings)
    for finding in report.findings:
        click.echo(finding.text)
    click.echo(report.text, err=True)
    if report.findings:
        ctx.exit(DIFFERENCE)


def _has_java() -> bool:
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


@contextmanager
def _shown_progress(seconds: float) -> Iterator[Progress]:
    """On a terminal, one line that is kept up to date; elsewhere a line a minute."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fuzz", total=seconds)

        def update(report: Report, now: str) -> None:
            bar.update(
                task, completed=min(seconds, report.seconds), description=_counts(report, now)
            )

        yield update


def _lines() -> Progress:
    """A line for every minute that has passed."""
    minutes = 0

    def update(report: Report, now: str) -> None:
        nonlocal minutes
        if report.seconds >= 60 * (minutes + 1):
            minutes = int(report.seconds // 60)
            click.echo(f"{minutes} min, {_counts(report, now)}", err=True)

    return update


def _counts(report: Report, now: str) -> str:
    by_spark = f", {report.tally.right} answers of Spark" if report.tally.claims else ""
    share = 100 * sum(report.refused.values()) / report.views if report.views else 0.0
    return (
        f"{now}: {report.cases} cases, {report.views} views, {share:.0f} % refused{by_spark}, "
        f"{len(report.findings)} failures"
    )
