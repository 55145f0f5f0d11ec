"""The order of steps: rounds of shared fetches, each followed by the arithmetic it allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from everview.plan.nodes import Plan, Ref
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
    """The same steps in rounds; fetches of one relation by one column in one round made one.

    Slices that are one make results equal that were not: of equal steps one is left. Results that
    are `asked` for by their names keep them.
    """
    levels: dict[str, int] = {}
    rounds: dict[int, list[Step]] = {}
    endings: list[Step] = []
    for step in steps:
        match step:
            case Fetch(result, _, _, _, keys):
                level = 1 + max((levels.get(key.relation, 0) for key in keys), default=0)
            case Compute(result, plan, _):
                level = max((levels.get(name, 0) for name in refs(plan)), default=0)
            case Loop(result):
                level = max((levels.get(name, 0) for name in step.reads), default=0)
                levels |= dict.fromkeys(step.results, level)
            case Check() | Add() | Publish():
                endings.append(step)
                continue
        levels[result] = level
        rounds.setdefault(level, []).append(step)
    ordered: list[Step] = []
    renamed: dict[str, str] = {}
    for level in sorted(rounds):
        ordered += _shared([s for s in rounds[level] if isinstance(s, Fetch)], renamed)
        ordered += [s for s in rounds[level] if not isinstance(s, Fetch)]
    checks = [step for step in endings if isinstance(step, Check)]
    writes = [step for step in endings if not isinstance(step, Check)]
    written = {step.change for step in writes if isinstance(step, Add | Publish)}
    named = [_with_names(step, renamed) for step in (*ordered, *checks, *writes)]
    looped = [each for step in named if isinstance(step, Loop) for each in step.relations]
    kept = written.union(asked, *((each.start, each.later) for each in looped))
    return tuple(
        replace(step, consolidated=True)
        if isinstance(step, Compute) and step.result in written
        else step
        for step in _once(named, kept)
    )


def _once(steps: Iterable[Step], asked: set[str]) -> list[Step]:
    """Of equal steps the first; a later one that is asked for by its name has the same rows."""
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
            kept.append(Compute(step.result, first))
        else:
            renamed[step.result] = first.name
    return kept


def _shared(fetches: list[Fetch], renamed: dict[str, str]) -> list[Fetch]:
    """Twenty readings of `orders` by the keys of the changed lines make one fetch."""
    merged: dict[tuple[str, str | None], Fetch] = {}
    for fetch in fetches:
        mark = (fetch.relation, fetch.by)
        first = merged.get(mark)
        if first is None:
            merged[mark] = fetch
            continue
        schema = tuple(dict.fromkeys(first.schema + fetch.schema))
        keys = tuple(dict.fromkeys(first.keys + fetch.keys)) if first.keys and fetch.keys else ()
        merged[mark] = replace(first, schema=schema, keys=_wanted(keys))
        renamed[fetch.result] = first.result
    return list(merged.values())


def _wanted(keys: tuple[KeySet, ...]) -> tuple[KeySet, ...]:
    """Without keys of which others want all rows."""
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
