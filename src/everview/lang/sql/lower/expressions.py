"""The expressions of one SELECT: names resolved, and a column in place of every subquery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Literal

from sqlglot import exp
from sqlglot.helper import ensure_list

from everview.errors import UserError
from everview.expr import scalar
from everview.lang.sql.bind.refuse import must_be_plain
from everview.lang.sql.bind.resolve import SelectList, resolve
from everview.lang.sql.bind.scope import Scope, negated_name
from everview.lang.sql.lower import subqueries, subquery_joins
from everview.lang.sql.lower.collections import (
    ELEMENT,
    FoundCollection,
    Labels,
    is_constant,
    is_linear,
    label_columns,
    may_be_shredded,
)
from everview.lang.sql.lower.conditions import as_boolean, lower_condition
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.domain import Translate
from everview.lang.sql.lower.negation import push_not
from everview.lang.sql.lower.subqueries import (
    ComputedSubquery,
    Marked,
    mark,
    must_have_columns,
    single_row,
    without_needless_limit,
)
from everview.plan.build import columns_of, filter_
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


class SelectExpressions:
    """The expressions of the clauses of one SELECT, over the rows that there are so far.

    `wanted` is the SELECT list, `later` the expressions of QUALIFY, ORDER BY and WINDOW: all are
    rewritten together when rows are grouped and windows computed. `pending` are the subqueries in
    them, and `over` rewrites the left side of such a subquery over groups, once there are groups.
    """

    def __init__(self, context: LoweringContext, tree: exp.Select) -> None:
        self.context = context
        self.tree = without_needless_limit(tree)
        self.text = context.text
        self.scope = Scope(context.text, context.domain)
        self.pending: dict[str, Marked] = {}
        self.wanted: SelectList = []
        self.later: dict[str, exp.Expr] = {}
        self.over: Callable[[exp.Expr], exp.Expr] = lambda tree: tree
        self.labels: dict[int, Labels] = {}
        """The columns of the SELECT list that have labels in their place, and these."""

    def negations(self) -> dict[str, exp.Expr]:
        """NOT of each condition with IN in the SELECT list, by its place."""
        negations = {}
        for at, (_, tree) in enumerate(self.wanted):
            negated = exp.Not(this=exp.Paren(this=tree.copy()))
            with suppress(UserError):  # one of its columns has no negation
                pushed = push_not(negated, self._negation_of)
                if pushed != negated:
                    negations[f"{NOT}{at}"] = pushed
        return negations

    def rewrite(self, change: Callable[[exp.Expr], exp.Expr]) -> None:
        """Apply a change to all expressions, when the rows under them become others."""
        self.wanted = [(name, change(tree)) for name, tree in self.wanted]
        self.later = {name: change(tree) for name, tree in self.later.items()}

    def trees(self) -> list[exp.Expr]:
        """All expressions that are rewritten together."""
        return [*(tree for _, tree in self.wanted), *self.later.values()]

    def operands(
        self, trees: list[exp.Expr] | None = None, present: Collection[str] = ()
    ) -> list[exp.Expr]:
        """The expressions, and the left sides of their subqueries that are not computed yet."""
        operands = self.trees() if trees is None else list(trees)
        for tree in operands:
            for column in tree.find_all(exp.Column):
                if column.name in self.pending and column.name not in present:
                    operands += map(self.over, self.pending[column.name].left)
        return operands

    def where(self, plan: Plan, tree: exp.Expr) -> Plan:
        """WHERE: plain conditions first, so that subqueries are joined with fewer rows."""
        with_subqueries: list[exp.Expr] = []
        for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
            if part.find(exp.Query):
                with_subqueries.append(part)
            else:
                plan = filter_(plan, lower_condition(self.context, part, plan, self.scope, "WHERE"))
        for part in with_subqueries:
            for each in _conjuncts(self.condition(self.resolve(part))):
                plan = self._where_subquery(plan, each)
        return plan

    def _where_subquery(self, plan: Plan, resolved: exp.Expr) -> Plan:
        """A condition with subqueries; the common forms are semi and anti joins."""
        for each in self.operands([resolved]):
            must_be_plain(each, "WHERE", self.text)
        negated = isinstance(resolved, exp.Not)
        alone = self.pending.get((_bare(resolved.this) if negated else resolved).name)
        kind = (
            None
            if alone is None
            else (_AS_NEGATED_FILTER if negated else _AS_FILTER).get(alone.kind)
        )
        if alone is None or kind is None:
            plan = self.attached(plan, [resolved], here)
            return filter_(plan, as_boolean(self.context, resolved, schema_of(plan), "WHERE"))
        plan = self.attached(plan, list(alone.left), here)
        subquery = self._compute(plan, alone, here)
        match kind:
            case "exists":
                return subquery_joins.keep_existing(plan, subquery)
            case "not exists":
                return subquery_joins.drop_existing(plan, subquery)
            case "in":
                return subquery_joins.keep_in(
                    self.context, plan, subquery, self._left(alone, subquery)
                )
            case "not in":
                return subquery_joins.keep_not_in(
                    self.context, plan, subquery, self._left(alone, subquery)
                )

    def _left(self, marked: Marked, subquery: ComputedSubquery) -> tuple[str, ...]:
        """The left side of IN or of a comparison, over the rows that there are."""
        must_have_columns(marked, subquery, self.text)
        left = [self.over(tree) for tree in marked.left]
        for tree in left:
            must_be_plain(tree, "IN (subquery)", self.text)
        return tuple(map(scalar.text, left))

    def _compute(self, plan: Plan, marked: Marked, translate: Translate) -> ComputedSubquery:
        return subqueries.compute(self.context, marked.query, plan, self.scope, translate)

    def resolve(self, tree: exp.Expr, aliases: dict[str, exp.Expr] | None = None) -> exp.Expr:
        """Names resolved, with a column in the place of every subquery."""
        return self.marked(tree, lambda each: resolve(each, self.scope, aliases, self.given))

    @property
    def given(self) -> frozenset[str]:
        """The plan columns that stand in expressions before names are resolved."""
        return frozenset((*self.pending, *self.scope.negation_pairs))

    def marked(self, tree: exp.Expr, resolved: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """An expression with a column in the place of every subquery, its names `resolved`."""

        def marked(part: exp.Expr) -> exp.Expr:
            with_columns = mark(part, self.pending, self.context, marked)
            return resolved(push_not(with_columns, self._merged_negation_of))

        return marked(tree)

    def _negation_of(self, node: exp.Expr) -> exp.Expr | None:
        """NOT IN where a column stands for IN, and the other way round."""
        if isinstance(node, exp.Column) and node.name in self.pending:
            return subqueries.negation_of(node, self.pending, self.context)
        return self.scope.negation_of(node)

    def _merged_negation_of(self, node: exp.Expr) -> exp.Expr | None:
        """The same in the SELECT list.

        Spark merges the one subquery in FROM into the query if its columns are used once each.
        Then NOT is pushed into the condition; otherwise the column is a value, negated as such.
        """
        marked = isinstance(node, exp.Column) and node.name in self.pending
        return self._negation_of(node) if marked or self._used_once() else None

    def _used_once(self) -> bool:
        parts = ("expressions", "having", "qualify", "windows", "order")
        trees = [each for part in parts for each in _listed(self.tree.args.get(part))]
        shown = {each.unalias() for each in self.tree.expressions}
        group = self.tree.args.get("group")
        trees += [key for key in (group.expressions if group else ()) if key not in shown]
        if not self.scope.negations or len(self.scope.items) != 1:
            return False
        names = Counter(n.name.lower() for tree in trees for n in tree.find_all(exp.Column))
        beside = (shown for shown, plan in self.scope.items[0].columns if self._has_negation(plan))
        starred = any(tree.is_star for tree in self.tree.expressions)
        return not starred and all(names[shown.lower()] <= 1 for shown in beside)

    def _has_negation(self, plan_column: str) -> bool:
        return negated_name(plan_column) in self.scope.negations

    def condition(self, tree: exp.Expr) -> exp.Expr:
        """A resolved condition with NOT pushed down; aliases in it are expanded already."""
        return push_not(tree, self._negation_of)

    def selected(self, plan: Plan, translate: Translate) -> Plan:
        """The plan with a column for every subquery, but those whose rows are kept apart."""
        if may_be_shredded(self.tree, self.context.shredding):
            for at, (_, tree) in enumerate(self.wanted):
                marked = self.pending.get(tree.name) if isinstance(tree, exp.Column) else None
                if (
                    marked is not None
                    and marked.kind == "array"
                    and tree.name not in columns_of(plan)
                ):
                    self._shred(at, marked, plan, translate)
        trees = [tree for at, (_, tree) in enumerate(self.wanted) if at not in self.labels]
        return self.attached(plan, [*trees, *self.later.values()], translate)

    def path_below(self, at: int) -> str:
        """The path of the collection in a column of the SELECT list."""
        shredding = self.context.shredding
        assert shredding is not None
        alone = bool(shredding.path) and len(self.wanted) == 1
        return shredding.below(ELEMENT if alone else self.wanted[at][0])

    def _shred(self, at: int, marked: Marked, plan: Plan, translate: Translate) -> None:
        """Keep a collection apart, if anything can change it."""
        context, path = self.context, self.path_below(at)
        shredding = context.shredding
        assert shredding is not None
        assert shredding.path is not None
        domain = subqueries.domain_read(context, marked.query, plan, self.scope, translate)
        rows = context.elements(domain if domain.offered else None, marked.query, path)
        below = any(each.startswith(f"{path}.") for each in shredding.found)
        if shredding.mode == "auto" and is_constant(rows) and not below:
            return
        leaf = domain.leaf if domain.offered else None
        labels = label_columns(path, () if leaf is None else leaf.schema)
        direct = is_linear(plan) and not self.tree.args.get("qualify")
        support = domain.values(plan) if direct and not shredding.path else None
        shredding.found[path] = FoundCollection(
            path, shredding.path, labels, rows, leaf, labels, support
        )
        named = {domain.named(column): column for column in domain.offered}
        self.labels[at] = Labels(path, tuple((named[own], column) for own, column in labels))

    def attached(self, plan: Plan, trees: list[exp.Expr], translate: Translate) -> Plan:
        """The plan with a column for every subquery in the expressions."""
        present = set(columns_of(plan))
        operands = self.operands(trees, present)
        named = {node.name for tree in operands for node in tree.find_all(exp.Column)}
        for name in [n for n in self.pending if n in named and n not in present]:
            marked = self.pending[name]
            subquery = self._compute(plan, marked, translate)
            match marked.kind:
                case "exists":
                    plan = subquery_joins.with_exists(plan, subquery, name)
                case "in" | "not in" if not subquery.pairs and _is_null(marked.left):
                    if_empty = marked.kind == "not in"
                    plan = subquery_joins.with_null_in(plan, subquery, name, if_empty=if_empty)
                case "in" | "not in":
                    left = self._left(marked, subquery)
                    is_in = marked.kind == "in"
                    with_flag = subquery_joins.with_in if is_in else subquery_joins.with_not_in
                    plan = with_flag(self.context, plan, subquery, left, name)
                case "<>":
                    left = self._left(marked, subquery)
                    plan = subquery_joins.with_unequal(self.context, plan, subquery, left, name)
                case ">" | ">=" | "<" | "<=" | "=":
                    (operand,) = self._left(marked, subquery)
                    plan = subquery_joins.with_all(plan, subquery, operand, marked.kind, name)
                case "array":
                    if self.context.shredding is not None:
                        self.context.shredding.must_allow_inline(marked.node, self.text)
                    plan = subquery_joins.with_array(plan, subquery, name)
                case "scalar":
                    must_have_columns(marked, subquery, self.text)
                    one = single_row(marked.query)
                    plan = subquery_joins.with_scalar(plan, subquery, name, one_row=one)
        return plan


Filtering = Literal["exists", "not exists", "in", "not in"]
_AS_FILTER: dict[subqueries.Kind, Filtering] = {
    "exists": "exists",
    "in": "in",
    "not in": "not in",
    "<>": "not in",
}
"""Subqueries that may be a whole condition: then they are semi or anti joins."""
_AS_NEGATED_FILTER: dict[subqueries.Kind, Filtering] = {"exists": "not exists", "<>": "in"}
"""The same for a condition that is NOT of a subquery."""
NOT = "!"
"""Before the position of a column of the SELECT list whose negation is in `later`."""


def here(column: str) -> str | None:
    """Before grouping, a column of the scope is itself."""
    return column


def _is_null(operands: tuple[exp.Expr, ...]) -> bool:
    """Whether the left side is one NULL, which its text alone shows."""
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
