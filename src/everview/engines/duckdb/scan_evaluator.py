"""Evaluates plans over FROM items, which recursions over stored relations are evaluated by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.plan.nodes import Empty, Plan
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.recursion.iterations import Bound, reach_in_memory
from everview.runtime.recursion.seminaive import LoopPlans, Solver
from everview.runtime.workspace import Workspace

Emit = Callable[[Plan, Mapping[str, str]], str]
"""The SQL of a plan over FROM items."""


@dataclass(frozen=True, slots=True)
class ScanEvaluator:
    """A workspace in which some relations are FROM items.

    `bound` raises an error where a loop reaches more rows than may be held.
    """

    workspace: Workspace
    items: Mapping[str, str]
    emit: Emit
    bound: Bound = lambda _: None

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

    def register(self, name: str, rows: pa.Table) -> None:
        """Make weighted rows known under a name."""
        self.workspace.register(name, rows)

    def reach(self, loop: LoopPlans, names: Mapping[str, str]) -> None:
        """Run a loop, and make what its relations reach known under names."""
        reach_in_memory(loop, names, self, self.bound)

    def vector_rows(
        self, plan: Plan, relations: Mapping[str, pa.RecordBatch], *, consolidated: bool
    ) -> pa.RecordBatch | None:
        """The rows of a plan over given batches; None where vector operators do not know them."""
        return self.workspace.vector_rows(plan, relations, consolidated=consolidated)

    def batch(self, name: str) -> pa.RecordBatch:
        """A relation in memory as one batch."""
        return self.workspace.batch(name)

    def count_rows(self, names: Iterable[str]) -> int:
        """How many rows some relations in memory have together."""
        return self.workspace.count_rows(names)
