"""UNION, INTERSECT and EXCEPT, each with and without ALL."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import UserError
from everview.expr.types import Column, Type
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.columns import as_types
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.outer_joins import semi_join
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, distinct, negate, positive
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


def lower_set_operation(
    context: LoweringContext, tree: exp.SetOperation, left: Plan, right: Plan
) -> Plan:
    """The rows of two queries combined, both cast to the types that their columns have in common.

    The first columns of both are those of the domain.
    """
    text, carried = context.text, len(context.domain_columns)
    name = tree.key.upper()
    if tree.args.get("by_name"):
        raise refused(f"{name} BY NAME", tree, text, "select the columns in one order")
    a, b = schema_of(left), schema_of(right)
    if len(a) != len(b):
        raise UserError(
            "Q012",
            f"the sides of {name} have {len(a) - carried} and {len(b) - carried} columns",
            span=span_of(tree, text),
            remedy="select as many columns on both sides",
        )
    pairs = [(x.name, _common(context, x.type, y.type, tree)) for x, y in zip(a, b, strict=True)]
    first, second = as_types(left, pairs), as_types(right, pairs)
    if tree.args.get("distinct") or not isinstance(tree, exp.Union):
        refuse_maps(schema_of(first), name, tree, text)
    return _combined(tree, first, second)


def _combined(tree: exp.SetOperation, left: Plan, right: Plan) -> Plan:
    is_distinct = bool(tree.args.get("distinct"))
    match tree:
        case exp.Intersect() if is_distinct:
            return semi_join(distinct(left), distinct(right))
        case exp.Except() if is_distinct:
            mine = distinct(left)
            return add(mine, negate(semi_join(mine, distinct(right))))
        case exp.Intersect():
            # min(a, b) = a − max(a − b, 0)
            return add(left, negate(positive(add(left, negate(right)))))
        case exp.Except():
            return positive(add(left, negate(right)))
        case _:
            both = add(left, right)
            return distinct(both) if is_distinct else both


def _common(context: LoweringContext, a: Type, b: Type, tree: exp.Expr) -> Type:
    """The type that both are cast to."""
    if a == b:
        return a
    try:
        return context.type_of("COALESCE(`a`, `b`)", (Column("a", a), Column("b", b)), tree)
    except UserError as problem:
        problem.problem = f"{tree.key.upper()} of {a} and {b}: no type is known to hold both"
        problem.remedy = "CAST the columns of both sides to one type"
        raise
