"""Subqueries in expressions, made joins: the dependent join is removed algebraically.

A subquery that reads columns of the query around it is computed for all values of those columns
at once: its FROM begins with the set D of those values, its groups and its rows carry them along,
and the result is joined back to the rows around it, NULL with NULL. So every shape of subquery is
covered by one rule, and what is left are the operators that have derivatives already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sqlglot import exp

from everview.errors import UserError
from everview.expr.types import Schema, Type
from everview.lang.sql.bind.scope import Scope, shown_name
from everview.lang.sql.lower.aggregates import column_named
from everview.lang.sql.parse.order_limit import unlimited
from everview.lang.sql.parse.span import span_of
from everview.plan.build import (
    columns_of,
    distinct,
    identity,
    map_,
    project,
)
from everview.plan.nodes import Output, Plan, Ref
from everview.plan.traverse import schema_of, transform

Kind: TypeAlias = Literal["scalar", "exists", "in", "not in", ">", ">=", "<", "<=", "=", "<>"]


@dataclass(slots=True)
class Domain:
    """The columns of the query around that a subquery may read, and those it did read.

    `translate` gives the column that stands for one of the scope's where the rows are now, for
    instance the group key; None where it has none.
    """

    scope: Scope
    schema: Schema
    translate: Callable[[str], str | None]
    offered: tuple[str, ...]
    number: int
    used: dict[str, None] = field(default_factory=dict)

    def find(self, node: exp.Column) -> str | None:
        """The column of the set D behind a name of the query around."""
        found = self.scope.find(node)
        if found is None:
            return None
        here = self.translate(found)
        if here is None:
            raise UserError(
                "Q009",
                f"{node.name} is neither in GROUP BY nor inside an aggregate",
                span=span_of(node, self.scope.text),
                remedy="add it to GROUP BY, or use it inside an aggregate",
            )
        self.used[here] = None
        return self.named(here)

    def named(self, column: str) -> str:
        """The name of a column of the query around inside the subquery."""
        return f"{self.number}^{column}"

    @property
    def leaf(self) -> Ref:
        """D as a leaf of the subquery's plan; what it is, is known when it is joined back."""
        columns = (c for c in self.schema if c.name in self.offered)
        return Ref(
            f"domain {self.number}", tuple(replace(c, name=self.named(c.name)) for c in columns)
        )

    def values(self, plan: Plan) -> Plan:
        """D: the values that the columns read have in the rows around."""
        read = project(plan, self.offered)
        outputs = tuple(
            Output(self.named(o.name), o.type, o.scalar) for o in identity(schema_of(read))
        )
        return distinct(map_(read, outputs))


@dataclass(frozen=True, slots=True)
class Marked:
    """A subquery in an expression, and the column that will stand for it.

    A comparison as `kind` is one with ALL rows of the subquery.

    `left` is what IN looks for, in terms of the rows before they are grouped.
    """

    name: str
    kind: Kind
    query: exp.Expr
    node: exp.Expr
    left: tuple[exp.Expr, ...] = ()


class Lower(Protocol):
    """What subqueries need of the lowering around them."""

    @property
    def text(self) -> str:
        """The text that places are in."""

    def number(self) -> int:
        """A number not given before, the same ones for the same query."""

    def inside(self, domain: Domain | None, tree: exp.Expr) -> Plan:
        """The plan of a subquery, the columns of its domain first."""

    def type_(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        """The type of a scalar."""


def mark(
    tree: exp.Expr,
    pending: dict[str, Marked],
    lower: Lower,
    resolved: Callable[[exp.Expr], exp.Expr],
) -> exp.Expr:
    """The expression with a column in the place of every subquery; equal ones share it."""

    def replaced(node: exp.Expr) -> exp.Expr:
        found = _subquery(node)
        if found is None:
            return node
        kind, query, operands = found
        left = tuple(resolved(operand) for operand in operands)
        return _column(Marked("", kind, query, node, left), pending, lower)

    return tree.copy().transform(replaced, copy=False)


def opposite(node: exp.Expr, pending: dict[str, Marked], lower: Lower) -> exp.Expr | None:
    """The column for NOT IN where a node stands for IN, and the other way round."""
    marked = pending.get(node.name) if isinstance(node, exp.Column) else None
    kind = _OPPOSITE.get(marked.kind) if marked is not None else None
    if marked is None or kind is None:
        return None
    return _column(replace(marked, kind=kind), pending, lower)


_OPPOSITE: dict[Kind, Kind] = {"in": "not in", "not in": "in"}


def _column(marked: Marked, pending: dict[str, Marked], lower: Lower) -> exp.Expr:
    """The column that stands for a subquery; equal ones share it."""
    for known in pending.values():
        if (known.kind, known.query, known.left) == (marked.kind, marked.query, marked.left):
            return column_named(known.name)
    name = f"subquery {lower.number()}"
    pending[name] = replace(marked, name=name)
    return column_named(name)


def _subquery(
    node: exp.Expr,
) -> tuple[Kind, exp.Expr, tuple[exp.Expr, ...]] | None:
    match node:
        case exp.Exists(this=exp.Query(), expression=None):
            return "exists", unlimited(node.this), ()
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
    """The query of an IN, and what is looked for in it."""
    left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    return node.args["query"].unnest(), tuple(left)


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery computed for all values of its domain, and those values."""

    plan: Plan
    over_domain: Plan
    """The same, with the domain as a leaf."""
    domain: Domain
    values: Plan
    shown: tuple[str, ...]
    """The names that the subquery gives its columns."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Columns of the rows around, and of the subquery, that must agree."""
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
    lower: Lower,
    query: exp.Expr,
    plan: Plan,
    scope: Scope,
    translate: Callable[[str], str | None],
) -> Inner:
    """A subquery over the rows of `plan`: once to see which columns it reads, then with those."""
    schema = schema_of(plan)
    trial = Domain(scope, schema, translate, columns_of(plan), lower.number())
    lower.inside(trial, query)
    read = tuple(name for name in columns_of(plan) if name in trial.used)
    domain = Domain(scope, schema, translate, read, lower.number())
    # What reads nothing of the rows around has one answer for all of them, and needs no D.
    made = lower.inside(domain if read else None, query)
    shown = tuple(map(shown_name, columns_of(made)[len(read) :]))
    leaf, values = domain.leaf, domain.values(plan)
    open_ = _named_apart(made, domain)
    filled = transform(open_, lambda n: values if n == leaf else n)
    return Inner(filled, open_, domain, values, shown)


def _named_apart(plan: Plan, domain: Domain) -> Plan:
    """What a subquery selects, under names that nothing it is joined with has."""
    outputs = identity(schema_of(plan))
    carried = len(domain.offered)
    selected = (
        replace(output, name=f"{domain.number}.{place}")
        for place, output in enumerate(outputs[carried:], 1)
    )
    return map_(plan, (*outputs[:carried], *selected))
