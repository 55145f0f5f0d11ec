"""The calculator over relations that it reads as FROM items, which loops are evaluated by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.engines.duckdb.calculator import Calculator
from everview.plan.nodes import Empty, Plan
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema, conform

Written = Callable[[Plan, Mapping[str, str]], str]
"""The SQL of a plan over FROM items."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The calculator, with relations known as FROM items."""

    calculator: Calculator
    read: Mapping[str, str]
    written: Written

    def evaluate(self, plan: Plan) -> pa.Table:
        """The weighted rows of a plan, added up."""
        left = self.calculator.reduced(plan)
        if isinstance(left, Empty):
            return arrow_schema(schema_of(plan)).empty_table()
        return conform(self.calculator.rows(self.written(left, self.read)), schema_of(plan))

    def hold(self, name: str, plan: Plan) -> None:
        """Make the value of a plan known under a name."""
        self.give(name, self.evaluate(plan))

    def give(self, name: str, table: pa.Table) -> None:
        """Make weighted rows known under a name."""
        self.calculator.give(name, table)
