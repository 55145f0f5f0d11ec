"""Narrows a check to the keys that are not yet proved valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from everview.plan.nodes import Add, Plan, Ref
from everview.plan.traverse import CACHE_SIZE, referred, transform, walk
from everview.program.constraints import DUPLICATE_KEY, MISSING_ROW, NOT_NULL
from everview.program.steps import Check
from everview.runtime.constraints.primary_key import unproved
from everview.runtime.workspace import Workspace


@dataclass(slots=True)
class CheckNarrowing:
    """The checks of one transaction; two of them over the same rows share the proof."""

    workspace: Workspace
    _names: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def narrowed(self, check: Check) -> Plan | None:
        """A plan that has rows if and only if the check's has; None if it is proved empty."""
        if check.rule == NOT_NULL:
            return check.plan if self._may_be_null(check) else None
        about_keys = check.rule in (DUPLICATE_KEY, MISSING_ROW)
        sides = _stored_and_change(check.plan) if about_keys else None
        if sides is None:
            return check.plan
        stored, change = sides
        pair = (stored.name, change.name)
        if check.rule == DUPLICATE_KEY:
            self._names[pair] = self._unproved(stored, change, check.columns)
        names = self._names.get(pair)
        if names is None:
            return check.plan
        return transform(check.plan, lambda node: _renamed(node, names)) if names else None

    def _may_be_null(self, check: Check) -> bool:
        rows = [self.workspace.table(ref.name, ref.schema) for ref in referred(check.plan)]
        return any(each[name].null_count for each in rows for name in check.columns)

    def _unproved(self, stored: Ref, change: Ref, key: tuple[str, ...]) -> dict[str, str]:
        """Names for the rows of a slice and a change that are not proved; none if all are."""
        sides = (stored, change)
        rows = [self.workspace.table(side.name, side.schema) for side in sides]
        places = unproved(rows[0], rows[1], key)
        if not any(map(len, places)):
            return {}
        for side, each, left in zip(sides, rows, places, strict=True):
            self.workspace.register(_narrowed(side.name), each.take(pa.array(left)))
        return {side.name: _narrowed(side.name) for side in sides}


@lru_cache(maxsize=CACHE_SIZE)
def _stored_and_change(plan: Plan) -> tuple[Ref, Ref] | None:
    """The rows stored and their change, where a plan adds them and nothing else."""
    match [node for node in walk(plan) if isinstance(node, Add)]:
        case [Add(Ref() as stored, Ref() as change)]:
            return stored, change
    return None


def _narrowed(name: str) -> str:
    return f"narrowed {name}"


def _renamed(node: Plan, names: dict[str, str]) -> Plan:
    return Ref(names[node.name], node.schema) if isinstance(node, Ref) else node
