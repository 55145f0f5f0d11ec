"""LATERAL: a subquery in FROM that reads the items before it, joined to each of their rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.expr.types import Column
from everview.lang.sql.bind.refuse import function_name, refused
from everview.lang.sql.bind.scope import Scope, qualified, unlike
from everview.lang.sql.lower.columns import name_each
from everview.lang.sql.lower.outer_joins import beside_nulls, paired
from everview.lang.sql.lower.subqueries import Lower, compute
from everview.lang.sql.parse.span import span_of
from everview.plan.build import (
    add,
    columns_of,
    identity,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


def lateral_pairs(lower: Lower, plan: Plan, node: exp.Lateral, scope: Scope) -> Plan:
    """Each row with those of the subquery for it; `scope` learns the subquery's columns."""
    if not isinstance(node.this, exp.Subquery):
        name = f"LATERAL {function_name(node.this).upper()}"
        raise refused(name, node, lower.text, "write LATERAL (SELECT …)")
    inner = compute(lower, node.this.this, plan, scope.copy(), lambda column: column)
    alias = node.args.get("alias")
    given = tuple(column.name for column in alias.columns) if alias else ()
    name_each(given or inner.shown, inner.shown, span_of(node, lower.text))
    shown = unlike(given or inner.shown)
    outputs = identity(schema_of(inner.plan))
    carried, selected = outputs[: len(inner.keys)], outputs[len(inner.keys) :]
    schema = tuple(Column(n, o.type) for n, o in zip(shown, selected, strict=True))
    item = qualified(node.alias or f"item {len(scope.items) + 1}", schema)
    named = tuple(
        replace(output, name=column)
        for output, (_, column) in zip(selected, item.columns, strict=True)
    )
    scope.add(item, node)
    found = join(plan, map_(inner.plan, (*carried, *named)), inner.pairs, nulls=True)
    return project(found, (*columns_of(plan), *(output.name for output in named)))


def keep_lonely(plan: Plan, pairs: Plan) -> Plan:
    """The pairs, and beside NULLs the rows that are in none."""
    return add(pairs, beside_nulls(add(plan, negate(paired(plan, pairs))), pairs))
