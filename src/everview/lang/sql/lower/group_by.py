"""GROUP BY and HAVING of one SELECT: after them, all its expressions are over groups."""

from __future__ import annotations

from sqlglot import exp

from everview.expr import scalar
from everview.lang.sql.bind.refuse import aggregates_in, must_be_plain
from everview.lang.sql.bind.resolve import resolve_having
from everview.lang.sql.lower.conditions import as_boolean
from everview.lang.sql.lower.expressions import SelectExpressions, here
from everview.lang.sql.lower.group_keys import group_keys, has_sets, must_be_key, unlisted_key
from everview.lang.sql.lower.grouped_collections import shred_collection, take_collections
from everview.lang.sql.lower.grouping import GroupBy, add_aggregate, group_rows
from everview.lang.sql.lower.time_windows import with_sessions
from everview.plan.build import filter_
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

_HAVING = "?having"


def is_grouped(expressions: SelectExpressions) -> bool:
    """Whether a SELECT has groups: it says GROUP BY or HAVING, or has an aggregate."""
    clauses = expressions.tree.args
    if clauses.get("group") or clauses.get("having"):
        return True
    return any(map(aggregates_in, expressions.operands()))


def lower_group_by(expressions: SelectExpressions, plan: Plan) -> Plan:
    """The groups that satisfy HAVING; the expressions are rewritten over keys and aggregates."""
    context = expressions.context
    plan, grouping = _with_keys(expressions, plan)
    if (having := expressions.tree.args.get("having")) is not None:
        expressions.later[_HAVING] = _resolved_having(expressions, having.this, grouping)
    grouping.free = frozenset((*expressions.pending, *context.domain_columns))
    apart = take_collections(expressions, grouping)
    calls = [node for tree in expressions.operands() for node in aggregates_in(tree)]
    plan = expressions.attached(plan, [*calls, *apart.values()], here)
    for at, collection in apart.items():
        shred_collection(expressions, at, collection, grouping, plan)
    for call in calls:
        add_aggregate(context, call, grouping, schema_of(plan))
    groups = group_rows(context, plan, grouping)

    def translate(column: str) -> str | None:
        if column in context.domain_columns:
            return column
        return grouping.keys.get(scalar.column(column))

    expressions.rewrite(grouping.over_groups)
    expressions.over = grouping.over_groups
    groups = expressions.selected(groups, translate)
    if (condition := expressions.later.pop(_HAVING, None)) is not None:
        groups = filter_(groups, as_boolean(context, condition, schema_of(groups), "HAVING"))
    return groups


def _with_keys(expressions: SelectExpressions, plan: Plan) -> tuple[Plan, GroupBy]:
    """The rows with a column for every subquery in a key, and the grouping with its keys."""
    context, tree, text = expressions.context, expressions.tree, expressions.text
    grouping = GroupBy(text)
    keys, sets = group_keys(tree, expressions.scope, expressions.wanted, expressions.resolve, text)
    for node in keys:
        plan = expressions.attached(plan, [node], here)
        type_ = context.type_of(scalar.text(node), schema_of(plan), node)
        must_be_key(node, type_, text, in_sets=bool(sets))
        grouping.add_key(node, type_)
    for key in (key for each in sets for key in each):
        if grouping.key(key) is None:
            raise unlisted_key(key, text)
    plan = with_sessions(context, plan, keys, sets)
    grouping.sets = tuple(tuple(grouping.column(key) for key in each) for each in sets)
    grouping.whole = has_sets(tree.args.get("group")) and not sets
    return plan, grouping


def _resolved_having(expressions: SelectExpressions, tree: exp.Expr, grouping: GroupBy) -> exp.Expr:
    scope, wanted = expressions.scope, expressions.wanted

    def is_key(node: exp.Expr) -> bool:
        return grouping.key(node) is not None

    def resolved(part: exp.Expr) -> exp.Expr:
        return resolve_having(part, scope, wanted, is_key, expressions.given)

    condition = expressions.condition(expressions.marked(tree, resolved))
    for window in condition.find_all(exp.Window):
        must_be_plain(window, "HAVING", expressions.text)
    return condition
