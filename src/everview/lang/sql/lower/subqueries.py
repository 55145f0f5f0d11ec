"""Subqueries in expressions, made joins: the dependent join is removed algebraically.

A subquery that reads columns of the query around it is computed for all values of those columns
at once: its FROM begins with the set D of those values, its groups and its rows carry them along,
and the result is joined back to the rows around it, NULL with NULL. So every shape of subquery is
covered by one rule, and what is left are the operators that have derivatives already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from everview.errors import UserError
from everview.lang.correlation import CorrelatedNode
from everview.lang.sql.bind.scope import Scope, plan_column, shown_name
from everview.lang.sql.lower.collections import array_query, must_be_unordered
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.domain import Domain, Translate
from everview.lang.sql.lower.generators import has_generator
from everview.lang.sql.lower.order_limit import without_limit
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, identity, map_
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of, transform

Kind: TypeAlias = Literal[
    "scalar", "array", "exists", "in", "not in", ">", ">=", "<", "<=", "=", "<>"
]


@dataclass(frozen=True, slots=True)
class Marked:
    """A subquery in an expression, and the column that will stand for it.

    A comparison as `kind` is one with ALL rows of the subquery. `left` is the left side of IN or of
    the comparison, over the rows before they are grouped.
    """

    name: str
    kind: Kind
    query: exp.Expr
    node: exp.Expr
    left: tuple[exp.Expr, ...] = ()


def mark(
    tree: exp.Expr,
    pending: dict[str, Marked],
    context: LoweringContext,
    resolved: Callable[[exp.Expr], exp.Expr],
) -> exp.Expr:
    """The expression with a column in the place of every subquery; equal ones share it."""

    def replaced(node: exp.Expr) -> exp.Expr:
        subquery = _subquery(node)
        if subquery is None:
            return node
        kind, query, operands = subquery
        if kind == "array":
            must_be_unordered(query, context.text)
        left = tuple(resolved(operand) for operand in operands)
        return _column(Marked("", kind, query, node, left), pending, context)

    return tree.copy().transform(replaced, copy=False)


def negation_of(
    node: exp.Expr, pending: dict[str, Marked], context: LoweringContext
) -> exp.Expr | None:
    """The column for NOT IN where a node stands for IN, and the other way round."""
    marked = pending.get(node.name) if isinstance(node, exp.Column) else None
    kind = _NEGATED.get(marked.kind) if marked is not None else None
    if marked is None or kind is None:
        return None
    return _column(replace(marked, kind=kind), pending, context)


_NEGATED: dict[Kind, Kind] = {"in": "not in", "not in": "in"}


def _column(marked: Marked, pending: dict[str, Marked], context: LoweringContext) -> exp.Expr:
    """The column that stands for a subquery; equal ones share it."""
    for other in pending.values():
        if (other.kind, other.query, other.left) == (marked.kind, marked.query, marked.left):
            return plan_column(other.name)
    name = f"subquery {context.fresh_number()}"
    pending[name] = replace(marked, name=name)
    return plan_column(name)


def _subquery(
    node: exp.Expr,
) -> tuple[Kind, exp.Expr, tuple[exp.Expr, ...]] | None:
    if (elements := array_query(node)) is not None:
        return "array", elements, ()
    match node:
        case exp.Exists(this=exp.Query(), expression=None):
            return "exists", without_limit(node.this), ()
        case exp.Not(this=inner) if _is_not_in(inner.unnest()):
            return "in", *_sides(inner.unnest().this.unnest())
        case exp.Not() if _is_in(node.this.unnest()):
            return "not in", *_sides(node.this.unnest())
        case exp.In() if _is_in(node):
            return "in", *_sides(node)
        case exp.Subquery():
            return "scalar", node.this, ()
        case exp.Predicate(this=left, expression=exp.All(this=query)) if (
            _is_query(query) and type(node) in _COMPARISONS
        ):
            return _COMPARISONS[type(node)], query.unnest(), (left,)
        case _:
            return None


def _is_query(node: object) -> bool:
    return isinstance(node, exp.Query)


_COMPARISONS: dict[type[exp.Expr], Kind] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
}


def _is_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and bool(node.args.get("query"))


def _is_not_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.Not) and _is_in(node.this.unnest())


def _sides(node: exp.Expr) -> tuple[exp.Expr, tuple[exp.Expr, ...]]:
    """The query of an IN, and the expressions on its left side."""
    left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    return node.args["query"].unnest(), tuple(left)


@dataclass(frozen=True, slots=True)
class ComputedSubquery:
    """A subquery computed for all values of its domain, and those values."""

    plan: Plan
    over_leaf: Plan
    """The same plan with the domain as a leaf."""
    domain: Domain
    values: Plan
    shown: tuple[str, ...]
    """The names that the subquery gives its columns."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Columns of the outer rows and of the subquery that must agree."""
        return tuple((column, self.domain.named(column)) for column in self.domain.offered)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the domain."""
        return tuple(named for _, named in self.pairs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns that the subquery itself selects."""
        return columns_of(self.plan)[len(self.domain.offered) :]


