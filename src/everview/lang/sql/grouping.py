"""GROUP BY: which keys there are, which aggregates, and the groups of a subquery's domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.aggregates import (
    Grouping,
    aggregates_in,
    function_of,
    must_be_plain,
    result_type,
)
from everview.lang.sql.generators import in_projections
from everview.lang.sql.joining import null_of
from everview.lang.sql.place import span_of
from everview.lang.sql.refuse import refused
from everview.lang.sql.scope import Scope
from everview.plan import scalar
from everview.plan.build import add, group_by, identity, map_
from everview.plan.nodes import Aggregate, Output, Plan
from everview.plan.traverse import schema_of
from everview.plan.types import Schema, storable_type

if TYPE_CHECKING:
    from everview.lang.sql.lower import Lowering

Wanted = list[tuple[str, exp.Expr]]


def group_keys(
    tree: exp.Select,
    scope: Scope,
    wanted: Wanted,
    resolved: Callable[[exp.Expr], exp.Expr],
    text: str,
) -> list[exp.Expr]:
    """The expressions of GROUP BY."""
    clause = tree.args.get("group")
    if clause is None:
        return []
    for part in ("grouping_sets", "rollup", "cube", "totals"):
        if clause.args.get(part):
            name = part.upper().replace("_", " ")
            raise refused(name, clause, text, "UNION ALL one GROUP BY for each set")
    for node in clause.expressions:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            name = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else node.key.upper()
            raise refused(name, node, text, "UNION ALL one GROUP BY for each set")
    if clause.args.get("all"):
        return [expression for _, expression in wanted if not aggregates_in(expression)]
    return [_group_key(node, scope, wanted, resolved, text) for node in clause.expressions]


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
                span=Span(text, 0, len(text)),
                remedy=f"use 1 to {len(wanted)}",
            )
        return wanted[position - 1][1]
    if isinstance(node, exp.Column) and not node.table and not scope.has(node.name):
        for name, expression in wanted:
            if name.lower() == node.name.lower() and not aggregates_in(expression):
                return expression
    found = resolved(node)
    must_be_plain(found, "GROUP BY", text)
    return found


def add_aggregate(lower: Lowering, node: exp.AggFunc, grouping: Grouping, schema: Schema) -> None:
    """Have the grouping compute one aggregate call."""
    shown = scalar.text(node)
    if shown in grouping.aggregates:
        return
    function = function_of(node, lower.text)
    name = f"agg{len(grouping.aggregates) + 1}"
    argument, once = node.this, isinstance(node.this, exp.Distinct)
    if once:
        argument = argument.expressions[0]
    once = once or isinstance(node, exp.ArrayUniqueAgg)
    if function == "count" and not once and isinstance(argument, exp.Star | exp.Literal):
        grouping.aggregates[shown] = Aggregate(name, "bigint", "count")
        return
    text = scalar.text(argument)
    type_ = lower.type_(text, schema, argument)
    if function in ("sum", "avg") and type_ in ("string", "void"):
        text, type_ = scalar.canonical(f"CAST({text} AS DOUBLE)"), "double"
    if function == "count" and not once and storable_type(type_) is None:
        text, type_ = scalar.canonical(f"CASE WHEN {text} IS NULL THEN NULL ELSE 1 END"), "int"
    result = result_type(function, type_)
    if result is None:
        raise UserError(
            "Q013",
            f"{function.upper()} of {type_} has no meaning",
            span=span_of(node, lower.text),
            remedy="aggregate a number, or CAST it to one",
        )
    column = grouping.input(text, type_, "value")
    grouping.aggregates[shown] = Aggregate(name, result, function, column, once)


def grouped(lower: Lowering, plan: Plan, grouping: Grouping) -> Plan:
    """The groups of the rows, within each value of the domain."""
    schema, aggregates = schema_of(plan), tuple(grouping.aggregates.values())
    carried = tuple(o for o in identity(schema) if o.name in lower.carried)
    inputs = (*carried, *(o for o in grouping.inputs.values() if o not in carried))
    rows = map_(plan, inputs)
    keys = tuple(dict.fromkeys((*lower.carried, *grouping.keys.values())))
    if grouping.keys or lower.domain is None:
        return group_by(rows, keys, aggregates)
    return group_each(rows, lower.domain.leaf, keys, aggregates)


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
