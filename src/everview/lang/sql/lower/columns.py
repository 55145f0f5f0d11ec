"""The columns of a plan renamed and cast to those that the query around it names."""

from __future__ import annotations

from collections.abc import Sequence

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.quoting import spark_type
from everview.expr.types import PLAIN_NAME, Schema, Type, unusable_name
from everview.lang.sql.bind.scope import Item, shown_name, unlike
from everview.plan.build import columns_of, identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


def as_types(plan: Plan, wanted: list[tuple[str, Type]]) -> Plan:
    """The plan with its columns renamed and cast, in order."""
    outputs = []
    for column, (name, type_) in zip(schema_of(plan), wanted, strict=True):
        text = scalar.column(column.name)
        if column.type != type_:
            text = scalar.canonical(f"CAST({text} AS {spark_type(type_)})")
        outputs.append(Output(name, type_, text))
    return map_(plan, tuple(outputs))


def qualified_outputs(item: Item, schema: Schema) -> tuple[Output, ...]:
    """The columns of a FROM item under their plan names, which begin with the item's alias."""
    return tuple(
        Output(plan, output.type, output.scalar)
        for (_, plan), output in zip(item.columns, identity(schema), strict=True)
    )


def renamed(plan: Plan, given: tuple[str, ...], span: Span | None) -> Plan:
    """The plan with the names given to its columns."""
    must_name_each(given, columns_of(plan), span)
    schema = schema_of(plan)
    return as_types(plan, [(n, c.type) for n, c in zip(unlike(given), schema, strict=True)])


def must_name_each(given: Sequence[str], columns: Sequence[object], span: Span | None) -> None:
    """Refuse a list of names that is longer or shorter than the columns."""
    if len(given) != len(columns):
        raise UserError(
            "Q012",
            f"{len(given)} names are given to {len(columns)} columns",
            span=span,
            remedy="name every column once",
        )


def must_have_usable_names(plan: Plan, text: str) -> Plan:
    """The plan of a view, if its columns have names that can be stored."""
    for name in columns_of(plan):
        shown, unusable = shown_name(name), unusable_name(name)
        if unusable:
            raise UserError(
                "Q011",
                unusable if shown == name else f"two columns are called {shown}",
                span=Span(text, 0, len(text)),
                remedy=PLAIN_NAME if shown == name else "give one of them another name with AS",
            )
    return plan


def null_of(type_: Type) -> str:
    """NULL of a type."""
    return "NULL" if type_ == "void" else scalar.canonical(f"CAST(NULL AS {spark_type(type_)})")
