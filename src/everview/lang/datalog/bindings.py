"""Bindings of variables to values, as a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.expr import scalar
from everview.expr.types import names, type_in
from everview.plan.build import map_
from everview.plan.nodes import Output, Plan, Values
from everview.plan.traverse import schema_of

UNIT = Values((), ((),))
"""One row without columns: the bindings before any literal is joined."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Bindings of variables: a row for each, and the column that holds each variable."""

    plan: Plan
    columns: Mapping[str, str]

    def only(self, names: set[str]) -> Bindings:
        """The bindings of some of the variables, by projection."""
        kept = {name: column for name, column in self.columns.items() if name in names}
        return Bindings(map_(self.plan, copied(self.plan, kept.values())), kept)


def copied(plan: Plan, columns: Iterable[str] | None = None) -> tuple[Output, ...]:
    """Columns as they are: those named, or all."""
    schema = schema_of(plan)
    wanted = names(schema) if columns is None else columns
    return tuple(Output(each, type_in(schema, each), scalar.column(each)) for each in wanted)
