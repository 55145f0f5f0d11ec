"""Conditions over IN (subquery) with NULLs, and what they mean, told without the compiler.

The meaning is Spark's: NOT is pushed to the leaves through AND, OR, NOT and comparisons with TRUE
and FALSE, and an IN or NOT IN that is then not known is false. Everything else is three-valued.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Truth: TypeAlias = bool | None
Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class In:
    """A column IN or NOT IN the values of a table."""

    column: str
    table: str
    negated: bool = False


@dataclass(frozen=True)
class Greater:
    """A column greater than a number."""

    column: str
    than: int


@dataclass(frozen=True)
class Not:
    """NOT of a condition."""

    of: Condition


@dataclass(frozen=True)
class Both:
    """AND or OR of two conditions."""

    word: str
    left: Condition
    right: Condition


@dataclass(frozen=True)
class Is:
    """A condition = or <> TRUE or FALSE."""

    of: Condition
    sign: str
    literal: bool


@dataclass(frozen=True)
class Case:
    """CASE WHEN a condition THEN another ELSE a third END."""

    when: Condition
    then: Condition
    other: Condition


Condition: TypeAlias = In | Greater | Not | Both | Is | Case


def text(node: Condition) -> str:
    """The condition in SQL."""
    match node:
        case In(column, table, negated):
            return f"{column} {'NOT ' if negated else ''}IN (SELECT c FROM {table})"
        case Greater(column, than):
            return f"{column} > {than}"
        case Not(of):
            return f"NOT ({text(of)})"
        case Both(word, left, right):
            return f"({text(left)}) {word} ({text(right)})"
        case Is(of, sign, literal):
            return f"({text(of)}) {sign} {literal}"
        case Case(when, then, other):
            return f"CASE WHEN {text(when)} THEN {text(then)} ELSE {text(other)} END"


def value(node: Condition, row: Row, tables: Mapping[str, Sequence[object]]) -> Truth:
    """What the condition is for a row."""

    def told(each: Condition, negated: bool) -> Truth:
        match each:
            case In(column, table, turned):
                return _in(row[column], tables[table], turned != negated)
            case Not(of):
                return told(of, not negated)
            case Both(word, left, right):
                ends = (word == "OR") != negated
                return _joined(told(left, negated), told(right, negated), ends)
            case Is(of, sign, literal) if _pushed(of):
                return told(of, negated != (literal != (sign == "=")))
            case Is(of, sign, literal):
                known = told(of, False)
                found = None if known is None else (known == literal) == (sign == "=")
            case Greater(column, than):
                known = row[column]
                found = None if known is None else known > than
            case Case(when, then, other):
                found = told(then if told(when, False) else other, False)
        return found if not negated or found is None else not found

    return told(node, False)


def _pushed(node: Condition) -> bool:
    """Whether a comparison with TRUE or FALSE is one of a condition that has an IN to push to."""
    match node:
        case In():
            return True
        case Not(of):
            return _pushed(of)
        case Both(_, left, right):
            return _pushed(left) or _pushed(right)
        case Is(of, _, _):
            return _pushed(of)
        case _:
            return False


def _in(asked: object, among: Sequence[object], negated: bool) -> bool:
    if not among:
        return negated
    found = asked is not None and asked in among
    unknown = not found and (asked is None or None in among)
    return not unknown and found != negated


def _joined(left: Truth, right: Truth, ends: bool) -> Truth:
    """OR where TRUE ends it, AND where FALSE does."""
    if ends in (left, right):
        return ends
    return None if None in (left, right) else not ends


def some_condition(pick: random.Random, depth: int = 3) -> Condition:
    """A condition, most of its leaves IN."""
    if not depth or pick.random() < 0.15:
        if pick.random() < 0.3:
            return Greater(pick.choice("ab"), pick.randint(1, 3))
        return In(pick.choice("ab"), pick.choice(("known", "nulls", "none")), pick.random() < 0.4)
    kind = pick.choice(("not", "not", "and", "or", "and", "or", "is", "case"))
    if kind == "not":
        return Not(some_condition(pick, depth - 1))
    if kind == "is":
        return Is(some_condition(pick, depth - 1), pick.choice(("=", "<>")), pick.random() < 0.5)
    if kind == "case":
        parts = [some_condition(pick, depth - 1) for _ in range(3)]
        return Case(*parts)
    parts = [some_condition(pick, depth - 1) for _ in range(2)]
    return Both(kind.upper(), *parts)
