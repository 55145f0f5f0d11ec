"""Sessions: rows of a group whose times are less than a gap apart, found with window functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.expr import scalar
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.time_windows import SESSION
from everview.lang.sql.lower.windows import Windows
from everview.plan.build import identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

if TYPE_CHECKING:
    from everview.lang.sql.lower.query import Lowering

COLUMN = f"{SESSION}.{SESSION}"
_START, _END, _FIRST, _NUMBER = (f"{SESSION}/{i}" for i in range(4))


def with_sessions(
    lower: Lowering, plan: Plan, keys: Sequence[exp.Expr], sets: Sequence[Sequence[exp.Expr]]
) -> Plan:
    """The rows with their sessions, where they are grouped by them."""
    session, texts = scalar.column(COLUMN), [scalar.text(key) for key in keys]
    if session not in texts:
        return plan
    if sets:
        key = keys[texts.index(session)]
        remedy = "group by SESSION_WINDOW in a subquery"
        raise refused("SESSION_WINDOW in GROUPING SETS", key, lower.text, remedy)
    return _merged(lower, plan, [text for text in texts if text != session])


def _merged(lower: Lowering, plan: Plan, keys: Sequence[str]) -> Plan:
    """The rows with the session of their group that they belong to, instead of their own alone.

    A row begins a session if every one before it ended before; the sessions are then numbered by
    how many began. One that begins where another ends belongs to it, as in Spark.
    """
    shown = identity(schema_of(plan))
    own = scalar.column(COLUMN)
    plan = _with(plan, _START, "timestamp", f"({own}).start")
    plan = _with(plan, _END, "timestamp", f"({own}).end")
    start, end, first, number = map(scalar.column, (_START, _END, _FIRST, _NUMBER))
    group = f"PARTITION BY {', '.join(keys)}" if keys else ""
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    plan, latest = _over(lower, plan, f"MAX({end}) OVER ({group} ORDER BY {start} {before})")
    plan = _with(plan, _FIRST, "int", f"CASE WHEN {latest} >= {start} THEN 0 ELSE 1 END")
    plan, count = _over(lower, plan, f"SUM({first}) OVER ({group} ORDER BY {start})")
    plan = _with(plan, _NUMBER, "bigint", count)
    whole = f"PARTITION BY {', '.join((*keys, number))}"
    plan, least = _over(lower, plan, f"MIN({start}) OVER ({whole})")
    plan, most = _over(lower, plan, f"MAX({end}) OVER ({whole})")
    session = scalar.canonical(f"NAMED_STRUCT('start', {least}, 'end', {most})")
    return map_(plan, tuple(replace(o, scalar=session) if o.name == COLUMN else o for o in shown))


def _with(plan: Plan, name: str, type_: str, text: str) -> Plan:
    return map_(plan, (*identity(schema_of(plan)), Output(name, type_, scalar.canonical(text))))


def _over(lower: Lowering, plan: Plan, call: str) -> tuple[Plan, str]:
    """The rows with a column for a window call, and the column."""
    windows = Windows(lower, plan, {})
    column = windows.replace(scalar.parse(call))
    return windows.computed(), scalar.text(column)
