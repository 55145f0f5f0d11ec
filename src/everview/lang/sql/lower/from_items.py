"""One item of FROM: a table, a view, a subquery, VALUES, RANGE or a generator, with its pivots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from everview.expr import scalar
from everview.expr.types import names
from everview.lang.sql.bind.refuse import function_name, refuse_clauses, refused
from everview.lang.sql.bind.scope import Item, Scope, is_negated, negated_name, qualified, unlike
from everview.lang.sql.lower.columns import must_name_each, qualified_outputs
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.generators import generator_of, lower_generator_item
from everview.lang.sql.lower.negation import columns_without_negation
from everview.lang.sql.lower.nested_items import (
    NestedRelation,
    collections_named,
    nested_relation,
)
from everview.lang.sql.lower.pivot import pivoted
from everview.lang.sql.lower.values import range_query
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, identity, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


def lower_item(context: LoweringContext, node: exp.Expr, scope: Scope) -> Plan:
    """A FROM item, its columns named after its alias; `scope` learns them."""
    refuse_clauses(node, context.text)
    if isinstance(node, exp.Table | exp.Lateral) and generator_of(node.this) is not None:
        return lower_generator_item(context, node, scope)
    if (nested := _nested(context, node)) is not None:
        named, exploded = collections_named(nested, node)
        if exploded:
            return _exploded_item(nested, node, (named, exploded), scope)
        plan = nested.fields_with(named)
    else:
        plan = _rows(context, node)
    alias = node.alias or f"item {len(scope.items) + 1}"
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        alias = node.alias or node.name
    for each in node.args.get("pivots") or ():
        plan = project(plan, tuple(n for n in columns_of(plan) if not is_negated(n)))
        plan, alias = pivoted(context, plan, each), each.alias or alias
    given = tuple(column.name for column in node.args["alias"].columns) if node.alias else ()
    carried = context.domain_columns if context.carries_domain(plan) else ()
    own = schema_of(plan)[len(carried) :]
    shown = tuple(column for column in own if not is_negated(column.name))
    if given:
        must_name_each(given, shown, span_of(node, context.text))
    aliased = zip(unlike(given) if given else names(shown), shown, strict=True)
    item = qualified(alias, tuple(replace(column, name=name) for name, column in aliased))
    scope.add(item, node)
    outputs = (*qualified_outputs(item, shown), *_negations(item, plan, names(shown), scope))
    _learn_not_negatable(context, node, item, scope)
    return map_(plan, (*identity(schema_of(plan)[: len(carried)]), *outputs))


def _nested(context: LoweringContext, node: exp.Expr) -> NestedRelation | None:
    """The nested view that a name in FROM stands for, if it is one."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return None
    is_cte = node.name.lower() in context.ctes
    return None if is_cte or node.args.get("db") else nested_relation(context.relations, node.name)


def _exploded_item(
    nested: NestedRelation, node: exp.Expr, uses: tuple[set[str], set[str]], scope: Scope
) -> Plan:
    """A nested view of which collections are only exploded: labels stand in their place."""
    named, exploded = uses
    rows, alias = nested.rows(named), node.alias or node.name
    shown = [each for each in nested.fields if each not in nested.below or each in named | exploded]
    item = Item(alias, tuple((name, f"{alias}.{name}") for name in shown))
    scope.add(item, node)
    scope.exploded |= {f"{alias}.{name}": nested.source.name for name in exploded}
    outputs = (replace(o, name=f"{alias}.{o.name}") for o in identity(schema_of(rows)))
    return map_(rows, tuple(outputs))


def _rows(context: LoweringContext, node: exp.Expr) -> Plan:
    """The rows of an item that is not a generator."""
    match node:
        case exp.Table() if isinstance(node.this, exp.Identifier):
            return context.relation(node)
        case exp.Table() if (numbers := range_query(node, context.text)) is not None:
            return context.from_item(numbers)
        case exp.Subquery() if isinstance(node.this, exp.Table):
            # Joins in parentheses that have a name are a table of all their columns.
            return context.from_item(exp.Select(expressions=[exp.Star()]).from_(node.this))
        case exp.Subquery() | exp.Values() | exp.Lateral(this=exp.Subquery()):
            # There is nothing before the first item that LATERAL could let it read.
            whole = node.this if isinstance(node, exp.Lateral) else node
            tree = whole if isinstance(whole, exp.Values) else whole.this
            if node.args.get("pivots"):
                return context.from_item(tree)
            return context.derived_table(tree)
        case _:
            remedy = "name a table, view or subquery"
            call = node.this if isinstance(node.this, exp.Func) else None
            name = f"the function {function_name(call)}" if call else node.key.upper()
            raise refused(f"{name} in FROM", node, context.text, remedy)


def _negations(item: Item, plan: Plan, shown: tuple[str, ...], scope: Scope) -> Iterator[Output]:
    """The columns of an item that hold the negation of another; `scope` learns them."""
    for own, (_, column) in zip(shown, item.columns, strict=True):
        if (hidden := negated_name(own)) in columns_of(plan):
            scope.negations.add(negated_name(column))
            yield Output(negated_name(column), "boolean", scalar.column(hidden))


def _learn_not_negatable(
    context: LoweringContext, node: exp.Expr, item: Item, scope: Scope
) -> None:
    """Let `scope` know the columns of an item that hold IN (subquery) without its negation."""
    query = node.this if isinstance(node, exp.Subquery) else context.cte_query(node)
    if query is not None and not node.args.get("pivots"):
        positions = columns_without_negation(query, context.cte_query)
        columns = {item.columns[at][1] for at in positions if at < len(item.columns)}
        scope.not_negatable |= {n for n in columns if negated_name(n) not in scope.negations}
