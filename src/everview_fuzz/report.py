"""What a search found, as text: a script for each failure, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from everview_fuzz.case import View
from everview_fuzz.check.reference import in_duckdb
from everview_fuzz.check.run import FAILURE_TEXTS, Failure
from everview_fuzz.script import script
from everview_fuzz.search import Finding, Report


def finding_text(finding: Finding) -> str:
    """The failure as a script: comments that say what it shows, then the statements."""
    case, failure = finding.case, finding.failure
    engine = failure.engine or finding.engines[0]
    searched = "spark" if len(finding.engines) > 1 else finding.engines[0]
    numbers = f"--seed {case.seed} --case {case.number}"
    if finding.policy:
        numbers += f" --policy {finding.policy}"
    commands = _commands(failure, engine, finding.engines, case.views)
    lines = [
        f"seed {case.seed}, case {case.number}: {FAILURE_TEXTS[failure.kind]}",
        *(line for line in failure.detail.strip().splitlines()[-12:]),
        *((finding.third,) if finding.third else ()),
        "",
        f"find it again:  everview fuzz --engine {searched} {numbers}",
        "see it:         save this text as case.sql, then",
        *(f"                {command}" for command in commands),
        "",
        _verdict(finding),
    ]
    comments = "\n".join(f"-- {line}".rstrip() for line in lines)
    return f"{comments}\n{script(case)}"


def _commands(
    failure: Failure, engine: str, engines: tuple[str, ...], views: Sequence[View]
) -> list[str]:
    if failure.kind == "engines":
        shown = [f"everview sql {each}-store case.sql --engine {each}" for each in engines]
        return [*shown, "and read the view in both stores"]
    if failure.kind == "spark":
        return [
            f"everview sql fuzz-store case.sql --engine {engine}",
            "then run these queries in spark-sql over the same tables, and read the views:",
            *(view.query for view in views),
        ]
    if failure.kind == "meaning":
        return [
            f"everview sql fuzz-store case.sql --engine {engine}",
            "then run these queries in DuckDB over the same tables, and read the views:",
            *(in_duckdb(view.query) for view in views),
        ]
    return [
        f"everview sql fuzz-store case.sql --engine {engine}",
        f"everview audit fuzz-store --engine {engine}",
    ]


def _verdict(finding: Finding) -> str:
    if finding.confirmed:
        return "The script was run and shows the failure."
    return "The script alone does not show the failure; the case does."


def summary_text(report: Report) -> str:
    """The counts of a search."""
    rate = 60 * report.views / report.seconds if report.seconds else 0.0
    refused = sum(report.refused.values())
    share = 100 * refused / report.views if report.views else 0.0
    lines = [
        f"{report.cases} cases, {report.views} views, {report.transactions} transactions "
        f"in {report.seconds:.0f} s: {rate:.0f} views a minute",
        f"views refused: {refused} ({share:.1f} %), and {report.dependent} that read one of them",
        *_grouped(report.refused),
        f"answers compared with DuckDB's own: {report.asked - sum(report.unanswered.values())}, "
        f"and {sum(report.unanswered.values())} where it has none",
        *_grouped(report.unanswered),
        *_by_spark(report),
        f"cases ended by an error in their values: {sum(report.stopped.values())}",
        *_grouped(report.stopped),
        f"failures: {len(report.findings)}",
    ]
    return "\n".join(lines)


def _by_spark(report: Report) -> list[str]:
    tally = report.tally
    return [
        f"answers compared with plain Spark's: {tally.right}, and {tally.open} "
        "that depend on the order in which rows arrive",
        f"answers in which Spark is known to be wrong: {tally.faults.total()}",
        *_grouped(tally.faults),
        f"answers that Spark does not give: {tally.unread.total()}",
        *_grouped(tally.unread),
    ]


def _grouped(reasons: Counter[str]) -> list[str]:
    ordered = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    return [f"  {number:>5}  {text}" for text, number in ordered]
