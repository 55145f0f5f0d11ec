"""Plans evaluated by definition, in memory: the oracle of the law tests."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from everview.engine.duckdb.calculator import Calculator
from everview.plan.nodes import Change, Plan, Source
from everview.plan.traverse import walk
from everview.program.steps import change_name
from strategies import Bag, as_arrow, as_bag

_CALCULATOR = Calculator()


def evaluate(plan: Plan, old: Mapping[str, Bag], change: Mapping[str, Bag] | None = None) -> Bag:
    """The value of `plan` over old relations and their changes."""
    relations: dict[str, pa.Table] = {}
    for node in walk(plan):
        match node:
            case Source(name, schema, _):
                relations[name] = as_arrow(old[name], schema)
            case Change(name, schema):
                relations[change_name(name)] = as_arrow((change or {})[name], schema)
            case _:
                pass
    return as_bag(_CALCULATOR.calculate(plan, relations))
