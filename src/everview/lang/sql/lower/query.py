"""A query to a plan: the entry of lowering, and the dispatch on the kind of query."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.correlation import CorrelatedNode
from everview.lang.sql.bind.refuse import refuse_clauses
from everview.lang.sql.lower.collections import Shredding
from everview.lang.sql.lower.columns import must_have_usable_names, renamed
from everview.lang.sql.lower.context import Analyze, LoweringContext
from everview.lang.sql.lower.desugar import desugared
from everview.lang.sql.lower.order_limit import limit_rows
from everview.lang.sql.lower.select import lower_select
from everview.lang.sql.lower.set_operations import lower_set_operation
from everview.lang.sql.lower.values import lower_values
from everview.lang.sql.lower.with_clause import with_ctes
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Plan, Source


def lower_query(
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    columns: tuple[str, ...] = (),
    shredding: Shredding | None = None,
) -> Plan:
    """The plan of a query; `relations` are the tables and views it may read, by lower-case name.

    `analyze` gives the type of a scalar that our own rules do not know. `shredding` learns the
    collections that are kept apart.
    """
    plan = _lower_whole(parse_query(text), text, relations, analyze, shredding)
    if columns:
        plan = renamed(plan, columns, Span(text, 0, len(text)))
    return must_have_usable_names(plan, text)


def correlated_nodes(
    text: str, relations: Mapping[str, Source], analyze: Analyze
) -> tuple[CorrelatedNode, ...]:
    """The subqueries of a query that read the query around them, in the order of lowering."""
    context = LoweringContext(text, relations, analyze, _lower_any)
    context.query(desugared(parse_query(text)))
    return tuple(context.correlated)


def lower_tree(
    tree: exp.Expr, text: str, relations: Mapping[str, Source], analyze: Analyze
) -> Plan:
    """The plan of a parsed query; errors show places in `text`."""
    return must_have_usable_names(_lower_whole(tree, text, relations, analyze), text)


def _lower_whole(
    tree: exp.Expr,
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    shredding: Shredding | None = None,
) -> Plan:
    context = LoweringContext(text, relations, analyze, _lower_any, shredding=shredding)
    return context.query(desugared(tree))


def _lower_any(context: LoweringContext, tree: exp.Expr, *, negations: bool = False) -> Plan:
    """Any query: with CTEs, in parentheses, a set operation, VALUES or a SELECT.

    This is what `context` calls for a subquery; see `LowerQuery`.
    """
    inner = with_ctes(context, tree)
    if not isinstance(tree, exp.Select):
        inner = inner.inside
    match tree:
        case exp.Subquery():
            refuse_clauses(tree, context.text)
            return limit_rows(inner, inner.query(tree.this), tree)
        case exp.Select():
            # DISTINCT and LIMIT would merge or drop rows by the columns for negations.
            drops_rows = any(tree.args.get(part) for part in ("distinct", "limit", "offset"))
            return lower_select(inner, tree, negations=negations and not drops_rows)
        case exp.Values():
            return limit_rows(inner, inner.with_domain(lower_values(inner, tree)), tree)
        case exp.SetOperation():
            refuse_clauses(tree, context.text)
            left, right = inner.query(tree.left), inner.query(tree.right)
            return limit_rows(inner, lower_set_operation(inner, tree, left, right), tree)
        case _:
            raise UserError(
                "Q003",
                "this is not a query",
                span=span_of(tree, context.text) or Span(context.text, 0, len(context.text)),
                remedy="write a SELECT",
            )
