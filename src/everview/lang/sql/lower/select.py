"""One SELECT, clause by clause in the order of their meaning, from FROM to LIMIT."""

from __future__ import annotations

from sqlglot import exp

from everview.lang.sql.bind.refuse import refuse_clauses
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.expressions import SelectExpressions, here
from everview.lang.sql.lower.from_clause import lower_from
from everview.lang.sql.lower.generators import (
    has_generator,
    lower_generator_select,
    with_laterals,
)
from everview.lang.sql.lower.group_by import is_grouped, lower_group_by
from everview.lang.sql.lower.qualify import lower_windows, qualify_condition, window_definitions
from everview.lang.sql.lower.select_list import lower_select_list, select_list
from everview.lang.sql.lower.select_order import limit_distinct, limit_selected, order_keys
from everview.lang.sql.lower.time_windows import with_time_window
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


def lower_select(context: LoweringContext, tree: exp.Select, *, negations: bool = False) -> Plan:
    """The plan of a SELECT; the columns of the domain, if there is one, come first.

    With `negations`, a condition with IN in the SELECT list has NOT of it in a column beside.
    """
    refuse_clauses(tree, context.text)
    expressions = SelectExpressions(context, tree)
    tree = expressions.tree
    tree = expressions.tree = with_laterals(context, tree)
    if has_generator(tree):
        return lower_generator_select(context, tree)
    plan = lower_from(context, tree, expressions.scope)
    plan, tree = with_time_window(context, plan, tree, expressions.scope)
    expressions.tree = tree
    if where := tree.args.get("where"):
        plan = expressions.where(plan, where.this)
    expressions.wanted = select_list(expressions, schema_of(plan))
    denied = expressions.negations() if negations else {}
    is_distinct = tree.args.get("distinct") is not None
    expressions.later = {
        **qualify_condition(expressions),
        **({} if is_distinct else order_keys(expressions)),
        **window_definitions(expressions),
        **denied,
    }
    if is_grouped(expressions):
        plan = lower_group_by(expressions, plan)
    else:
        plan = expressions.selected(plan, here)
    plan = lower_windows(expressions, plan)
    if is_distinct:
        return limit_distinct(expressions, lower_select_list(expressions, plan))
    return lower_select_list(expressions, limit_selected(expressions, plan))
