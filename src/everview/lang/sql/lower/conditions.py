"""Conditions of WHERE, ON, HAVING and QUALIFY as boolean scalars."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Schema
from everview.lang.sql.bind.refuse import must_be_plain, refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.negation import push_not
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

_CAST = ("HAVING", "QUALIFY")
"""Spark casts the conditions of these to boolean; in WHERE and ON it refuses other types."""


def lower_condition(
    context: LoweringContext, tree: exp.Expr, plan: Plan, scope: Scope, clause: str
) -> str:
    """A condition without subqueries over the rows of `plan`, its names resolved."""
    resolved = resolve(push_not(tree, scope.negation_of), scope, None, scope.negation_pairs)
    must_be_plain(resolved, clause, context.text)
    for node in resolved.find_all(exp.Column):
        if node.name not in columns_of(plan):
            joins = "a RIGHT, FULL or parenthesised join"
            name = f"{clause} of {joins} that reads the query around its subquery"
            raise refused(name, node, context.text, "move the condition to WHERE")
    return as_boolean(context, resolved, schema_of(plan), clause)


def as_boolean(context: LoweringContext, tree: exp.Expr, schema: Schema, clause: str) -> str:
    """A resolved expression as a condition: boolean, or cast to it where Spark does that."""
    text = scalar.text(tree)
    type_ = context.type_of(text, schema, tree)
    if clause in _CAST and type_ not in ("boolean", "void"):
        text = scalar.text(exp.cast(tree, "boolean"))
        type_ = context.type_of(text, schema, tree)
    if type_ != "boolean" and clause not in _CAST:
        raise UserError(
            "Q013",
            f"the condition after {clause} is {type_}, not boolean",
            span=span_of(tree, context.text),
            remedy="compare it with something",
        )
    return text
