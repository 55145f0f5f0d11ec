"""The meaning of NRC⁺ (nested-collections, Fig. 3): bags with integer multiplicities.

This is the reference that everything else is compared with. A bag inside a value is a frozen set
of elements with their multiplicities, which may be negative in a change; a tuple is its components
with their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, assert_never

from everview.algebra.zset import ZSet
from everview.lang.nested.primitives import PRIMITIVES
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Let,
    Negate,
    Record,
    Rel,
    Sng,
    Times,
    Union,
    Var,
)
from everview.lang.nested.types import place

Inner: TypeAlias = frozenset[tuple[Any, int]]
"""A bag inside a value."""
Tuple: TypeAlias = tuple[tuple[str, Any], ...]
"""A tuple: names and components."""
Database: TypeAlias = Mapping[str, ZSet[Any]]
Environment: TypeAlias = Mapping[str, Any]


def evaluate(expr: Expr, database: Database, around: Environment | None = None) -> ZSet[Any]:
    """The bag that an expression means, over relations and the values of free variables."""
    return ZSet(_value(expr, database, around or {}))


def _value(expr: Expr, db: Database, env: Environment) -> Any:
    match expr:
        case Rel(name):
            return frozenset(db[name])
        case Var(name):
            return env[name]
        case Const(value):
            return value
        case Let(name, bound, body):
            return _value(body, db, {**env, name: _value(bound, db, env)})
        case For():
            return _for(expr, db, env)
        case Sng(item):
            return frozenset([(_value(item, db, env), 1)])
        case Empty():
            return frozenset()
        case Union(left, right):
            return bag_of([*_bag_of(left, db, env), *_bag_of(right, db, env)])
        case Negate(child):
            return frozenset((v, -w) for v, w in _bag_of(child, db, env))
        case Times(left, right):
            return times(_bag_of(left, db, env), _bag_of(right, db, env))
        case Flatten(child):
            return bag_of(
                [(u, v * w) for bag, w in _bag_of(child, db, env) for u, v in _inner(bag)]
            )
        case Record(fields):
            return tuple((name, _value(each, db, env)) for name, each in fields)
        case Field(child, name):
            return component(_value(child, db, env), name)
        case Apply(function, args):
            return apply(function, [partial(_value, each, db, env) for each in args])
        case Choice(test, then, otherwise):
            return _value(then if _value(test, db, env) else otherwise, db, env)
        case Aggregate(function, child):
            return aggregate(function, _bag_of(child, db, env))
        case _:
            assert_never(expr)


def apply(function: str, args: Sequence[Callable[[], Any]]) -> Any:
    """What a primitive gives; of `and` and `or` the right side is computed where it decides."""
    if function in ("and", "or"):
        left, right = args
        first = bool(left())
        return first if first == (function == "or") else bool(right())
    return PRIMITIVES[function].meaning(*(each() for each in args))


def component(value: Tuple | None, name: str) -> Any:
    """A component of a tuple; None has none."""
    return None if value is None else dict(value)[name]


def aggregate(function: str, bag: Inner) -> Any:
    """An aggregate of a bag: None is left out; the least of nothing is None, its sum is zero."""
    known = [(v, w) for v, w in bag if v is not None]
    match function:
        case "len":
            return sum(w for _, w in bag)
        case "sum":
            return sum(v * w for v, w in known)
        case "any":
            return any(v for v, _ in known)
        case "all":
            return all(v for v, _ in bag)
        case "min":
            return min((v for v, _ in known), default=None)
        case _:
            return max((v for v, _ in known), default=None)


def _for(expr: For, db: Database, env: Environment) -> Inner:
    found: list[tuple[Any, int]] = []
    for each, weight in _bag_of(expr.source, db, env):
        inner = {**env, expr.name: each}
        if expr.where is None or _value(expr.where, db, inner):
            found += ((v, w * weight) for v, w in _bag_of(expr.body, db, inner))
    return bag_of(found)


def times(left: Inner, right: Inner) -> Inner:
    """All pairs of elements, multiplicities multiplied."""
    pairs = (((a, b), v * w) for a, v in left for b, w in right)
    return bag_of([(tuple((place(i), x) for i, x in enumerate(both)), w) for both, w in pairs])


def _bag_of(expr: Expr, db: Database, env: Environment) -> Inner:
    return _inner(_value(expr, db, env))


def _inner(value: Any) -> Inner:
    """A bag, or an array of the database as a bag; None has no elements."""
    if isinstance(value, frozenset):
        return value
    return bag_of([(each, 1) for each in value or ()])


def bag_of(entries: list[tuple[Any, int]]) -> Inner:
    """The bag of elements with multiplicities, equal ones added up."""
    return frozenset(ZSet(entries))
