"""What lowering one query needs of lowering another: names, types, the domain, and subqueries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from sqlglot import exp

from everview.arguments import did_you_mean
from everview.errors import Span, UserError
from everview.expr.type_inference import type_of
from everview.expr.types import Schema, Type
from everview.lang.correlation import CorrelatedNode
from everview.lang.sql.bind.nested_types import refuse_unknown_fields
from everview.lang.sql.lower.collections import Shredding, within
from everview.lang.sql.lower.domain import Domain
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, join
from everview.plan.nodes import Plan, Source

Analyze = Callable[[str, Schema, Span | None], Type]
"""The type of a scalar that our own rules do not know, as the engine's analyzer gives it."""


class LowerQuery(Protocol):
    """How any query is lowered; given to the context, so that a clause can lower a subquery."""

    def __call__(
        self, context: LoweringContext, tree: exp.Expr, *, negations: bool = False
    ) -> Plan:
        """The plan of a query, the columns of the context's domain first.

        With `negations`, a condition with IN in the SELECT list has NOT of it in a column beside.
        """


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """What a query can see: relations, the names that WITH gives, and the outer query."""

    text: str
    relations: Mapping[str, Source]
    analyze: Analyze
    lower_query: LowerQuery
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    cte_queries: Mapping[str, exp.Expr] = field(default_factory=dict)
    """The queries behind `ctes`."""
    domain: Domain | None = None
    shredding: Shredding | None = None
    """How the collections in its SELECT list are kept; as arrays, where there is none."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    correlated: list[CorrelatedNode] = field(default_factory=list)
    """The subqueries so far that read the query around them."""

    def query(self, tree: exp.Expr) -> Plan:
        """The plan of a query that sees all that this one sees, the columns of the domain first."""
        return self.lower_query(self, tree)

    def subquery(self, domain: Domain | None, tree: exp.Expr) -> Plan:
        """The plan of a subquery in an expression, the columns of its domain first."""
        return self.lower_query(replace(self.inside, domain=domain), tree)

    def elements(self, domain: Domain | None, tree: exp.Expr, path: str) -> Plan:
        """The plan of the elements of the collection at a path, the columns of its domain first."""
        inner = replace(self, domain=domain, shredding=within(self.shredding, path))
        return self.lower_query(inner, tree)

    @property
    def inside(self) -> LoweringContext:
        """The same for a query whose rows are not the rows of a relation that is stored."""
        return replace(self, shredding=within(self.shredding, None))

    def uncorrelated(self, tree: exp.Expr) -> Plan:
        """The plan of a query that reads no columns of an outer query."""
        return self.lower_query(replace(self.inside, domain=None), tree)

    def from_item(self, tree: exp.Expr) -> Plan:
        """The plan of a subquery in FROM or WITH, with the negations of conditions with IN."""
        return self.lower_query(replace(self.inside, domain=None), tree, negations=True)

    def derived_table(self, tree: exp.Expr) -> Plan:
        """The plan of a subquery in FROM, the columns of the domain first where it reads them.

        It is lowered once to see whether it does; if not, it is the same for all their values.
        """
        if self.domain is None:
            return self.from_item(tree)
        trial = replace(self.domain, used={})
        apart = replace(self.inside, domain=trial, numbers=count(1), correlated=[])
        self.lower_query(apart, tree, negations=True)
        self.domain.used.update(trial.used)
        domain = self.domain if trial.used else None
        return self.lower_query(replace(self.inside, domain=domain), tree, negations=True)

    def carries_domain(self, plan: Plan) -> bool:
        """Whether the rows of an item of FROM carry the domain, because it reads its columns."""
        return bool(self.domain_columns) and {*self.domain_columns} <= {*columns_of(plan)}

    def with_ctes(
        self, plans: Mapping[str, Plan], queries: Mapping[str, exp.Expr] | None = None
    ) -> LoweringContext:
        """The same context with more names given by WITH."""
        return replace(
            self,
            ctes={**self.ctes, **plans},
            cte_queries={**self.cte_queries, **(queries or {})},
        )

    def cte_query(self, node: exp.Expr) -> exp.Expr | None:
        """The query that WITH gives the name of a table, None for other tables."""
        return self.cte_queries.get(node.name.lower()) if not node.args.get("db") else None

    def relation(self, node: exp.Table) -> Plan:
        """The plan of a named relation."""
        name = node.name.lower()
        if not node.args.get("db"):
            if name in self.ctes:
                return self.ctes[name]
            if name in self.relations:
                return self.relations[name]
        relations = sorted(source.name for source in self.relations.values())
        near = did_you_mean(node.name, (*relations, *self.ctes))
        raise UserError(
            "Q006",
            f"there is no table or view {node.sql(dialect='spark').split(' AS ')[0]}",
            span=span_of(node.this, self.text),
            remedy=f"{near}there are: {', '.join(relations)}" if relations else "create it first",
        )

    def fresh_number(self) -> int:
        """A number for a new column: not given before, and the same for the same query."""
        return next(self.numbers)

    @property
    def domain_columns(self) -> tuple[str, ...]:
        """The columns of the domain, which every plan of this query carries."""
        return () if self.domain is None else columns_of(self.domain.leaf)

    def with_domain(self, plan: Plan) -> Plan:
        """The rows once for each value of the domain."""
        return plan if self.domain is None else join(self.domain.leaf, plan)

    def type_of(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        """The type of a scalar, by our own rules or the engine's."""
        type_ = type_of(text, schema)
        if type_ is not None:
            return type_
        refuse_unknown_fields(text, schema, span_of(node, self.text))
        return self.analyze(text, schema, span_of(node, self.text))
