"""The domain D of a correlated subquery: the values of the outer columns that it reads.

A subquery is computed for all values of D at once, so its plan carries the columns of D along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Schema
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.lower.columns import null_of
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, distinct, group_by, identity, map_, project
from everview.plan.nodes import Aggregate, Output, Plan, Ref
from everview.plan.traverse import schema_of

Translate = Callable[[str], str | None]
"""The column of the rows so far for a column of the scope, None where there is none.

Before grouping that is the column itself, afterwards the group key.
"""


@dataclass(slots=True)
class Domain:
    """The columns of the outer query that a subquery may read, and those it did read."""

    scope: Scope
    schema: Schema
    translate: Translate
    offered: tuple[str, ...]
    number: int
    used: dict[str, None] = field(default_factory=dict)

    def find(self, node: exp.Column) -> str | None:
        """The column of D behind a name of the outer query."""
        outer = self.scope.find(node)
        if outer is None:
            return None
        column = self.translate(outer)
        if column is None:
            raise UserError(
                "Q009",
                f"{node.name} is neither in GROUP BY nor inside an aggregate",
                span=span_of(node, self.scope.text),
                remedy="add it to GROUP BY, or use it inside an aggregate",
            )
        self.used[column] = None
        return self.named(column)

    def named(self, column: str) -> str:
        """The name that an outer column has inside the subquery."""
        return f"{self.number}^{column}"

    @property
    def leaf(self) -> Ref:
        """D as a leaf of the subquery's plan; `values` takes its place when it is joined back."""
        columns = (c for c in self.schema if c.name in self.offered)
        return Ref(
            f"domain {self.number}", tuple(replace(c, name=self.named(c.name)) for c in columns)
        )

    def values(self, plan: Plan) -> Plan:
        """D itself: the distinct values that the offered columns have in the outer rows."""
        read = project(plan, self.offered)
        outputs = tuple(
            Output(self.named(o.name), o.type, o.scalar) for o in identity(schema_of(read))
        )
        return distinct(map_(read, outputs))


def group_each_value(
    rows: Plan, values: Plan, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]
) -> Plan:
    """One group for each of `values`, even where it has no rows: COUNT is then 0, not missing.

    Each value adds a row of its own that is NULL in all that is aggregated, so it changes no
    aggregate but COUNT(*), which counts a column that is NULL in those rows instead.
    """
    if not keys:
        return group_by(rows, (), aggregates)
    counted = map_(rows, (*identity(schema_of(rows)), Output(_IS_ROW, "int", "1")))
    missing = tuple(
        Output(c.name, c.type, scalar.column(c.name) if c.name in keys else null_of(c.type))
        for c in schema_of(counted)
    )
    over_rows = tuple(
        replace(a, column=_IS_ROW) if a.function == "count" and a.column is None else a
        for a in aggregates
    )
    return group_by(add(counted, map_(values, missing)), keys, over_rows)


_IS_ROW = "is here"
"""The column that is NULL in the rows that were added for a value."""
