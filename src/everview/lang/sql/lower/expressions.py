"""The expressions of one SELECT: names resolved, and the subqueries in them made columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from sqlglot import exp
from sqlglot.helper import ensure_list

from everview.errors import UserError
from everview.expr import scalar
from everview.lang.sql.bind.negation import push_not
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Scope, negated_name
from everview.lang.sql.lower import subqueries, subquery_joins
from everview.lang.sql.lower.aggregates import must_be_plain
from everview.lang.sql.lower.grouping import single_row
from everview.lang.sql.lower.subqueries import Inner, Marked, mark
from everview.lang.sql.parse.order_limit import unlimited
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, filter_
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

if TYPE_CHECKING:
    from everview.lang.sql.lower.query import Lowering

Wanted = list[tuple[str, exp.Expr]]
Translate = Callable[[str], str | None]


class Expressions:
    """What the clauses of a SELECT say, over the rows that there are.

    `wanted` is the SELECT list, `later` what QUALIFY, ORDER BY and WINDOW say: expressions that
    follow the rows through grouping and windows together. `pending` are the subqueries in them,
    and `over` brings an operand of such a subquery to the groups, once there are groups.
    """

    def __init__(self, lower: Lowering, tree: exp.Select) -> None:
        self.lower = lower
        whole = unlimited(tree)
        self.tree = whole if single_row(whole) else tree
        self.text = lower.text
        self.scope = Scope(lower.text, lower.domain)
        self.pending: dict[str, Marked] = {}
        self.wanted: Wanted = []
        self.later: dict[str, exp.Expr] = {}
        self.over: Callable[[exp.Expr], exp.Expr] = lambda tree: tree

    def opposites(self) -> dict[str, exp.Expr]:
        """NOT of each condition with IN in the SELECT list, by its place."""
        found = {}
        for at, (_, tree) in enumerate(self.wanted):
            denied = exp.Not(this=exp.Paren(this=tree.copy()))
            with suppress(UserError):  # the opposite of one of its columns cannot be told
                pushed = push_not(denied, self._opposite)
                if pushed != denied:
                    found[f"{NOT}{at}"] = pushed
        return found

    def trees(self) -> list[exp.Expr]:
        """All expressions that follow the rows."""
        return [*(tree for _, tree in self.wanted), *self.later.values()]

    def operands(
        self, trees: list[exp.Expr] | None = None, present: Collection[str] = ()
    ) -> list[exp.Expr]:
        """The expressions, and what the subqueries in them look for that are not there yet."""
        found = self.trees() if trees is None else list(trees)
        for tree in found:
            for column in tree.find_all(exp.Column):
                if column.name in self.pending and column.name not in present:
                    found += map(self.over, self.pending[column.name].left)
        return found

    def where(self, plan: Plan, tree: exp.Expr) -> Plan:
        """Plain conditions first, so that subqueries are asked for fewer rows."""
        asking: list[exp.Expr] = []
        for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
            if part.find(exp.Query):
                asking.append(part)
            else:
                plan = filter_(plan, self.lower.condition(part, plan, self.scope, "WHERE"))
        for part in asking:
            for each in _conjuncts(self.condition(self.resolve(part))):
                plan = self._where_subquery(plan, each)
        return plan

    def _where_subquery(self, plan: Plan, resolved: exp.Expr) -> Plan:
        """A condition with subqueries; the common forms are joins that ask for a partner."""
        for each in self.operands([resolved]):
            must_be_plain(each, "WHERE", self.text)
        negated = isinstance(resolved, exp.Not)
        alone = self.pending.get((_bare(resolved.this) if negated else resolved).name)
        kind = None if alone is None else (_IF_NOT if negated else _IF).get(alone.kind)
        if alone is None or kind is None:
            plan = self.attached(plan, [resolved], here)
            return filter_(plan, self.lower.boolean(resolved, schema_of(plan), "WHERE"))
        plan = self.attached(plan, list(alone.left), here)
        inner = self._compute(plan, alone, here)
        match kind:
            case "exists":
                return subquery_joins.keep_existing(plan, inner)
            case "not exists":
                return subquery_joins.drop_existing(plan, inner)
            case "in":
                return subquery_joins.keep_in(self.lower, plan, inner, self._left(alone, inner))
            case "not in":
                return subquery_joins.keep_not_in(self.lower, plan, inner, self._left(alone, inner))

    def _left(self, marked: Marked, inner: Inner) -> tuple[str, ...]:
        """The operands of IN over the rows that are there."""
        if len(marked.left) != len(inner.outputs):
            word = "IN" if marked.kind in ("in", "not in") else f"{marked.kind} ALL"
            raise UserError(
                "Q012",
                f"{word} compares {len(marked.left)} values with {len(inner.outputs)} columns",
                span=span_of(marked.node, self.text),
                remedy=f"select as many columns as stand before {word}",
            )
        left = [self.over(tree) for tree in marked.left]
        for tree in left:
            must_be_plain(tree, "IN (subquery)", self.text)
        return tuple(map(scalar.text, left))

    def _compute(self, plan: Plan, marked: Marked, translate: Translate) -> Inner:
        return subqueries.compute(self.lower, marked.query, plan, self.scope, translate)

    def resolve(self, tree: exp.Expr, aliases: dict[str, exp.Expr] | None = None) -> exp.Expr:
        """Names resolved, with a column in the place of every subquery."""
        return self.marked(tree, lambda each: resolve(each, self.scope, aliases, self.given))

    @property
    def given(self) -> frozenset[str]:
        """The plan columns that stand in expressions before names are resolved."""
        return frozenset((*self.pending, *self.scope.paired))

    def marked(self, tree: exp.Expr, resolved: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """An expression with a column in the place of every subquery, its names `resolved`."""

        def marked(part: exp.Expr) -> exp.Expr:
            found = mark(part, self.pending, self.lower, marked)
            return resolved(push_not(found, self._merged_opposite))

        return marked(tree)

    def _opposite(self, node: exp.Expr) -> exp.Expr | None:
        """NOT IN where a column stands for IN, and the other way round."""
        if isinstance(node, exp.Column) and node.name in self.pending:
            return subqueries.opposite(node, self.pending, self.lower)
        return self.scope.opposite(node)

    def _merged_opposite(self, node: exp.Expr) -> exp.Expr | None:
        """The same in the SELECT list.

        Spark reads a column of the one subquery in FROM as what it stands for if it is used once,
        and as a value, of which NOT is the opposite, otherwise.
        """
        marked = isinstance(node, exp.Column) and node.name in self.pending
        return self._opposite(node) if marked or self._used_once() else None

    def _used_once(self) -> bool:
        parts = ("expressions", "having", "qualify", "windows", "order")
        trees = [each for part in parts for each in _listed(self.tree.args.get(part))]
        shown = {each.unalias() for each in self.tree.expressions}
        group = self.tree.args.get("group")
        trees += [key for key in (group.expressions if group else ()) if key not in shown]
        if not self.scope.opposites or len(self.scope.items) != 1:
            return False
        names = Counter(n.name.lower() for tree in trees for n in tree.find_all(exp.Column))
        beside = (shown for shown, plan in self.scope.items[0].columns if self._has_opposite(plan))
        starred = any(tree.is_star for tree in self.tree.expressions)
        return not starred and all(names[shown.lower()] <= 1 for shown in beside)

    def _has_opposite(self, plan_column: str) -> bool:
        return negated_name(plan_column) in self.scope.opposites

    def condition(self, tree: exp.Expr) -> exp.Expr:
        """A resolved condition; an alias in it is read as what it stands for."""
        return push_not(tree, self._opposite)

    def attached(self, plan: Plan, trees: list[exp.Expr], translate: Translate) -> Plan:
        """The plan with a column for every subquery in the expressions."""
        present = set(columns_of(plan))
        operands = self.operands(trees, present)
        named = {node.name for tree in operands for node in tree.find_all(exp.Column)}
        for name in [n for n in self.pending if n in named and n not in present]:
            marked = self.pending[name]
            inner = self._compute(plan, marked, translate)
            match marked.kind:
                case "exists":
                    plan = subquery_joins.attach_exists(plan, inner, name)
                case "in" | "not in" if not inner.pairs and _is_null(marked.left):
                    known = marked.kind == "not in"
                    plan = subquery_joins.attach_null_in(plan, inner, name, if_empty=known)
                case "in" | "not in":
                    left = self._left(marked, inner)
                    told = marked.kind == "in"
                    attach = subquery_joins.attach_in if told else subquery_joins.attach_not_in
                    plan = attach(self.lower, plan, inner, left, name)
                case "<>":
                    left = self._left(marked, inner)
                    plan = subquery_joins.attach_unequal(self.lower, plan, inner, left, name)
                case ">" | ">=" | "<" | "<=" | "=":
                    (operand,) = self._left(marked, inner)
                    plan = subquery_joins.attach_all(plan, inner, operand, marked.kind, name)
                case "scalar":
                    self._must_be_one_column(marked, inner)
                    one = single_row(marked.query)
                    plan = subquery_joins.attach_scalar(plan, inner, name, one_row=one)
        return plan

    def _must_be_one_column(self, marked: Marked, inner: Inner) -> None:
        if len(inner.outputs) != 1:
            raise UserError(
                "Q012",
                f"a subquery used as a value selects {len(inner.outputs)} columns",
                span=span_of(marked.node, self.text),
                remedy="select one column",
            )


Asking = Literal["exists", "not exists", "in", "not in"]
_IF: dict[subqueries.Kind, Asking] = {
    "exists": "exists",
    "in": "in",
    "not in": "not in",
    "<>": "not in",
}
"""Subqueries that a condition may be alone: then they are joins that ask for a partner."""
_IF_NOT: dict[subqueries.Kind, Asking] = {"exists": "not exists", "<>": "in"}
"""The same for a condition that is NOT of a subquery."""
NOT = "!"
"""Before the place of a column of the SELECT list whose opposite is among what is `later`."""


def here(column: str) -> str | None:
    """Before grouping, a column of the scope is itself."""
    return column


def _is_null(operands: tuple[exp.Expr, ...]) -> bool:
    """Whether what is looked for is one NULL, as the text alone tells."""
    (first, *others) = operands
    match first:
        case exp.Null():
            return not others
        case exp.Paren() | exp.Cast() | exp.Neg():
            return not others and _is_null((first.this,))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return not others and (_is_null((first.left,)) or _is_null((first.right,)))
        case _:
            return False


def _listed(value: object) -> list[exp.Expr]:
    """The expressions of a part of a query, which may be one or several."""
    return [each for each in ensure_list(value) if isinstance(each, exp.Expr)]


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, none of them in parentheses."""
    bare = _bare(tree)
    if not isinstance(bare, exp.And):
        return [bare]
    return [*_conjuncts(bare.left), *_conjuncts(bare.right)]


def _bare(tree: exp.Expr) -> exp.Expr:
    """The expression without parentheses around it; those of a subquery belong to it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree
