"""UNION, INTERSECT and EXCEPT, each with and without ALL."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.errors import UserError
from everview.expr.types import Column, Schema, Type
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.columns import as_types, with_partner
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, distinct, negate, positive
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

TypeOf = Callable[[str, Schema, exp.Expr], Type]


def set_operation(
    tree: exp.SetOperation, left: Plan, right: Plan, text: str, type_of: TypeOf, carried: int
) -> Plan:
    """The rows of two queries put together, as the sides are typed together.

    The first columns of both are `carried` from the query around.
    """
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
    pairs = [(x.name, _common(x.type, y.type, tree, type_of)) for x, y in zip(a, b, strict=True)]
    first, second = as_types(left, pairs), as_types(right, pairs)
    if tree.args.get("distinct") or not isinstance(tree, exp.Union):
        refuse_maps(schema_of(first), name, tree, text)
    return _combined(tree, first, second)


def _combined(tree: exp.SetOperation, left: Plan, right: Plan) -> Plan:
    once = bool(tree.args.get("distinct"))
    match tree:
        case exp.Intersect() if once:
            return with_partner(distinct(left), distinct(right))
        case exp.Except() if once:
            mine = distinct(left)
            return add(mine, negate(with_partner(mine, distinct(right))))
        case exp.Intersect():
            # min(a, b) = a − max(a − b, 0)
            return add(left, negate(positive(add(left, negate(right)))))
        case exp.Except():
            return positive(add(left, negate(right)))
        case _:
            both = add(left, right)
            return distinct(both) if once else both


def _common(a: Type, b: Type, tree: exp.Expr, type_of: TypeOf) -> Type:
    if a == b:
        return a
    try:
        return type_of("COALESCE(`a`, `b`)", (Column("a", a), Column("b", b)), tree)
    except UserError as problem:
        problem.problem = f"{tree.key.upper()} of {a} and {b}: no type is known to hold both"
        problem.remedy = "CAST the columns of both sides to one type"
        raise
