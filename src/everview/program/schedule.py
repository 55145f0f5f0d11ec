"""The order of steps: rounds of shared fetches, each followed by the arithmetic it allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from everview.plan.nodes import Plan, Ref, Totals
from everview.plan.traverse import schema_of, transform
from everview.program.steps import (
    Add,
    Check,
    Compute,
    Fetch,
    KeySet,
    Loop,
    Publish,
    Step,
    refs,
)


def schedule(steps: Iterable[Step], asked: Iterable[str] = ()) -> tuple[Step, ...]:
    """The same steps in rounds, what they share done once.

    A round is all fetches whose keys are known, then the arithmetic they allow. Results that are
    `asked` for by their names keep them.
    """
    ordered = _share_fetches(_in_rounds(tuple(steps)))
    ordered = _deduplicate(ordered, _needed_by_name(ordered) | {*asked})
    return tuple(_consolidate(ordered))


def _in_rounds(steps: Sequence[Step]) -> list[list[Step]]:
    """Steps by the number of fetches that have to come before; checks, then writes, at the end."""
    levels: dict[str, int] = {}
    rounds: dict[int, list[Step]] = {}
    for step in steps:
        match step:
            case Fetch(result, _, _, _, keys):
                level = 1 + max((levels.get(key.relation, 0) for key in keys), default=0)
                levels[result] = level
            case Compute(result, plan, _):
                level = max((levels.get(name, 0) for name in refs(plan)), default=0)
                levels[result] = level
            case Loop():
                level = max((levels.get(name, 0) for name in step.reads), default=0)
                levels |= dict.fromkeys(step.results, level)
            case Check() | Add() | Publish():
                continue
        rounds.setdefault(level, []).append(step)
    checks: list[Step] = [step for step in steps if isinstance(step, Check)]
    writes: list[Step] = [step for step in steps if isinstance(step, Add | Publish)]
    return [*(rounds[level] for level in sorted(rounds)), checks, writes]


def _share_fetches(rounds: Iterable[Sequence[Step]]) -> list[Step]:
    """In each round, fetches of one relation by one column made one, before all other steps.

    Twenty readings of `orders` by the keys of the changed lines make one fetch.
    """
    ordered: list[Step] = []
    renamed: dict[str, str] = {}
    for steps in rounds:
        ordered += _shared([step for step in steps if isinstance(step, Fetch)], renamed)
        ordered += [step for step in steps if not isinstance(step, Fetch)]
    return [_with_names(step, renamed) for step in ordered]


def _needed_by_name(steps: Sequence[Step]) -> set[str]:
    """The results that are written, or that loops are given by name."""
    looped = [each for step in steps if isinstance(step, Loop) for each in step.relations]
    return _written(steps).union(*((each.start, each.later) for each in looped))


def _written(steps: Sequence[Step]) -> set[str]:
    return {step.change for step in steps if isinstance(step, Add | Publish)}


def _deduplicate(steps: Iterable[Step], asked: set[str]) -> list[Step]:
    """Of equal steps the first: slices that have become one make results equal.

    A later one that is asked for by its name has the same rows.
    """
    known: dict[Step, Ref] = {}
    renamed: dict[str, str] = {}
    kept: list[Step] = []
    for each in steps:
        step = _with_names(each, renamed)
        if not isinstance(step, Compute | Fetch):
            kept.append(step)
            continue
        schema = step.schema if isinstance(step, Fetch) else schema_of(step.plan)
        first = known.setdefault(replace(step, result=""), Ref(step.result, schema))
        if first.name == step.result:
            kept.append(step)
        elif step.result in asked:
            # A copy of totals would be consolidated as rows, and lose those whose weights cancel.
            totals = isinstance(step, Compute) and isinstance(step.plan, Totals)
            kept.append(step if totals else Compute(step.result, first))
        else:
            renamed[step.result] = first.name
    return kept


def _consolidate(steps: Sequence[Step]) -> Iterator[Step]:
    """What is written is consolidated when it is computed."""
    written = _written(steps)
    for step in steps:
        if isinstance(step, Compute) and step.result in written:
            yield replace(step, consolidated=True)
        else:
            yield step


def _shared(fetches: list[Fetch], renamed: dict[str, str]) -> list[Fetch]:
    """Fetches of one relation by one column as one fetch of all keys and columns."""
    merged: dict[tuple[str, str | None], Fetch] = {}
    for fetch in fetches:
        mark = (fetch.relation, fetch.reads_by)
        first = merged.get(mark)
        if first is None:
            merged[mark] = fetch
            continue
        schema = tuple(dict.fromkeys(first.schema + fetch.schema))
        keys = tuple(dict.fromkeys(first.keys + fetch.keys)) if first.keys and fetch.keys else ()
        merged[mark] = replace(first, schema=schema, keys=_without_subsumed(keys))
        renamed[fetch.result] = first.result
    return list(merged.values())


def _without_subsumed(keys: tuple[KeySet, ...]) -> tuple[KeySet, ...]:
    """Without keys that ask for some of the rows that another key asks for."""
    whole = {(key.relation, key.column) for key in keys if not key.also}
    return tuple(k for k in keys if not k.also or (k.relation, k.column) not in whole)


def _with_names(step: Step, renamed: dict[str, str]) -> Step:
    if isinstance(step, Fetch):
        keys = (replace(k, relation=renamed.get(k.relation, k.relation)) for k in step.keys)
        return replace(step, keys=tuple(dict.fromkeys(keys)))
    if isinstance(step, Loop):
        body = (_with_names(each, renamed) for each in step.body)
        return replace(step, body=tuple(body))  # type: ignore[arg-type]
    if not isinstance(step, Compute | Check):
        return step

    def rename(node: Plan) -> Plan:
        if isinstance(node, Ref) and node.name in renamed:
            return Ref(renamed[node.name], node.schema)
        return node

    return replace(step, plan=transform(step.plan, rename))
