"""GROUP BY: which keys there are, which aggregates, and the groups of a subquery's domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.types import Schema, Type, storable_type, type_in
from everview.lang.sql.bind.canonical_form import canonical_text
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.lower.aggregates import (
    AggregateCall,
    Grouping,
    aggregate_call,
    aggregates_in,
    any_value_of,
    cast_operands,
    must_be_plain,
)
from everview.lang.sql.lower.generators import in_projections
from everview.lang.sql.lower.grouping_sets import WITH, group_by_sets, marked_whole, sets_of
from everview.lang.sql.lower.outer_joins import null_of
from everview.lang.sql.parse.order_limit import placed
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, group_by, identity, map_
from everview.plan.nodes import Aggregate, Order, Output, Plan
from everview.plan.traverse import schema_of

if TYPE_CHECKING:
    from everview.lang.sql.lower.query import Lowering

Wanted = list[tuple[str, exp.Expr]]


Sets = list[list[exp.Expr]]


def group_keys(
    tree: exp.Select,
    scope: Scope,
    wanted: Wanted,
    resolved: Callable[[exp.Expr], exp.Expr],
    text: str,
) -> tuple[list[exp.Expr], Sets]:
    """The expressions of GROUP BY, and those of each grouping where it asks for several."""
    clause = tree.args.get("group")
    if clause is None:
        return [], []
    if clause.args.get("all") is False:
        raise refused("GROUP BY DISTINCT", clause, text, "leave DISTINCT out")
    if means_all(clause, scope, wanted):
        plain = [expression for _, expression in wanted if not aggregates_in(expression)]
        for expression in plain:
            must_be_plain(expression, "GROUP BY ALL", text)
        return plain, []

    def keys(nodes: Iterable[exp.Expr]) -> list[exp.Expr]:
        return [_group_key(node, scope, wanted, resolved, text) for node in nodes]

    several = sets_of(clause)
    if several is None:
        return keys(clause.expressions), []
    return keys(several[0]), list(map(keys, several[1]))


def means_all(clause: exp.Expr, scope: Scope, wanted: Wanted) -> bool:
    """Whether GROUP BY ALL stands for the SELECT list: no column and no alias is called so."""
    only = clause.expressions[0] if len(clause.expressions) == 1 else None
    if any(clause.args.get(part) for part in WITH) or not isinstance(only, exp.Column):
        return False
    known = scope.has("all") or any(name.lower() == "all" for name, _ in wanted)
    return only.name.lower() == "all" and not only.table and not known


def _group_key(
    node: exp.Expr,
    scope: Scope,
    wanted: Wanted,
    resolved: Callable[[exp.Expr], exp.Expr],
    text: str,
) -> exp.Expr:
    """A key by position, by an alias of the SELECT list, or by expression."""
    if isinstance(node, exp.Literal) and not node.is_string:
        position = int(node.name) if node.name.isdigit() else 0
        if not 1 <= position <= len(wanted):
            raise UserError(
                "Q009",
                f"GROUP BY position {node.name} is not in the SELECT list",
                span=span_of(node, text) or Span(text, 0, len(text)),
                remedy=f"use 1 to {len(wanted)}",
            )
        must_be_plain(wanted[position - 1][1], "GROUP BY", text)
        return wanted[position - 1][1]
    if isinstance(node, exp.Column) and not node.table and not scope.has(node.name):
        for name, expression in wanted:
            if name.lower() == node.name.lower():
                must_be_plain(expression, "GROUP BY", text)
                return expression
    found = resolved(node)
    must_be_plain(found, "GROUP BY", text)
    return found


def add_aggregate(lower: Lowering, node: exp.AggFunc, grouping: Grouping, schema: Schema) -> None:
    """Have the grouping compute one aggregate call."""
    shown = scalar.text(node)
    if shown in grouping.aggregates:
        return
    # A grouping that leaves a key out has many values of it, of which ANY_VALUE gives some.
    some = any_value_of(node) if not grouping.sets else None
    if some is not None and (key := grouping.key(some)) is not None:
        grouping.keys[canonical_text(node)] = key
        return
    call = aggregate_call(node, lower.text)
    name = f"agg{len(grouping.aggregates) + 1}"
    if not call.arguments:
        grouping.aggregates[shown] = Aggregate(name, "bigint", "count")
        return
    first, *more = _arguments(lower, call, node, grouping, schema)
    result = result_type(call.function, type_in(grouping.schema, first))
    assert result is not None
    order = _order(lower, call, first, grouping, schema)
    grouping.aggregates[shown] = Aggregate(
        name, result, call.function, first, call.distinct, tuple(more), order, call.fixed
    )


def _arguments(
    lower: Lowering, call: AggregateCall, node: exp.Expr, grouping: Grouping, schema: Schema
) -> tuple[str, ...]:
    """The columns that hold the arguments, as Spark casts them."""
    texts = tuple(map(scalar.text, call.arguments))
    types = tuple(
        lower.type_(text, schema, tree) for text, tree in zip(texts, call.arguments, strict=True)
    )
    made = cast_operands(call, texts, types, node, lower.text)
    if call.function == "count" and not call.distinct:
        made = [_whether_there(text, type_) for text, type_ in made]
    return tuple(grouping.input(text, type_, "value") for text, type_ in made)


def _whether_there(text: str, type_: Type) -> tuple[str, Type]:
    """What is only counted need not be stored."""
    if storable_type(type_):
        return text, type_
    return scalar.canonical(f"CASE WHEN {text} IS NULL THEN NULL ELSE 1 END"), "int"


def _order(
    lower: Lowering, call: AggregateCall, value: str, grouping: Grouping, schema: Schema
) -> tuple[Order, ...]:
    """The order of the rows of a group, in which only equal values tie."""
    found: list[Order] = []
    for node in call.order:
        text = scalar.text(node.this)
        type_ = lower.type_(text, schema, node.this)
        found.append(placed(node, grouping.input(text, type_, "order")))
    if not found or any(each.column == value for each in found):
        return tuple(found)
    if call.function != "listagg":
        return tuple(Order(value, each.descending) for each in found)
    if call.distinct:
        name = "LISTAGG(DISTINCT …) in the order of something else"
        raise refused(name, call.order[0], lower.text, "order by the string itself")
    return (*found, Order(value))


def grouped(lower: Lowering, plan: Plan, grouping: Grouping) -> Plan:
    """The groups of the rows, within each value of the domain."""
    schema, aggregates = schema_of(plan), tuple(grouping.aggregates.values())
    carried = tuple(o for o in identity(schema) if o.name in lower.carried)
    inputs = (*carried, *(o for o in grouping.inputs.values() if o not in carried))
    rows = map_(plan, inputs)
    keys = tuple(dict.fromkeys((*lower.carried, *grouping.keys.values())))
    if grouping.sets:
        return group_by_sets(rows, lower.carried, grouping, aggregates)
    if grouping.keys or lower.domain is None:
        return marked_whole(group_by(rows, keys, aggregates), grouping)
    return marked_whole(group_each(rows, lower.domain.leaf, keys, aggregates), grouping)


def group_each(
    rows: Plan, values: Plan, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]
) -> Plan:
    """One group for each of `values`, even where there are no rows of it.

    Each value brings a row of its own that is NULL in all that is aggregated, and so counts for
    nothing; COUNT(*) counts the others.
    """
    if not keys:
        return group_by(rows, (), aggregates)
    counted = map_(rows, (*identity(schema_of(rows)), Output(_HERE, "int", "1")))
    missing = tuple(
        Output(c.name, c.type, scalar.column(c.name) if c.name in keys else null_of(c.type))
        for c in schema_of(counted)
    )
    made = tuple(
        replace(a, column=_HERE) if a.function == "count" and a.column is None else a
        for a in aggregates
    )
    return group_by(add(counted, map_(values, missing)), keys, made)


_HERE = "is here"
"""The column that is NULL in the rows that only bring a value."""


def single_row(tree: exp.Expr) -> bool:
    """Whether a query has exactly one row whatever the data: aggregates and no GROUP BY."""
    tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    fewer = ("group", "having", "qualify", "limit", "offset")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in fewer):
        return False
    if in_projections(tree):
        return False
    return any(
        node.find_ancestor(exp.Select) is tree
        for projection in tree.expressions
        for node in projection.find_all(exp.AggFunc)
    )
