"""Ways to give variables values, as a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.expr import scalar
from everview.expr.types import names, type_in
from everview.plan.build import map_
from everview.plan.nodes import Output, Plan, Values
from everview.plan.traverse import schema_of

UNIT = Values((), ((),))
"""One row without columns: what holds before anything is asked."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Ways to give variables values: rows, and the column that holds each variable."""

    plan: Plan
    columns: Mapping[str, str]

    def only(self, names: set[str]) -> Bindings:
        """The same ways, with the values of some variables alone."""
        kept = {name: column for name, column in self.columns.items() if name in names}
        return Bindings(map_(self.plan, copied(self.plan, kept.values())), kept)


def copied(plan: Plan, columns: Iterable[str] | None = None) -> tuple[Output, ...]:
    """Columns as they are: those named, or all."""
    schema = schema_of(plan)
    wanted = names(schema) if columns is None else columns
    return tuple(Output(each, type_in(schema, each), scalar.column(each)) for each in wanted)
