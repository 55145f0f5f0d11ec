"""A program as text: what is fetched by which keys, what is computed, what is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from everview.plan.text import print_plan
from everview.program.steps import (
    Add,
    Check,
    Compute,
    Fetch,
    KeyRange,
    KeySet,
    Limit,
    Loop,
    Looped,
    Program,
    Publish,
    Step,
    fetch_mark,
)


def explain(program: Program, brought: Mapping[str, str] | None = None) -> str:
    """The program, one paragraph per step; `brought` says what fetches brought the last time."""
    return "\n".join(_line(step, brought or {}) for step in program.steps)


def _line(step: Step, brought: Mapping[str, str]) -> str:
    match step:
        case Fetch(result, relation, schema, by, keys):
            columns = ", ".join(column.name for column in schema)
            where = _keys(by, keys)
            mark = fetch_mark(relation, step.reads_by)
            note = f"  -- {brought[mark]}" if mark in brought else ""
            return f"{result} := fetch {relation} ({columns}) {where}{note}"
        case Compute(result, plan, _):
            return f"{result} :=\n{print_plan(plan, 1)}"
        case Loop(name, relations, body, _):
            inside = (line for each in body for line in _line(each, brought).splitlines())
            ends = f"until no change of {', '.join(each.name for each in relations)} is left"
            starts = "".join(f"\n  {_looped(each, brought)}" for each in relations)
            return f"loop {name}, iteration by iteration, {ends}{starts}" + "".join(
                f"\n  {line}" for line in inside
            )
        case Check(rule, table, _, plan):
            return f"check {rule} of {table}: nothing in\n{print_plan(plan, 1)}"
        case Add(state, change):
            return f"{state} += {change}"
        case Publish(view, change):
            return f"publish {view} += {change}"
        case _:
            assert_never(step)


def _looped(each: Looped, brought: Mapping[str, str]) -> str:
    """How a relation of a loop changes at one iteration."""
    old = f" and {_line(each.history, brought)}" if each.history else ""
    return f"{each.now} := what {each.start or 'nothing'} and {each.later} make of {each.name}{old}"


def _keys(by: str | None, keys: tuple[KeySet, ...]) -> str:
    if by is not None:
        return f"by {by} in {', '.join(f'{k.relation}.{k.column}' for k in keys)}"
    ranges = [_range(key.relation, key.range) for key in keys if key.range is not None]
    if keys and len(ranges) == len(keys):
        return f"where {' or '.join(ranges)}"
    return f"whole, if {' or '.join(k.relation for k in keys)} has rows" if keys else "whole"


def _range(relation: str, asked: KeyRange) -> str:
    """The stored column between its limits."""
    low, high = (_limit(relation, each) for each in (asked.low, asked.high))
    if low and high:
        return f"{asked.column} from {low} to {high}"
    return f"{asked.column} from {low}" if low else f"{asked.column} up to {high}"


def _limit(relation: str, limit: Limit | None) -> str:
    if limit is None:
        return ""
    return f"{relation}.{limit.column}" + (f" {limit.plus:+d}" if limit.plus else "")
