"""What rules mean, by the book: every way to satisfy a body, again and again until nothing is new.

Independent of plans: it works on the rules as they are read, one assignment of variables at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from everview.lang.datalog.program import checked_program
from everview.lang.datalog.syntax import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Term,
    Variable,
    Wildcard,
    parts,
)

Facts = dict[str, set[tuple[Any, ...]]]
Values = Mapping[str, Any]

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


_FUNCTORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: _wrap(a + b),
    "-": lambda a, b: _wrap(a - b),
    "*": lambda a, b: _wrap(a * b),
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a - b * int(a / b),
    "max": max,
    "min": min,
    "cat": lambda *parts: "".join(parts),
    "strlen": len,
}


def meaning(text: str, given: Facts) -> Facts:
    """Every relation of a program, from the facts given beside those of the text."""
    checked = checked_program(text)
    found: Facts = {name: set(given.get(name, ())) for name in checked.declared}
    for part in checked.strata:
        while True:
            new = [
                (name, row)
                for name in part
                for each in checked.rules[name]
                for row in _heads(each.rule.head, each.rule.body, found)
                if row not in found[name]
            ]
            if not new:
                break
            for name, row in new:
                found[name].add(row)
    return found


def _heads(head: Atom, body: tuple[Literal, ...], found: Facts) -> Iterator[tuple[Any, ...]]:
    for values in _ways(body, {}, found):
        yield tuple(_value(each, values, found) for each in head.arguments) or (True,)


def _ways(body: tuple[Literal, ...], values: Values, found: Facts) -> Iterator[Values]:
    """Every assignment that satisfies a body: literals are taken when their variables are known."""
    if not body:
        yield values
        return
    at = next(i for i, literal in enumerate(body) if _ready(literal, body, values))
    rest = body[:at] + body[at + 1 :]
    for more in _satisfied(body[at], values, found):
        yield from _ways(rest, more, found)


def _ready(literal: Literal, body: tuple[Literal, ...], values: Values) -> bool:
    if isinstance(literal, Atom):
        others = (each for each in body if not isinstance(each, Atom))
        return not any(_ready(each, body, values) for each in others)
    if isinstance(literal, Comparison) and isinstance(literal.right, Aggregate):
        outer = {n for each in body if each is not literal for n in _names(each)}
        return _names(literal.right) & outer <= set(values)
    if isinstance(literal, Comparison) and literal.operator == "=":
        sides = (literal.left, literal.right)
        return any(
            _names(one) <= set(values) and (_names(other) <= set(values) or _plain(other))
            for one, other in (sides, sides[::-1])
        )
    return _names(literal) <= set(values)


def _plain(term: Term) -> bool:
    return isinstance(term, Variable)


def _names(node: Term | Literal) -> set[str]:
    return {each.name for each in parts(node) if isinstance(each, Variable)}


def _satisfied(literal: Literal, values: Values, found: Facts) -> Iterator[Values]:
    match literal:
        case Atom(relation, arguments):
            for row in found[relation]:
                made = _matched(arguments, row, values)
                if made is not None:
                    yield made
        case Negation(Atom(relation, arguments)):
            known = tuple(
                each if isinstance(each, Wildcard) else _value(each, values, found)
                for each in arguments
            )
            if not any(_like(known, row) for row in found[relation]):
                yield values
        case Comparison("=", Variable(name), right) if name not in values:
            value = _value(right, values, found)
            if value is not None:
                yield {**values, name: value}
        case Comparison("=", left, Variable(name)) if name not in values:
            yield {**values, name: _value(left, values, found)}
        case Comparison(operator, left, right):
            sides = _value(left, values, found), _value(right, values, found)
            if None not in sides and _SIGNS[operator](*sides):
                yield values


def _like(known: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    return all(isinstance(a, Wildcard) or a == b for a, b in zip(known, row, strict=False))


def _matched(
    arguments: tuple[Term, ...], row: tuple[Any, ...], values: Values
) -> dict[str, Any] | None:
    made = dict(values)
    for argument, value in zip(arguments, row, strict=False):
        match argument:
            case Variable(name):
                if made.setdefault(name, value) != value:
                    return None
            case Constant(constant):
                if constant != value:
                    return None
    return made


def _value(term: Term, values: Values, found: Facts) -> Any:
    match term:
        case Variable(name):
            return values[name]
        case Constant(value):
            return value
        case Call(name, arguments):
            return _FUNCTORS[name](*(_value(each, values, found) for each in arguments))
        case Aggregate(function, target, bodies):
            ways = [way for body in bodies for way in _ways(body, values, found)]
            several = [1 if target is None else _value(target, way, found) for way in ways]
            if function in ("count", "sum"):
                return _wrap(sum(several))
            if not several:
                return None
            if function == "mean":
                return sum(several) / len(several)
            return (min if function == "min" else max)(several)
    raise AssertionError(term)
