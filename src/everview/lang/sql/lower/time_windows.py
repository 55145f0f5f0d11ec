"""WINDOW and SESSION_WINDOW: the stretches of time that a row lies in, as a column of their name.

Spark computes the column before the rest of the SELECT: rows without a time are left out, and where
windows slide, a row stands once for each of them. A session begins as the time of one row and the
gap after it; those that meet are one where rows are grouped by them (`sessions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Item, Scope
from everview.lang.sql.lower.frames import whole_number
from everview.lang.sql.lower.from_clause import Lower, lateral_rows
from everview.lang.sql.parse.span import span_of
from everview.plan.build import filter_, identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

NAME = "window"
SESSION = "session_window"
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
WINDOWS_MAX = 1000
"""A row may lie in so many sliding windows."""


def with_time_window(
    lower: Lower, plan: Plan, tree: exp.Select, scope: Scope
) -> tuple[Plan, exp.Select]:
    """The rows with the column window, and the query with the column for each call."""
    calls = list(_calls(tree))
    if not calls:
        return plan, tree
    _refuse_forms(tree, calls, lower.text)
    call, name = calls[0], calls[0].name.lower()
    made = tree.copy()
    for each in list(_calls(made)):
        each.replace(exp.Column(this=exp.Identifier(this=name, quoted=True)))
    if name == SESSION:
        return _with_session(lower, plan, call, scope), made
    durations = _durations(call, lower.text)
    moment = _moment(lower, plan, call.expressions[0], scope)
    plan = filter_(plan, scalar.text(exp.Is(this=moment.copy(), expression=exp.Null()).not_()))
    return _with_column(lower, plan, moment, durations, scope, call), made


def _calls(tree: exp.Select) -> Iterator[exp.Expr]:
    """The calls of WINDOW in a query itself, not in its subqueries; of nested ones the outer."""
    for place in _PLACES:
        found = tree.args.get(place)
        for part in found if isinstance(found, list) else [found] if found else []:
            for node in part.walk(prune=lambda each: _is_call(each) or isinstance(each, exp.Query)):
                if _is_call(node):
                    yield node


def _is_call(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() in (NAME, SESSION)
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
    lower: Lower,
    plan: Plan,
    moment: exp.Expr,
    durations: tuple[int, int, int],
    scope: Scope,
    call: exp.Expr,
) -> Plan:
    """The column of the one window, or a row for each window that slides over its time."""
    length, slide, start = durations
    count = -(-length // slide)
    micros = scalar.text(moment)
    latest = f"{micros} - PMOD({micros} - {start}, {slide})"
    structs = [_struct(f"{latest} - {slide * i}", length) for i in range(count)]
    if count > WINDOWS_MAX:
        raise refused(f"{count} windows for one time", call, lower.text, "let them slide further")
    if count == 1:
        return _with_struct(lower, plan, NAME, structs[0], scope, call)
    array = scalar.parse(f"ARRAY({', '.join(structs)})")
    plan = lateral_rows(lower, plan, array, NAME, scope, call)
    if length % slide == 0:
        return plan
    end = _end(scalar.parse(scalar.column(f"{NAME}.{NAME}")))
    return filter_(plan, scalar.canonical(f"{micros} < UNIX_MICROS({end})"))


def _with_struct(
    lower: Lower, plan: Plan, name: str, struct: str, scope: Scope, call: exp.Expr
) -> Plan:
    """The rows with a window of their own, which `scope` learns the name of."""
    column, text = f"{name}.{name}", scalar.canonical(struct)
    made = Output(column, lower.type_(text, schema_of(plan), call), text)
    scope.add(Item(name, ((name, column),)), call)
    return map_(plan, (*identity(schema_of(plan)), made))


def _with_session(lower: Lower, plan: Plan, call: exp.Expr, scope: Scope) -> Plan:
    """The rows with the session that each would be alone; one without a gap after it is none."""
    gap = _microseconds(call.expressions[1]) if len(call.expressions) == 2 else None
    if gap is None:
        raise refused("this form of SESSION_WINDOW", call, lower.text, "write a fixed gap")
    moment = _moment(lower, plan, call.expressions[0], scope)
    micros = scalar.text(moment)
    kept = f"{micros} IS NOT NULL" if gap > 0 else "FALSE"
    plan = filter_(plan, scalar.canonical(kept))
    return _with_struct(lower, plan, SESSION, _struct(micros, gap), scope, call)


def _struct(first: str, length: int) -> str:
    ends = (f"TIMESTAMP_MICROS({first})", f"TIMESTAMP_MICROS({first} + {length})")
    return f"NAMED_STRUCT('start', {ends[0]}, 'end', {ends[1]})"


def _end(window: exp.Expr) -> str:
    """The end of a window."""
    return scalar.text(exp.Dot(this=window.copy(), expression=exp.Identifier(this="end")))


def _moment(lower: Lower, plan: Plan, node: exp.Expr, scope: Scope) -> exp.Expr:
    """The microseconds of a time; those of a window are the last that lie in it."""
    if _is_call(node):
        length, slide, start = _durations(node, lower.text)
        if length != slide:
            raise refused("a window of windows that slide", node, lower.text, "use a subquery")
        inner = scalar.text(_moment(lower, plan, node.expressions[0], scope))
        return scalar.parse(f"{inner} - PMOD({inner} - {start}, {slide}) + {length - 1}")
    tree = resolve(node, scope)
    text = scalar.text(tree)
    match lower.type_(text, schema_of(plan), node):
        case "timestamp":
            return scalar.parse(f"UNIX_MICROS({text})")
        case "struct<start:timestamp,end:timestamp>":
            return scalar.parse(f"UNIX_MICROS({_end(tree)}) - 1")
        case other:
            remedy = "give it a TIMESTAMP, or a column made by WINDOW"
            raise refused(f"WINDOW of {other.upper()}", node, lower.text, remedy)


def _durations(call: exp.Expr, text: str) -> tuple[int, int, int]:
    """The length of a window, the distance to the next one and where the first begins."""
    given = call.expressions[1:]
    found = [_microseconds(each) for each in given]
    known = [each for each in found if each is not None]
    if len(known) == len(found) and 1 <= len(known) <= 3:
        length, slide, start = (*known, *(known[0], 0)[len(known) - 1 :])
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
    while found := _PART.match(rest, place):
        unit = _MICROSECONDS.get(found[2].lower())
        if unit is None:
            return None
        total, place = total + int(found[1]) * unit, found.end()
    return total if place == len(rest) and place else None
