"""Which fetches and steps of a program each view depends on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.program.steps import (
    Add,
    Compute,
    Fetch,
    Loop,
    Program,
    Publish,
    change_name,
    fetch_mark,
    refs,
)


@dataclass(frozen=True, slots=True)
class Share:
    """The inputs whose change reaches a relation, the marks of fetches and results on the way."""

    inputs: frozenset[str] = frozenset()
    fetches: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()


def shares(program: Program) -> dict[str, Share]:
    """The share of each view that the program publishes, and of each state that it adds to."""
    found = _shares_of_results(program)
    written = {}
    for step in program.steps:
        match step:
            case Publish(name, change) | Add(name, change):
                written[name] = found[change]
    return written


def results_under(program: Program, result: str) -> frozenset[str]:
    """The results on the way to one of them; nothing where the program does not compute it."""
    return _shares_of_results(program).get(result, Share()).results


def _shares_of_results(program: Program) -> dict[str, Share]:
    found = {change_name(name): Share(frozenset((name,))) for name in program.inputs}
    for step in program.steps:
        match step:
            case Fetch(result, relation, _, _, keys):
                mark = Share(fetches=frozenset((fetch_mark(relation, step.reads_by),)))
                found[result] = union_of_shares((mark, *(found[key.relation] for key in keys)))
            case Compute(result, plan, _):
                own = Share(results=frozenset((result,)))
                found[result] = union_of_shares((own, *(found[name] for name in refs(plan))))
            case Loop(name):
                marks = frozenset(fetch_mark(each.relation, each.reads_by) for each in step.fetches)
                own = Share(fetches=marks, results=frozenset((name,)))
                whole = union_of_shares((own, *(found[each] for each in step.reads)))
                found |= dict.fromkeys(step.results, whole)
    return found


def union_of_shares(parts: Iterable[Share]) -> Share:
    """All that any of them needs."""
    each = tuple(parts)
    return Share(
        frozenset().union(*(part.inputs for part in each)),
        frozenset().union(*(part.fetches for part in each)),
        frozenset().union(*(part.results for part in each)),
    )
