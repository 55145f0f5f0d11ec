"""Loops on Spark: what each iteration adds comes to the driver, so that no lineage grows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.relations import Relations, as_frame
from everview.errors import UserError
from everview.plan.nodes import Plan
from everview.plan.traverse import has_loops, schema_of
from everview.runtime.arrow_types import conform
from everview.runtime.recursion.seminaive import Solver
from everview.sqlgen.sql import SPARK, emit_consolidated

REACHED_ROWS = 5_000_000
"""So many rows may come to the driver at one iteration."""


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Plans without loops by Spark, over relations that it knows."""

    session: SparkSession
    relations: Relations
    held: ExitStack

    def evaluate(self, plan: Plan) -> pa.Table:
        """The consolidated rows of a plan, to the driver."""
        rows = actions.collect_some(self._frame(plan), REACHED_ROWS + 1)
        if rows.num_rows > REACHED_ROWS:
            raise UserError(
                "E013",
                f"a recursion adds more than {REACHED_ROWS} rows at one iteration",
                remedy="restrict where it begins, or send the change in smaller transactions",
            )
        return conform(rows, schema_of(plan))

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the value of a plan known under a name; it stays on Spark."""
        self.relations.replace(name, self.held.enter_context(actions.kept(self._frame(plan))))

    def register(self, name: str, table: pa.Table) -> None:
        """Make weighted rows known under a name."""
        self.relations.replace(name, as_frame(self.session, table))

    def _frame(self, plan: Plan) -> DataFrame:
        return ask(self.session, emit_consolidated(plan, SPARK, self.relations.names))


@contextmanager
def without_loops(plan: Plan, session: SparkSession, relations: Relations) -> Iterator[Plan]:
    """The same plan over what its loops reach, for the time of the block."""
    if not has_loops(plan):
        yield plan
        return
    with ExitStack() as held:
        yield Solver(_Iterations(session, relations, held)).solved(plan)
