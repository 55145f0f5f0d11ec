"""Faults of a whole rule, whatever it says: no rule of the table can be without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from everview.differentiate import rules
from everview.differentiate.context import Derive
from everview.differentiate.rules import RULES, Rule
from everview.expr.types import is_nested
from everview.plan.build import add, negate
from everview.plan.nodes import Empty, Plan, Values
from everview.plan.traverse import schema_of
from mutation.planting import Fault

Wrong = Callable[[Plan, Plan], Plan]
"""From an operator and its derivative, a wrong derivative."""


def _with_a_row(_: Plan, derivative: Plan) -> Plan:
    schema = schema_of(derivative)
    unlike = {c.name for c in schema if c.type == "string" or is_nested(c.type)}
    row = tuple(f"CAST({'NULL' if c.name in unlike else 1} AS {c.type})" for c in schema)
    return add(derivative, Values(schema, (row,)))


WRONG: dict[str, Wrong] = {
    "forget the change": lambda node, _: Empty(schema_of(node)),
    "negate the change": lambda _, derivative: negate(derivative),
    "add the change twice": lambda _, derivative: add(derivative, derivative),
    "take the old value for the change": lambda node, _: node,
    "add a row that is not there": _with_a_row,
}
OF_ZERO: dict[type[Plan], tuple[str, ...]] = {
    Empty: ("add a row that is not there",),
    Values: ("take the old value for the change", "add a row that is not there"),
}
"""The derivative of a constant is zero, which is its own opposite and its own double."""


def faults() -> list[Fault]:
    """Every rule made wrong as a whole."""
    return [
        Fault(rules, place(rule), what, partial(_planted, rule, WRONG[what]))
        for rule in (*RULES.values(), *rules.SPECIAL)
        for what in OF_ZERO.get(rule.operator, tuple(WRONG))
    ]


def place(rule: Rule) -> str:
    """What a rule is called: its operator, and the shape that a special one is for."""
    return f"{rule.operator.__name__}{rule.where and f', {rule.where}'}"


@contextmanager
def _planted(sound: Rule, wrong: Wrong) -> Iterator[None]:
    def apply(node: Plan, d: Derive) -> Plan:
        return wrong(node, sound.apply(node, d))

    faulty, special = replace(sound, apply=apply), rules.SPECIAL
    own = RULES[sound.operator]
    if sound is own:
        RULES[sound.operator] = faulty
    rules.SPECIAL = tuple(faulty if rule is sound else rule for rule in special)
    try:
        yield
    finally:
        RULES[sound.operator], rules.SPECIAL = own, special
