"""A query to a plan: names resolved, types known, every clause an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from everview.arguments import did_you_mean
from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Schema, Type, unusable_name
from everview.expr.typing import type_of
from everview.lang.sql.bind.negation import has_in, push_not
from everview.lang.sql.bind.nested_types import refuse_unknown_fields
from everview.lang.sql.bind.refuse import refuse_clauses, refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Scope, named_twice, shown_name
from everview.lang.sql.lower.aggregates import must_be_plain
from everview.lang.sql.lower.columns import renamed
from everview.lang.sql.lower.desugar_aggregates import desugared
from everview.lang.sql.lower.pivot import ROWS
from everview.lang.sql.lower.recursion import circles, lower_circle
from everview.lang.sql.lower.select import Select
from everview.lang.sql.lower.set_operations import set_operation
from everview.lang.sql.lower.subqueries import Domain
from everview.lang.sql.lower.values import lower_values
from everview.lang.sql.lower.windows import first_rows
from everview.lang.sql.parse.order_limit import limits, order_by, order_clause, ordered
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.statement import parse_query
from everview.plan.build import columns_of, join
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of

MOST_COLUMNS = 10_000
"""A star stands for no more columns than these."""
_CAST = ("HAVING", "QUALIFY")
"""Spark casts what these ask for, and refuses what WHERE and ON ask for if it is not boolean."""

Analyze = Callable[[str, Schema, Span | None], Type]


def lower_query(
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    columns: tuple[str, ...] = (),
) -> Plan:
    """The plan of a query; `relations` are the tables and views it may read, by lower-case name.

    `analyze` gives the type of a scalar that our own rules do not know.
    """
    whole = Span(text, 0, len(text))
    lowered = Lowering(text, relations, analyze).query(desugared(parse_query(text)))
    return _named(renamed(lowered, columns, whole) if columns else lowered, text)


def lower_tree(
    tree: exp.Expr, text: str, relations: Mapping[str, Source], analyze: Analyze
) -> Plan:
    """The plan of a parsed query; `text` is where its places are."""
    return _named(Lowering(text, relations, analyze).query(desugared(tree)), text)


def _named(plan: Plan, text: str) -> Plan:
    """The plan, when its columns have usable names."""
    for name in columns_of(plan):
        shown, unusable = shown_name(name), unusable_name(name)
        if unusable:
            raise UserError(
                "Q011",
                unusable if shown == name else f"two columns are called {shown}",
                span=Span(text, 0, len(text)),
                remedy="give one of them another name with AS",
            )
    return plan


@dataclass(frozen=True, slots=True)
class Lowering:
    """What a query can see: relations, the names WITH gives, and the query around it."""

    text: str
    relations: Mapping[str, Source]
    analyze: Analyze
    ctes: Mapping[str, Plan] = field(default_factory=dict)
    bodies: Mapping[str, exp.Expr] = field(default_factory=dict)
    """The queries behind `ctes`."""
    domain: Domain | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def query(self, tree: exp.Expr) -> Plan:
        """Any query: with CTEs, in parentheses, a set operation, VALUES or a SELECT.

        The columns of the domain, if there is one, come first.
        """
        inner = self._with_ctes(tree)
        match tree:
            case exp.Subquery():
                refuse_clauses(tree, self.text)
                return inner.cut(inner.query(tree.this), tree)
            case exp.Select():
                return Select(inner, tree).lowered()
            case exp.Values():
                made = inner.carrying(lower_values(tree, self.text, self.type_))
                return inner.cut(made, tree)
            case exp.SetOperation():
                refuse_clauses(tree, self.text)
                left, right = inner.query(tree.left), inner.query(tree.right)
                made = set_operation(tree, left, right, self.text, self.type_, len(inner.carried))
                return inner.cut(made, tree)
            case _:
                raise UserError(
                    "Q003",
                    "this is not a query",
                    span=span_of(tree, self.text) or Span(self.text, 0, len(self.text)),
                    remedy="write a SELECT",
                )

    def _with_ctes(self, tree: exp.Expr) -> Lowering:
        clause = tree.args.get("with_")
        if clause is None:
            return self
        inner, found = self, circles(clause) if clause.args.get("recursive") else {}
        for at, cte in enumerate(clause.expressions):
            if names := found.get(cte.alias.lower()):
                if cte.alias.lower() not in inner.ctes:
                    made = lower_circle(names, clause, inner.seeing, self.text)
                    inner = inner.seeing(made)
                continue
            given = tuple(column.name for column in cte.args["alias"].columns)
            plan = replace(inner, domain=None).query(cte.this) if given else inner.item(cte.this)
            plan = renamed(plan, given, span_of(cte, self.text)) if given else plan
            if cte.alias.lower() in (each.alias.lower() for each in clause.expressions[:at]):
                raise named_twice(cte, "WITH", self.text, cte.alias)
            name = cte.alias.lower()
            bodies = {**inner.bodies, name: cte.this}
            inner = replace(inner, ctes={**inner.ctes, name: plan}, bodies=bodies)
        return inner

    def seeing(self, more: Mapping[str, Plan]) -> Lowering:
        """The same with more names given by WITH."""
        return replace(self, ctes={**self.ctes, **more})

    def number(self) -> int:
        """A number not given before, the same ones for the same query."""
        return next(self.numbers)

    def carrying(self, plan: Plan) -> Plan:
        """The rows once for each value of the domain."""
        return plan if self.domain is None else join(self.domain.leaf, plan)

    def cut(self, plan: Plan, tree: exp.Expr) -> Plan:
        """ORDER BY, LIMIT and OFFSET over the columns of a result."""
        limit, offset = limits(tree, self.text)
        if limit is None and not offset:
            return plan
        shown = columns_of(plan)[len(self.carried) :]
        items = ordered(order_clause(tree, self.text), shown, lambda _: False)
        order = tuple(order_by(node, shown, self.text) for node in items)
        return first_rows(plan, self.carried, order, limit, offset)

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of the domain."""
        return () if self.domain is None else columns_of(self.domain.leaf)

    def inside(self, domain: Domain | None, tree: exp.Expr) -> Plan:
        """The plan of a subquery in an expression, the columns of its domain first."""
        return replace(self, domain=domain).query(tree)

    def derived(self, tree: exp.Expr) -> Plan:
        """The plan of a query that sees nothing of what is around it."""
        return replace(self, domain=None).query(tree)

    def item(self, tree: exp.Expr) -> Plan:
        """The plan of a subquery in FROM or WITH.

        A condition with IN that it selects has a column beside it for NOT of it.
        """
        apart = replace(self, domain=None)
        fewer = any(tree.args.get(part) for part in ("distinct", "limit", "offset"))
        if not isinstance(tree, exp.Select) or fewer:
            return apart.query(tree)
        return Select(apart._with_ctes(tree), tree).lowered(opposites=True)

    def body(self, node: exp.Expr) -> exp.Expr | None:
        """The query that WITH gives the name of a table, None for other tables."""
        return self.bodies.get(node.name.lower()) if not node.args.get("db") else None

    def unsure_columns(self, tree: exp.Expr) -> frozenset[int]:
        """The places of columns of a query that hold IN (subquery), without NOT of it beside them.

        Where rows are counted as one or left out, what NOT IN would keep cannot be told from a
        false IN.
        """
        match tree:
            case exp.Subquery():
                return self.unsure_columns(tree.this)
            case exp.SetOperation():
                return self.unsure_columns(tree.left) | self.unsure_columns(tree.right)
            case exp.Select():
                through = self._unsure_names(tree)
                return frozenset(
                    at + further
                    for at, node in enumerate(tree.expressions)
                    for further in _places(node, through)
                )
            case _:
                return frozenset()

    def _unsure_names(self, tree: exp.Select) -> frozenset[str]:
        """The names in lower case of such columns of what a query reads; a star is any name."""
        start, joins = tree.args.get("from_"), tree.args.get("joins") or ()
        found: set[str] = set()
        for item in (*([start.this] if start else ()), *(each.this for each in joins)):
            body = item.this if isinstance(item, exp.Subquery) else self.body(item)
            if not isinstance(body, exp.Query) or body is tree:
                continue
            given = item.args["alias"].columns if item.alias else ()
            named = [each.name for each in given] or body.named_selects
            found.update(named[at] for at in self.unsure_columns(body) if at < len(named))
        return frozenset(name.lower() for name in found)

    def over(self, plan: Plan, tree: exp.Expr) -> Plan:
        """The plan of a query that was made of the text, over the rows of `plan`."""
        return replace(self, domain=None, ctes={ROWS: plan}).query(desugared(tree))

    def relation(self, node: exp.Table) -> Plan:
        """The plan of a named relation."""
        name = node.name.lower()
        if not node.args.get("db"):
            if name in self.ctes:
                return self.ctes[name]
            if name in self.relations:
                return self.relations[name]
        known = sorted(source.name for source in self.relations.values())
        near = did_you_mean(node.name, (*known, *self.ctes))
        raise UserError(
            "Q006",
            f"there is no table or view {node.sql(dialect='spark').split(' AS ')[0]}",
            span=span_of(node.this, self.text),
            remedy=f"{near}there are: {', '.join(known)}" if known else "create it first",
        )

    def condition(self, tree: exp.Expr, plan: Plan, scope: Scope, clause: str) -> str:
        """A boolean condition over the rows of `plan`."""
        resolved = resolve(push_not(tree, scope.opposite), scope, None, scope.paired)
        must_be_plain(resolved, clause, self.text)
        for node in resolved.find_all(exp.Column):
            if node.name not in columns_of(plan):
                joins = "a RIGHT, FULL or parenthesised join"
                name = f"{clause} of {joins} that reads the query around its subquery"
                raise refused(name, node, self.text, "move the condition to WHERE")
        return self.boolean(resolved, schema_of(plan), clause)

    def boolean(self, tree: exp.Expr, schema: Schema, clause: str) -> str:
        """A resolved expression as a condition."""
        text = scalar.text(tree)
        found = self.type_(text, schema, tree)
        if clause in _CAST and found not in ("boolean", "void"):
            text = scalar.text(exp.cast(tree, "boolean"))
            found = self.type_(text, schema, tree)
        if found != "boolean" and clause not in _CAST:
            raise UserError(
                "Q013",
                f"the condition after {clause} is {found}, not boolean",
                span=span_of(tree, self.text),
                remedy="compare it with something",
            )
        return text

    def type_(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        """The type of a scalar, by our own rules or the engine's."""
        known = type_of(text, schema)
        if known is not None:
            return known
        refuse_unknown_fields(text, schema, span_of(node, self.text))
        return self.analyze(text, schema, span_of(node, self.text))


def _places(node: exp.Expr, through: frozenset[str]) -> Iterable[int]:
    """Where a column of the SELECT list has an IN, counted from its own place.

    Which columns a star stands for is not known here: it may be any.
    """
    if node.is_star:
        return range(MOST_COLUMNS) if through else ()
    read = {column.name.lower() for column in node.unalias().find_all(exp.Column)}
    is_unsure = has_in(node.unalias()) or read & through or (read and "*" in through)
    return (0,) if is_unsure else ()
