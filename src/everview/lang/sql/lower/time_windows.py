"""WINDOW and SESSION_WINDOW: the time windows that a row lies in, as a column of their name.

Spark computes the column before the rest of the SELECT. Rows without a time are dropped, and with
sliding windows a row stands once for each window. A session of one row is its time and the gap
after it; where rows are grouped by sessions, those that overlap are merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.scalar import whole_number
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Item, Scope
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.generators import exploded
from everview.lang.sql.lower.windows import Windows
from everview.lang.sql.parse.span import span_of
from everview.plan.build import filter_, identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

_WINDOW, _SESSION = "window", "session_window"
"""The names of the functions, which are also those of their columns."""
_SESSION_COLUMN = f"{_SESSION}.{_SESSION}"
_START, _END, _FIRST, _NUMBER = (f"{_SESSION}/{i}" for i in range(4))
_PLACES = ("expressions", "where", "group", "having", "order", "qualify", "windows")
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*([+-]?\d+)\s+([a-z]+?)s?\b", re.IGNORECASE)
SLIDING_WINDOWS_MAX = 1000
"""A row may lie in this many sliding windows."""


def with_time_window(
    context: LoweringContext, plan: Plan, tree: exp.Select, scope: Scope
) -> tuple[Plan, exp.Select]:
    """The rows with the column window, and the query with the column for each call."""
    calls = list(_calls(tree))
    if not calls:
        return plan, tree
    _refuse_forms(tree, calls, context.text)
    call, name = calls[0], calls[0].name.lower()
    rewritten = tree.copy()
    for each in list(_calls(rewritten)):
        each.replace(exp.Column(this=exp.Identifier(this=name, quoted=True)))
    if name == _SESSION:
        return _with_session(context, plan, call, scope), rewritten
    durations = _durations(call, context.text)
    moment = _moment(context, plan, call.expressions[0], scope)
    plan = filter_(plan, scalar.text(exp.Is(this=moment.copy(), expression=exp.Null()).not_()))
    return _with_column(context, plan, moment, durations, scope, call), rewritten


def _calls(tree: exp.Select) -> Iterator[exp.Expr]:
    """The calls of WINDOW in a query itself, not in its subqueries; of nested ones the outer."""
    for place in _PLACES:
        clause = tree.args.get(place)
        for part in clause if isinstance(clause, list) else [clause] if clause else []:
            for node in part.walk(prune=lambda each: _is_call(each) or isinstance(each, exp.Query)):
                if _is_call(node):
                    yield node


def _is_call(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() in (_WINDOW, _SESSION)
    return named and not isinstance(node.parent, exp.Window)


def _refuse_forms(tree: exp.Select, calls: list[exp.Expr], text: str) -> None:
    for call in calls:
        if call != calls[0]:
            remedy = "use one window for each SELECT"
            raise refused("a second time window", call, text, remedy)
        if call.find_ancestor(exp.Qualify):
            name = f"{call.name.upper()}() in QUALIFY"
            raise refused(name, call, text, "select the window in a subquery")
    for node in tree.expressions:
        starred = node if isinstance(node, exp.Star) else node.this
        if isinstance(starred, exp.Star) and isinstance(node, exp.Star | exp.Column):
            raise refused("* beside a time window", node, text, "list the columns")


def _with_column(
    context: LoweringContext,
    plan: Plan,
    moment: exp.Expr,
    durations: tuple[int, int, int],
    scope: Scope,
    call: exp.Expr,
) -> Plan:
    """The rows with the one window of their time, or once for each sliding window."""
    length, slide, start = durations
    count = -(-length // slide)
    micros = scalar.text(moment)
    latest = f"{micros} - PMOD({micros} - {start}, {slide})"
    structs = [_struct(f"{latest} - {slide * i}", length) for i in range(count)]
    if count > SLIDING_WINDOWS_MAX:
        raise refused(f"{count} windows for one time", call, context.text, "let them slide further")
    if count == 1:
        return _with_struct(context, plan, _WINDOW, structs[0], scope, call)
    array = scalar.parse(f"ARRAY({', '.join(structs)})")
    plan = exploded(context, plan, array, _WINDOW, scope, call)
    if length % slide == 0:
        return plan
    end = _end(scalar.parse(scalar.column(f"{_WINDOW}.{_WINDOW}")))
    return filter_(plan, scalar.canonical(f"{micros} < UNIX_MICROS({end})"))


def _with_struct(
    context: LoweringContext, plan: Plan, name: str, struct: str, scope: Scope, call: exp.Expr
) -> Plan:
    """The rows with a window as a column; `scope` learns its name."""
    column, text = f"{name}.{name}", scalar.canonical(struct)
    output = Output(column, context.type_of(text, schema_of(plan), call), text)
    scope.add(Item(name, ((name, column),)), call)
    return map_(plan, (*identity(schema_of(plan)), output))


def _with_session(context: LoweringContext, plan: Plan, call: exp.Expr, scope: Scope) -> Plan:
    """The rows with the session of each row alone; with a gap of 0 there are no sessions."""
    gap = _microseconds(call.expressions[1]) if len(call.expressions) == 2 else None
    if gap is None:
        raise refused("this form of SESSION_WINDOW", call, context.text, "write a fixed gap")
    moment = _moment(context, plan, call.expressions[0], scope)
    micros = scalar.text(moment)
    kept = f"{micros} IS NOT NULL" if gap > 0 else "FALSE"
    plan = filter_(plan, scalar.canonical(kept))
    return _with_struct(context, plan, _SESSION, _struct(micros, gap), scope, call)


def _struct(first: str, length: int) -> str:
    ends = (f"TIMESTAMP_MICROS({first})", f"TIMESTAMP_MICROS({first} + {length})")
    return f"NAMED_STRUCT('start', {ends[0]}, 'end', {ends[1]})"


def _end(window: exp.Expr) -> str:
    """The end of a window."""
    return scalar.text(exp.Dot(this=window.copy(), expression=exp.Identifier(this="end")))


def _moment(context: LoweringContext, plan: Plan, node: exp.Expr, scope: Scope) -> exp.Expr:
    """A time in microseconds; for a window, the last microsecond inside it."""
    if _is_call(node):
        length, slide, start = _durations(node, context.text)
        if length != slide:
            raise refused("a window of windows that slide", node, context.text, "use a subquery")
        inner = scalar.text(_moment(context, plan, node.expressions[0], scope))
        return scalar.parse(f"{inner} - PMOD({inner} - {start}, {slide}) + {length - 1}")
    tree = resolve(node, scope)
    text = scalar.text(tree)
    match context.type_of(text, schema_of(plan), node):
        case "timestamp":
            return scalar.parse(f"UNIX_MICROS({text})")
        case "struct<start:timestamp,end:timestamp>":
            return scalar.parse(f"UNIX_MICROS({_end(tree)}) - 1")
        case other:
            remedy = "give it a TIMESTAMP, or a column made by WINDOW"
            raise refused(f"WINDOW of {other.upper()}", node, context.text, remedy)


def _durations(call: exp.Expr, text: str) -> tuple[int, int, int]:
    """The length of a window, the distance to the next one and where the first begins."""
    given = call.expressions[1:]
    durations = [each for each in map(_microseconds, given) if each is not None]
    if len(durations) == len(given) and 1 <= len(durations) <= 3:
        length, slide, start = (*durations, *(durations[0], 0)[len(durations) - 1 :])
        if 0 < slide <= length and abs(start) < slide:
            return length, slide, start
    raise UserError(
        "Q009",
        "WINDOW needs a length, and may have a distance and a start, as fixed durations",
        span=span_of(call, text) or Span(text, 0, len(text)),
        remedy="write window(ts, '10 minutes', '5 minutes', '1 minute'); "
        "the distance is at most the length, the start less than the distance",
    )


def _microseconds(node: exp.Expr) -> int | None:
    """A duration as a text or a number of microseconds, None if it is none or has months.

    >>> _microseconds(exp.Literal.string("1 minute 500 milliseconds"))
    60500000
    """
    if not isinstance(node, exp.Literal) or not node.is_string:
        return whole_number(node)
    rest = re.sub(r"^\s*interval\b", "", node.name, flags=re.IGNORECASE).rstrip()
    total, place = 0, 0
    while part := _PART.match(rest, place):
        unit = _MICROSECONDS.get(part[2].lower())
        if unit is None:
            return None
        total, place = total + int(part[1]) * unit, part.end()
    return total if place == len(rest) and place else None


def with_sessions(
    context: LoweringContext,
    plan: Plan,
    keys: Sequence[exp.Expr],
    sets: Sequence[Sequence[exp.Expr]],
) -> Plan:
    """The rows with their sessions, where they are grouped by them."""
    session, texts = scalar.column(_SESSION_COLUMN), [scalar.text(key) for key in keys]
    if session not in texts:
        return plan
    if sets:
        key = keys[texts.index(session)]
        remedy = "group by SESSION_WINDOW in a subquery"
        raise refused("SESSION_WINDOW in GROUPING SETS", key, context.text, remedy)
    return _merged_sessions(context, plan, [text for text in texts if text != session])


def _merged_sessions(context: LoweringContext, plan: Plan, keys: Sequence[str]) -> Plan:
    """The rows with the merged session of their group, instead of the session of each row alone.

    A row begins a session if all sessions before it in the group have ended. The number of sessions
    begun so far numbers them. A session that begins where another ends is merged, as in Spark.
    """
    shown = identity(schema_of(plan))
    own = scalar.column(_SESSION_COLUMN)
    plan = _with_output(plan, _START, "timestamp", f"({own}).start")
    plan = _with_output(plan, _END, "timestamp", f"({own}).end")
    start, end, first, number = map(scalar.column, (_START, _END, _FIRST, _NUMBER))
    group = f"PARTITION BY {', '.join(keys)}" if keys else ""
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    plan, latest = _with_window(
        context, plan, f"MAX({end}) OVER ({group} ORDER BY {start} {before})"
    )
    plan = _with_output(plan, _FIRST, "int", f"CASE WHEN {latest} >= {start} THEN 0 ELSE 1 END")
    plan, count = _with_window(context, plan, f"SUM({first}) OVER ({group} ORDER BY {start})")
    plan = _with_output(plan, _NUMBER, "bigint", count)
    whole = f"PARTITION BY {', '.join((*keys, number))}"
    plan, least = _with_window(context, plan, f"MIN({start}) OVER ({whole})")
    plan, most = _with_window(context, plan, f"MAX({end}) OVER ({whole})")
    session = scalar.canonical(f"NAMED_STRUCT('start', {least}, 'end', {most})")
    return map_(
        plan, tuple(replace(o, scalar=session) if o.name == _SESSION_COLUMN else o for o in shown)
    )


def _with_output(plan: Plan, name: str, type_: str, text: str) -> Plan:
    return map_(plan, (*identity(schema_of(plan)), Output(name, type_, scalar.canonical(text))))


def _with_window(context: LoweringContext, plan: Plan, call: str) -> tuple[Plan, str]:
    """The rows with a column for a window call, and the column."""
    windows = Windows(context, plan, {})
    column = windows.replaced(scalar.parse(call))
    return windows.computed(), scalar.text(column)
