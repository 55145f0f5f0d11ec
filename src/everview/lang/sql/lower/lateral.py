"""LATERAL: a subquery in FROM that reads the items before it; ASOF JOIN is one with LIMIT 1."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.types import Column
from everview.lang.sql.bind.refuse import function_name, refused
from everview.lang.sql.bind.scope import Scope, qualified, unlike
from everview.lang.sql.lower.columns import must_name_each
from everview.lang.sql.lower.conditions import lower_condition
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.outer_joins import occurring_in, padded_with_nulls
from everview.lang.sql.lower.subqueries import compute
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, columns_of, filter_, identity, join, map_, negate, project
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


def lateral_join(
    context: LoweringContext, plan: Plan, node: exp.Join, scope: Scope, kind: str
) -> Plan:
    """JOIN LATERAL: a join with a subquery that reads the items before it."""
    if kind not in ("", "LEFT") or node.args.get("using"):
        raise refused(f"{kind} JOIN LATERAL", node, context.text, "use JOIN or LEFT JOIN … ON")
    pairs = _lateral_pairs(context, plan, node.this, scope)
    if on := node.args.get("on"):
        pairs = filter_(pairs, lower_condition(context, on, pairs, scope, "ON"))
    return _left_outer(plan, pairs) if kind else pairs


def _lateral_pairs(context: LoweringContext, plan: Plan, node: exp.Lateral, scope: Scope) -> Plan:
    """Each row with those of the subquery for it; `scope` learns the subquery's columns."""
    if not isinstance(node.this, exp.Subquery):
        name = f"LATERAL {function_name(node.this).upper()}"
        raise refused(name, node, context.text, "write LATERAL (SELECT …)")
    subquery = compute(context, node.this.this, plan, scope.copy(), lambda column: column)
    alias = node.args.get("alias")
    given = tuple(column.name for column in alias.columns) if alias else ()
    must_name_each(given or subquery.shown, subquery.shown, span_of(node, context.text))
    shown = unlike(given or subquery.shown)
    outputs = identity(schema_of(subquery.plan))
    carried, selected = outputs[: len(subquery.keys)], outputs[len(subquery.keys) :]
    schema = tuple(Column(n, o.type) for n, o in zip(shown, selected, strict=True))
    item = qualified(node.alias or f"item {len(scope.items) + 1}", schema)
    named = tuple(
        replace(output, name=column)
        for output, (_, column) in zip(selected, item.columns, strict=True)
    )
    scope.add(item, node)
    pairs = join(plan, map_(subquery.plan, (*carried, *named)), subquery.pairs, nulls=True)
    return project(pairs, (*columns_of(plan), *(output.name for output in named)))


def _left_outer(plan: Plan, pairs: Plan) -> Plan:
    """The pairs, and the rows that are in none, padded with NULLs."""
    return add(pairs, padded_with_nulls(add(plan, negate(occurring_in(plan, pairs))), pairs))


_DESCENDS: dict[type[exp.Expr], bool] = {
    exp.GTE: True,
    exp.GT: True,
    exp.LTE: False,
    exp.LT: False,
}
"""Whether the nearest row is the last in order: with left >= right, the latest row before."""


def asof_subquery(
    node: exp.Join, alias: str, conditions: list[exp.Expr], right: Scope, text: str
) -> exp.Lateral:
    """ASOF JOIN as LATERAL: of the rows of the right side that match, the nearest one.

    Where several are equally near, LIMIT takes them in the order of all their columns.
    """
    match = node.args.get("match_condition")
    if match is None or type(match) not in _DESCENDS:
        raise UserError(
            "Q001",
            "syntax error: ASOF JOIN needs a MATCH_CONDITION with >=, >, <= or <",
            span=span_of(match or node, text) or Span(text, 0, len(text)),
            remedy="write MATCH_CONDITION (a.at >= b.at)",
        )
    descends = _DESCENDS[type(match)]
    left, nearest = match.this, match.expression
    if _reads(left, right) and not _reads(nearest, right):
        left, nearest, descends = nearest, left, not descends
    if isinstance(left, exp.Tuple) or isinstance(nearest, exp.Tuple):
        raise refused("a MATCH_CONDITION of several values", match, text, "compare one value")
    if _reads(left, right):
        remedy = "compare a value of the left side with one of the right side"
        raise refused("this MATCH_CONDITION", match, text, remedy)
    item = node.this.copy()
    query = exp.Select(expressions=[exp.Star()]).from_(item)
    query = query.where(match.copy(), *(each.copy() for each in conditions), copy=False)
    first = exp.Ordered(this=nearest.copy(), desc=descends, nulls_first=not descends)
    query.set("order", exp.Order(expressions=[first]))
    query.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    name = exp.TableAlias(this=exp.Identifier(this=alias, quoted=True))
    return exp.Lateral(this=exp.Subquery(this=query), alias=name)


def _reads(tree: exp.Expr, right: Scope) -> bool:
    """Whether an expression has a column of the right side."""
    return any(right.find(column) is not None for column in tree.find_all(exp.Column))