def compute(
    context: LoweringContext, query: exp.Expr, plan: Plan, scope: Scope, translate: Translate
) -> ComputedSubquery:
    """A subquery for the rows of `plan`: lowered once to see which columns it reads, then again.

    The second time D has only those columns.
    """
    domain = domain_read(context, query, plan, scope, translate)
    read = domain.offered
    lowered = context.subquery(domain if read else None, query)
    shown = tuple(map(shown_name, columns_of(lowered)[len(read) :]))
    leaf, values = domain.leaf, domain.values(plan)
    if read:
        text = query.sql(dialect="spark")
        context.correlated.append(CorrelatedNode(text, read, shown, values))
    over_leaf = _with_fresh_names(lowered, domain)
    over_values = transform(over_leaf, lambda n: values if n == leaf else n)
    return ComputedSubquery(over_values, over_leaf, domain, values, shown)


def domain_read(
    context: LoweringContext, query: exp.Expr, plan: Plan, scope: Scope, translate: Translate
) -> Domain:
    """The columns of the rows around that a subquery reads.

    What reads none of them has one answer for all rows, and needs no D.
    """
    schema = schema_of(plan)
    trial = Domain(scope, schema, translate, columns_of(plan), context.fresh_number())
    replace(context, shredding=None, correlated=[]).subquery(trial, query)
    read = tuple(name for name in columns_of(plan) if name in trial.used)
    return Domain(scope, schema, translate, read, context.fresh_number())


def _with_fresh_names(plan: Plan, domain: Domain) -> Plan:
    """The columns that a subquery selects, under names that no plan it is joined with has."""
    outputs = identity(schema_of(plan))
    carried = len(domain.offered)
    selected = (
        replace(output, name=f"{domain.number}.{place}")
        for place, output in enumerate(outputs[carried:], 1)
    )
    return map_(plan, (*outputs[:carried], *selected))


def must_have_columns(marked: Marked, subquery: ComputedSubquery, text: str) -> None:
    """Refuse a subquery that selects another number of columns than stand on the left side."""
    columns = len(subquery.outputs)
    if marked.kind == "scalar" and columns != 1:
        raise UserError(
            "Q012",
            f"a subquery used as a value selects {columns} columns",
            span=span_of(marked.node, text),
            remedy="select one column",
        )
    if marked.kind not in ("scalar", "exists", "array") and len(marked.left) != columns:
        word = "IN" if marked.kind in ("in", "not in") else f"{marked.kind} ALL"
        raise UserError(
            "Q012",
            f"{word} compares {len(marked.left)} values with {columns} columns",
            span=span_of(marked.node, text),
            remedy=f"select as many columns as stand before {word}",
        )


def without_needless_limit(tree: exp.Select) -> exp.Select:
    """A SELECT without its LIMIT and ORDER BY if it has exactly one row anyway."""
    whole = without_limit(tree)
    return whole if single_row(whole) else tree


def single_row(tree: exp.Expr) -> bool:
    """Whether a query has exactly one row whatever the data: aggregates and no GROUP BY."""
    tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
    clauses = ("group", "having", "qualify", "limit", "offset")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in clauses):
        return False
    if has_generator(tree):
        return False
    return any(
        node.find_ancestor(exp.Select) is tree
        for projection in tree.expressions
        for node in projection.find_all(exp.AggFunc)
    )
