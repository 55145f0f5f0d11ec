"""Plans with the names and types that the query around them gives their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Schema, Type
from everview.lang.sql.bind.scope import Item, unlike
from everview.plan.build import columns_of, identity, join, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


def as_types(plan: Plan, wanted: list[tuple[str, Type]]) -> Plan:
    """The plan with the names and types given, in order."""
    outputs = []
    for column, (name, type_) in zip(schema_of(plan), wanted, strict=True):
        text = scalar.column(column.name)
        if column.type != type_:
            text = scalar.canonical(f"CAST({text} AS {type_})")
        outputs.append(Output(name, type_, text))
    return map_(plan, tuple(outputs))


def behind(item: Item, schema: Schema) -> tuple[Output, ...]:
    """The columns of a FROM item under the names that expressions know them by."""
    return tuple(
        Output(plan, output.type, output.scalar)
        for (_, plan), output in zip(item.columns, identity(schema), strict=True)
    )


def renamed(plan: Plan, given: tuple[str, ...], span: Span | None) -> Plan:
    """The plan with the names given to its columns."""
    name_each(given, columns_of(plan), span)
    schema = schema_of(plan)
    return as_types(plan, [(n, c.type) for n, c in zip(unlike(given), schema, strict=True)])


def name_each(given: Sequence[str], columns: Sequence[object], span: Span | None) -> None:
    """Refuse names that are not as many as the columns."""
    if len(given) != len(columns):
        raise UserError(
            "Q012",
            f"{len(given)} names are given to {len(columns)} columns",
            span=span,
            remedy="name every column once",
        )


def with_partner(plan: Plan, some: Plan) -> Plan:
    """The rows of `plan` that occur in `some`, a set of rows of some of its columns, null-safe."""
    mark = "partner."
    theirs = map_(some, tuple(replace(o, name=mark + o.name) for o in identity(schema_of(some))))
    pairs = tuple((name, mark + name) for name in columns_of(some))
    return project(join(plan, theirs, pairs, nulls=True), columns_of(plan))
