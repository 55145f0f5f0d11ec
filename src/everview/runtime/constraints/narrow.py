"""What is left of a check when the rows that plainly keep its rule are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from everview.engines.duckdb.calculator import Calculator
from everview.plan.nodes import Add, Plan, Ref
from everview.plan.traverse import CACHE_SIZE, referred, transform, walk
from everview.program.constraints import DUPLICATE_KEY, MISSING_ROW, NOT_NULL
from everview.program.steps import Check
from everview.runtime.constraints.primary_key import unsettled


@dataclass(slots=True)
class Doubts:
    """The checks of one transaction; what two of them ask about the same rows is found out once."""

    calculator: Calculator
    _names: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def left(self, check: Check) -> Plan | None:
        """A plan that has rows if and only if the check's has; None if it has none."""
        if check.rule == NOT_NULL:
            return check.plan if self._may_be_null(check) else None
        met = _met(check.plan) if check.rule in (DUPLICATE_KEY, MISSING_ROW) else None
        if met is None:
            return check.plan
        stored, change = met
        pair = (stored.name, change.name)
        if check.rule == DUPLICATE_KEY:
            self._names[pair] = self._doubted(stored, change, check.columns)
        names = self._names.get(pair)
        if names is None:
            return check.plan
        return transform(check.plan, lambda node: _renamed(node, names)) if names else None

    def _may_be_null(self, check: Check) -> bool:
        rows = [self.calculator.result(ref.name, ref.schema) for ref in referred(check.plan)]
        return any(each[name].null_count for each in rows for name in check.columns)

    def _doubted(self, stored: Ref, change: Ref, key: tuple[str, ...]) -> dict[str, str]:
        """Other names for a slice and a change, under which only what is in doubt is known.

        No names if nothing is in doubt.
        """
        sides = (stored, change)
        rows = [self.calculator.result(side.name, side.schema) for side in sides]
        places = unsettled(rows[0], rows[1], key)
        if not any(map(len, places)):
            return {}
        for side, each, found in zip(sides, rows, places, strict=True):
            self.calculator.give(_doubt(side.name), each.take(pa.array(found)))
        return {side.name: _doubt(side.name) for side in sides}


@lru_cache(maxsize=CACHE_SIZE)
def _met(plan: Plan) -> tuple[Ref, Ref] | None:
    """The rows stored and their change, where a plan adds them and nothing else."""
    match [node for node in walk(plan) if isinstance(node, Add)]:
        case [Add(Ref() as stored, Ref() as change)]:
            return stored, change
    return None


def _doubt(name: str) -> str:
    return f"doubted {name}"


def _renamed(node: Plan, names: dict[str, str]) -> Plan:
    return Ref(names[node.name], node.schema) if isinstance(node, Ref) else node
