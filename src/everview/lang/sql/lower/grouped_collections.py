"""COLLECT_LIST and COLLECT_SET of groups, shredded: the rows of each group are its collection."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.expr import scalar
from everview.expr.types import Column
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import plan_column
from everview.lang.sql.lower.aggregates import aggregate_call
from everview.lang.sql.lower.collections import (
    ELEMENT,
    FoundCollection,
    Labels,
    label_columns,
    may_be_shredded,
)
from everview.lang.sql.lower.expressions import SelectExpressions
from everview.lang.sql.lower.grouping import GroupBy
from everview.plan.build import distinct, filter_, identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

_COLLECTING = exp.ArrayAgg | exp.ArrayUniqueAgg


def take_collections(
    expressions: SelectExpressions, grouping: GroupBy
) -> dict[int, exp.ArrayAgg | exp.ArrayUniqueAgg]:
    """The columns of the SELECT list that are collected and shredded, with others in their place.

    Only a view that asks for it has them: otherwise a collected array is a value as any other.
    """
    context = expressions.context
    shredding = context.shredding
    if shredding is None or shredding.mode != "shredded":
        return {}
    taken = {}
    for at, (name, tree) in enumerate(expressions.wanted):
        if not isinstance(tree, _COLLECTING):
            continue
        if not may_be_shredded(expressions.tree, shredding) or grouping.sets or grouping.whole:
            shredding.must_allow_inline(tree, context.text)
        taken[at] = tree
        place = f"collection {context.fresh_number()}"
        expressions.wanted[at] = (name, plan_column(place))
        grouping.free |= {place}
    return taken


def shred_collection(
    expressions: SelectExpressions,
    at: int,
    node: exp.ArrayAgg | exp.ArrayUniqueAgg,
    grouping: GroupBy,
    plan: Plan,
) -> None:
    """Keep the collection of a group apart: its rows, with the keys of the group as the label."""
    context, path = expressions.context, expressions.path_below(at)
    shredding = context.shredding
    assert shredding is not None
    assert shredding.path is not None
    call = aggregate_call(node, context.text)
    if call.function != "collect_list" or call.order or len(call.arguments) != 1:
        raise refused("this collection", node, context.text, "collect one value: collect_list(x)")
    schema = schema_of(plan)
    carried = tuple(o for o in identity(schema) if o.name in context.domain_columns)
    keys = tuple(grouping.inputs.outputs[name] for name in dict.fromkeys(grouping.keys.values()))
    own = tuple(dict.fromkeys((*carried, *keys)))
    labels = label_columns(path, tuple(Column(o.name, o.type) for o in own))
    label = (replace(o, name=column.name) for o, (_, column) in zip(own, labels, strict=True))
    elements = []
    for name, tree in _fields(call.arguments[0], distinct=call.distinct):
        text = scalar.text(tree)
        elements.append(Output(name, context.type_of(text, schema, node), text))
    rows = map_(plan, (*label, *elements))
    if len(elements) == 1:
        rows = filter_(rows, scalar.canonical(f"{scalar.column(elements[0].name)} IS NOT NULL"))
    if call.distinct:
        rows = distinct(rows)
    leaf = context.domain.leaf if context.domain is not None else None
    within = tuple(each for each in labels if each[0] in context.domain_columns)
    clauses = expressions.tree.args
    shredding.found[path] = FoundCollection(
        path,
        shredding.path,
        tuple((column.name, column) for _, column in labels),
        rows,
        leaf,
        within,
        None,
        restricted=bool(clauses.get("having") or clauses.get("qualify")),
    )
    expressions.labels[at] = Labels(path, labels)


def _fields(value: exp.Expr, *, distinct: bool) -> list[tuple[str, exp.Expr]]:
    """The columns of an element: one, or the fields of a struct that is made here."""
    fields = value.expressions if isinstance(value, exp.Struct) and not distinct else []
    named = [(e.this.name, e.expression) for e in fields if isinstance(e, exp.PropertyEQ)]
    return named if len(named) == len(fields) > 1 else [(ELEMENT, value)]
