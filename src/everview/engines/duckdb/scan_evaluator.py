"""Evaluates plans over FROM items, which recursions over stored relations are evaluated by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.plan.nodes import Empty, Plan
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.recursion.seminaive import Solver
from everview.runtime.workspace import Workspace

Emit = Callable[[Plan, Mapping[str, str]], str]
"""The SQL of a plan over FROM items."""


@dataclass(frozen=True, slots=True)
class ScanEvaluator:
    """A workspace in which some relations are FROM items."""

    workspace: Workspace
    items: Mapping[str, str]
    emit: Emit

    def without_loops(self, plan: Plan) -> Plan:
        """The same plan over what its loops reach."""
        return Solver(self).solved(plan)

    def evaluate(self, plan: Plan) -> pa.Table:
        """The consolidated rows of a plan."""
        reduced = self.workspace.without_empty(plan)
        if isinstance(reduced, Empty):
            return arrow_schema(schema_of(plan)).empty_table()
        return conform(self.workspace.rows(self.emit(reduced, self.items)), schema_of(plan))

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the consolidated rows of a plan known under a name."""
        self.register(name, self.evaluate(plan))

    def register(self, name: str, table: pa.Table) -> None:
        """Make weighted rows known under a name."""
        self.workspace.register(name, table)
