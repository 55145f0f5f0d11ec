"""The text form of a plan: one operator a line, children indented, and back again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import assert_never, cast

from everview.expr.types import Column, Schema
from everview.plan.nodes import (
    Add,
    Aggregate,
    Change,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Measure,
    Negate,
    Order,
    Output,
    Over,
    Partition,
    Plan,
    Positive,
    Recursive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import CACHE_SIZE, children

INDENT = "  "


def print_plan(plan: Plan, depth: int = 0) -> str:
    """The plan as text; `parse_plan` reads it back.

    >>> print(print_plan(Filter(Source("t", (Column("a", "int"),)), "`a` > 1")))
    Filter "`a` > 1"
      Source "t" ["a int"]
    """
    below = (print_plan(child, depth + 1) for child in children(plan))
    return "\n".join((INDENT * depth + _line(plan), *below))


@lru_cache(maxsize=CACHE_SIZE)
def digest(plan: Plan) -> str:
    """A name for the content of a plan: equal for equal plans, in every process.

    It is hashed part by part (a Merkle tree): the text of a plan can be too long to print.
    """
    text = "\n".join((_line(plan), *map(digest, children(plan))))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def parse_plan(text: str) -> Plan:
    """The plan that `print_plan` printed as `text`."""
    lines = [line for line in text.splitlines() if line.strip()]
    plan, rest = _parse(lines, 0)
    if rest:
        raise ValueError(f"unexpected text after the plan: {rest[0]!r}")
    return plan


def _line(plan: Plan) -> str:
    name = type(plan).__name__
    return " ".join((name, *(json.dumps(a, ensure_ascii=False) for a in _arguments(plan))))


def _arguments(plan: Plan) -> tuple[object, ...]:
    """What an operator holds besides its children, as JSON values."""
    match plan:
        case Empty(schema):
            return (_columns(schema),)
        case Values(schema, rows):
            return (_columns(schema), [list(row) for row in rows])
        case Source(name, schema, key):
            return (name, _columns(schema), list(key)) if key else (name, _columns(schema))
        case Change(name, schema) | Ref(name, schema) | Recursive(name, schema):
            return (name, _columns(schema))
        case Filter(_, predicate):
            return (predicate,)
        case Map(_, outputs):
            return ([f"{o.name} {o.type} = {o.scalar}" for o in outputs],)
        case Unnest(_, array, element, position, outer):
            return (array, _columns((element,)), position, outer)
        case Add() | Negate() | Distinct() | Positive():
            return ()
        case Join(_, _, on, residual, nulls):
            more = (residual or "", "null-safe") if nulls else (residual,) if residual else ()
            return ([list(pair) for pair in on], *more)
        case Totals(_, keys, measures):
            return (list(keys), [_measure(m) for m in measures])
        case Groups(_, keys):
            return (list(keys),)
        case Partition(_, keys, aggregates):
            return (list(keys), [_aggregate(a) for a in aggregates])
        case Window(_, keys, columns):
            return (list(keys), [_over(c) for c in columns])
        case Restrict(_, _, on):
            return ([list(pair) for pair in on],)
        case Fixpoint(result, _, limit, traced):
            return (result, list(plan.names), limit, traced)
        case _:
            assert_never(plan)


def _over(item: Over) -> list[object]:
    skip = [True] if item.skip_nulls else []
    arguments, order = list(item.arguments), _order(item.order)
    return [item.name, item.type, item.function, arguments, order, item.frame, *skip]


def _order(order: tuple[Order, ...]) -> list[list[object]]:
    return [[o.column, o.descending, o.nulls_first] for o in order]


def _aggregate(item: Aggregate) -> str | list[object]:
    if not (item.more or item.order or item.fixed):
        return _call(item)
    return [_call(item), list(item.more), _order(item.order), item.fixed]


def _columns(schema: Schema) -> list[str]:
    return [f"{column.name} {column.type}" for column in schema]


def _measure(item: Measure) -> str | list[object]:
    return [_call(item), list(item.factors)] if item.factors else _call(item)


def _call(item: Measure | Aggregate) -> str:
    distinct = isinstance(item, Aggregate) and item.distinct
    function = f"distinct_{item.function}" if distinct else item.function
    return f"{item.name} {item.type} = {function}({item.column or '*'})"


_ASSIGNED = re.compile(r"(.+?) ([a-z_]+(?:\([^)]*\)|<.*?>)?) = (.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


def _parse(lines: list[str], depth: int) -> tuple[Plan, list[str]]:
    head, rest = lines[0], lines[1:]
    name, _, tail = head.strip().partition(" ")
    parts: list[Plan] = []
    while rest and (len(rest[0]) - len(rest[0].lstrip())) // len(INDENT) > depth:
        part, rest = _parse(rest, depth + 1)
        parts.append(part)
    return _OPERATORS[name](parts, _values(tail)), rest


def _values(text: str) -> list[object]:
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        at += 1
    return values


def _schema(value: object) -> Schema:
    pairs = (text.rpartition(" ") for text in cast(list[str], value))
    return tuple(Column(name, type_) for name, _, type_ in pairs)


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    return tuple((left, right) for left, right in cast(list[list[str]], value))


def _strings(value: object) -> tuple[str, ...]:
    return tuple(cast(list[str], value))


def _assigned(text: str) -> tuple[str, str, str]:
    match = _ASSIGNED.fullmatch(text)
    assert match, text
    return match[1], match[2], match[3]


def _called(text: str) -> tuple[str, str, str, str | None]:
    name, type_, call = _assigned(text)
    match = _CALL.fullmatch(call)
    assert match, text
    return name, type_, match[1], None if match[2] == "*" else match[2]


def _outputs(value: object) -> tuple[Output, ...]:
    return tuple(Output(*_assigned(text)) for text in _strings(value))


def _measures(value: object) -> tuple[Measure, ...]:
    return tuple(map(_measured, cast(list[object], value)))


def _measured(value: object) -> Measure:
    text, *more = value if isinstance(value, list) else [value]
    factors = _strings(more[0]) if more else ()
    return Measure(*_called(text), factors)  # type: ignore[arg-type]


def _overs(value: list[object]) -> Over:
    name, type_, function, arguments, order, frame, *skip = value
    return Over(
        str(name),
        str(type_),
        str(function),
        _strings(arguments),
        _ordered(order),
        str(frame),
        bool(skip),
    )


def _ordered(value: object) -> tuple[Order, ...]:
    return tuple(Order(*each) for each in cast(list[tuple[str, bool, bool]], value))


def _aggregates(value: object) -> tuple[Aggregate, ...]:
    return tuple(map(_read_aggregate, cast(list[str | list[object]], value)))


def _read_aggregate(value: str | list[object]) -> Aggregate:
    call, *rest = [value] if isinstance(value, str) else value
    name, type_, function, column = _called(str(call))
    plain = function.removeprefix("distinct_")
    more, order, fixed = rest or ([], [], "")
    return Aggregate(
        name, type_, plain, column, plain != function, _strings(more), _ordered(order), str(fixed)
    )


_Parser = Callable[[list[Plan], list[object]], Plan]

_OPERATORS: dict[str, _Parser] = {
    "Empty": lambda p, a: Empty(_schema(a[0])),
    "Values": lambda p, a: Values(
        _schema(a[0]), tuple(_strings(r) for r in cast(list[object], a[1]))
    ),
    "Source": lambda p, a: Source(str(a[0]), _schema(a[1]), _strings(a[2]) if a[2:] else ()),
    "Change": lambda p, a: Change(str(a[0]), _schema(a[1])),
    "Ref": lambda p, a: Ref(str(a[0]), _schema(a[1])),
    "Filter": lambda p, a: Filter(p[0], str(a[0])),
    "Map": lambda p, a: Map(p[0], _outputs(a[0])),
    "Unnest": lambda p, a: Unnest(p[0], str(a[0]), _schema(a[1])[0], str(a[2]), outer=bool(a[3])),
    "Add": lambda p, a: Add(p[0], p[1]),
    "Negate": lambda p, a: Negate(p[0]),
    "Join": lambda p, a: Join(
        p[0], p[1], _pairs(a[0]), str(a[1]) if a[1:] and a[1] else None, bool(a[2:])
    ),
    "Distinct": lambda p, a: Distinct(p[0]),
    "Positive": lambda p, a: Positive(p[0]),
    "Totals": lambda p, a: Totals(p[0], _strings(a[0]), _measures(a[1])),
    "Groups": lambda p, a: Groups(p[0], _strings(a[0])),
    "Partition": lambda p, a: Partition(p[0], _strings(a[0]), _aggregates(a[1])),
    "Window": lambda p, a: Window(
        p[0], _strings(a[0]), tuple(_overs(each) for each in cast(list[list[object]], a[1]))
    ),
    "Restrict": lambda p, a: Restrict(p[0], p[1], _pairs(a[0])),
    "Recursive": lambda p, a: Recursive(str(a[0]), _schema(a[1])),
    "Fixpoint": lambda p, a: Fixpoint(
        str(a[0]),
        tuple(zip(_strings(a[1]), p, strict=True)),
        int(str(a[2])),
        traced=bool(a[3]),
    ),
}
