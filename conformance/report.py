"""What a run found, as a table for the screen and as a page for the documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.maintained import LEFT_OUT, REFUSED, RIGHT, WRONG, Outcome

_HEADER = (
    "Suite", "Engine", "Cases", "Left out", "Refused", "Wrong", "Right", "Checks not asked",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcomes of one suite on one engine; `of` is the number of cases the suite has."""

    suite: str
    engine: str
    of: int
    outcomes: tuple[Outcome, ...]

    def count(self, kind: str) -> int:
        """How many cases came out like this."""
        return len(self.those(kind))

    def those(self, kind: str) -> list[Outcome]:
        """The cases that came out like this, in the order of the suite."""
        return [outcome for outcome in self.outcomes if outcome.kind == kind]


def wrong(tallies: Iterable[Tally]) -> list[tuple[Tally, Outcome]]:
    """Every wrong answer, with where it was given."""
    return [(tally, outcome) for tally in tallies for outcome in tally.those(WRONG)]


def table(tallies: Iterable[Tally]) -> list[str]:
    """The counts, a line for each suite and engine, as a Markdown table with even columns."""
    rows = [_HEADER, *(_counts(tally) for tally in tallies)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
    lines = [_line(row, widths) for row in rows]
    rule = "|".join("-" * (width + 1) + (":" if i > 1 else "-") for i, width in enumerate(widths))
    return [lines[0], f"|{rule}|", *lines[1:]]


def _counts(tally: Tally) -> tuple[str, ...]:
    shown = len(tally.outcomes)
    cases = str(shown) if shown == tally.of else f"{shown} of {tally.of}"
    kinds = (LEFT_OUT, REFUSED, WRONG, RIGHT)
    unasked = sum(outcome.unasked for outcome in tally.outcomes)
    return (tally.suite, tally.engine, cases, *(str(tally.count(k)) for k in kinds), str(unasked))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        text.rjust(width) if i > 1 else text.ljust(width)
        for i, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"| {' | '.join(cells)} |"


def grouped(outcomes: Iterable[Outcome]) -> list[tuple[str, int, str]]:
    """Reason, number of cases, first case: the most frequent first, then by name."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.reason, []).append(outcome.case)
    ranked = sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return [(reason, len(cases), cases[0]) for reason, cases in ranked]


def page(tallies: Sequence[Tally]) -> str:
    """The document: counts, and what is refused or left out; equal runs make equal pages."""
    return "\n".join(_page(tallies)) + "\n"


def _page(tallies: Sequence[Tally]) -> Iterator[str]:
    yield from _INTRODUCTION.splitlines()
    yield from table(tallies)
    yield from ("", "## Refused", "")
    for engine, outcomes in _by_engine(tallies, REFUSED).items():
        yield from _section(f"On {engine}", "Construct", outcomes)
    yield from ("## Left out", "")
    yield "What plain Spark does not answer as recorded says nothing about Everview."
    yield ""
    whole = [tally for tally in tallies if len(tally.outcomes) == tally.of]
    seen: dict[str, list[Outcome]] = {}
    for tally in whole:
        seen.setdefault(tally.suite, tally.those(LEFT_OUT))
    for suite, outcomes in seen.items():
        if outcomes:
            yield from _section(suite, "Reason", outcomes)


def _by_engine(tallies: Iterable[Tally], kind: str) -> Mapping[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for tally in tallies:
        found.setdefault(tally.engine, []).extend(tally.those(kind))
    return found


def _section(title: str, what: str, outcomes: Iterable[Outcome]) -> Iterator[str]:
    yield from (f"### {title}", "", f"| {what} | Cases | For instance |", "|---|---:|---|")
    for reason, number, example in grouped(outcomes):
        yield f"| {_cell(reason)} | {number} | `{example}` |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


_INTRODUCTION = """# Conformance

Cases that others wrote, run as changes to maintained views. Written by `make conformance`.

- **Left out**: plain Spark, without Everview, does not give the recorded answer, so the case is no
  measure of Everview.
- **Refused**: Everview says that it cannot maintain the view, and names the construct.
- **Wrong**: after some batch a view differs from plain Spark's answer, or something crashed. There
  must be none.
- **Right**: after every batch every view equals plain Spark's answer, and every recorded answer is
  given.

A case that records no answer is measured by plain Spark's alone. Rows of `spark_fixtures` only ever
arrive; further rows are made up, which come and go. On DuckDB every case is run, on Spark a fixed
sample. A check that is a query the engine refuses is not asked: it is no view. Checks that subtract
a view from its own query are left away, because that is what is compared after every batch.

The programs of `souffle` are Datalog, which Spark does not read: their measure is the recorded
answer, given with all facts at once, after they came in batches, and after batches went and came
back; after every batch each relation must equal its rules evaluated from scratch.

The cases of `spark_golden` are the queries of Spark's own golden files that can be views. Their
tables are loaded in batches, with rows that come and go again; after every batch plain Spark's
answer over the same rows is the measure, in the type it has. A query that has another answer when
the same rows come in another order (ties, frames of rows without a total order) is measured by its
own query evaluated from scratch. A query that a setting of its file gives another meaning is left
out.

"""
