"""DISTINCT, and ORDER BY with LIMIT or OFFSET, of one SELECT."""

from __future__ import annotations

from sqlglot import exp

from everview.expr import scalar
from everview.expr.types import Column
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.expressions import SelectExpressions
from everview.lang.sql.lower.order_limit import (
    first_rows,
    limit_rows,
    limits,
    order_clause,
    order_items,
    order_of,
    shown_column,
)
from everview.plan.build import columns_of, distinct, identity, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

_ORDER = "#"


def order_keys(expressions: SelectExpressions) -> dict[str, exp.Expr]:
    """The resolved keys of ORDER BY, where LIMIT or OFFSET makes them matter, for `later`."""
    if limits(expressions.tree, expressions.text) == (None, 0):
        return {}
    keys = enumerate(_items(expressions))
    return {f"{_ORDER}{at}": _key(expressions, node.this) for at, node in keys}


def limit_selected(expressions: SelectExpressions, plan: Plan) -> Plan:
    """The rows that LIMIT and OFFSET keep in the order of the keys, before the SELECT list."""
    limit, offset = limits(expressions.tree, expressions.text)
    if limit is None and not offset:
        return plan
    context = expressions.context
    extra: list[Output] = []
    order = []
    for at, node in enumerate(_items(expressions)):
        text = scalar.text(expressions.later[f"{_ORDER}{at}"])
        type_ = context.type_of(text, schema_of(plan), node)
        if type_ == "void":  # NULL is the same in every row
            continue
        name = scalar.as_column(text)
        if name is None:
            name = f"order {context.fresh_number()}"
            extra.append(Output(name, type_, text))
        refuse_maps((Column(output_name(node.this), type_),), "ORDER BY", node, expressions.text)
        order.append(order_of(node, name))
    columns = columns_of(plan)
    plan = map_(plan, (*identity(schema_of(plan)), *extra))
    return project(first_rows(plan, context.domain_columns, tuple(order), limit, offset), columns)


def limit_distinct(expressions: SelectExpressions, plan: Plan) -> Plan:
    """SELECT DISTINCT: the distinct rows of the result, of which LIMIT and OFFSET keep some."""
    tree, context = expressions.tree, expressions.context
    quantifier = tree.args["distinct"]
    if quantifier.args.get("on"):
        raise refused("DISTINCT ON", quantifier, context.text, "use GROUP BY")
    refuse_maps(schema_of(plan), "DISTINCT", tree, context.text)
    return limit_rows(context, distinct(plan), tree)


def _items(expressions: SelectExpressions) -> list[exp.Expr]:
    shown = [name for name, _ in expressions.wanted]
    clause = order_clause(expressions.tree, expressions.text)
    return order_items(clause, shown, expressions.scope.has)


def _key(expressions: SelectExpressions, node: exp.Expr) -> exp.Expr:
    """A key of ORDER BY: a column of the SELECT list, or an expression of its own."""
    names = tuple(name for name, _ in expressions.wanted)
    shown = shown_column(node, names, expressions.text)
    if isinstance(node, exp.Literal) and shown is not None:
        return expressions.wanted[int(node.name) - 1][1]
    aliases = dict(reversed(expressions.wanted))
    return aliases[shown] if shown is not None else expressions.resolve(node, aliases)
