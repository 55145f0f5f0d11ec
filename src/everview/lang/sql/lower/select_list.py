"""The SELECT list: stars expanded, and its expressions as typed columns of the result."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Schema, storable_type
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.resolve import SelectList
from everview.lang.sql.bind.scope import negated_name, unlike
from everview.lang.sql.bind.stars import is_star, selected_by_star, with_stars
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.expressions import NOT, SelectExpressions
from everview.lang.sql.parse.span import span_of
from everview.plan.build import identity, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


def select_list(expressions: SelectExpressions, schema: Schema) -> SelectList:
    """The names and resolved expressions of the SELECT list, with stars expanded."""
    scope, type_of = expressions.scope, expressions.context.type_of
    columns: SelectList = []
    for node in expressions.tree.expressions:
        if is_star(node):
            columns += selected_by_star(node, scope, type_of, schema)
            continue
        inner = node.this if isinstance(node, exp.Alias) else node
        expanded = with_stars(inner.copy(), scope, type_of, schema)
        columns.append((output_name(node), expressions.resolve(expanded, dict(reversed(columns)))))
    return columns


def lower_select_list(expressions: SelectExpressions, plan: Plan) -> Plan:
    """The columns of the domain, then those of the SELECT list, then their negations."""
    context, schema = expressions.context, schema_of(plan)
    carried = tuple(o for o in identity(schema) if o.name in context.domain_columns)
    names = unlike(name for name, _ in expressions.wanted)
    trees = (tree for _, tree in expressions.wanted)
    outputs: list[Output] = []
    for at, (name, tree) in enumerate(zip(names, trees, strict=True)):
        if (label := expressions.labels.get(at)) is not None:
            outputs += label.outputs
        else:
            outputs.append(_output(context, name, tree, schema))
    for at, name in enumerate(names):
        if (negation := expressions.later.get(f"{NOT}{at}")) is not None:
            outputs.append(_output(context, negated_name(name), negation, schema))
    return map_(plan, (*carried, *outputs))


def _output(context: LoweringContext, name: str, tree: exp.Expr, schema: Schema) -> Output:
    text = scalar.text(tree)
    type_ = context.type_of(text, schema, tree)
    # A subquery may select NULL; a view has to say of which type.
    untyped = type_ == "void"
    if context.domain is None if untyped else storable_type(type_) is None:
        raise UserError(
            "Q014",
            f"the column {name} has a type that cannot be stored yet: {type_}",
            span=span_of(tree, context.text) or Span(context.text, 0, len(context.text)),
            remedy="CAST NULL to a type" if untyped else "CAST it to a plain type",
        )
    return Output(name, type_, text)
