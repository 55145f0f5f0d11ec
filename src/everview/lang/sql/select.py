"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT, in that order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql import subqueries
from everview.lang.sql.aggregates import Grouping, aggregates_in
from everview.lang.sql.from_clause import lower_from
from everview.lang.sql.grouping import add_aggregate, group_keys, grouped, single_row
from everview.lang.sql.limits import limits, ordered, placed, position
from everview.lang.sql.naming import output_name
from everview.lang.sql.place import span_of
from everview.lang.sql.refuse import refuse_clauses, refused
from everview.lang.sql.resolve import resolve, resolve_having
from everview.lang.sql.scope import Scope, unlike
from everview.lang.sql.subqueries import Inner, Marked, mark
from everview.lang.sql.windows import Windows, first_rows, windows_in
from everview.plan import scalar
from everview.plan.build import columns_of, distinct, filter_, identity, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of
from everview.plan.types import Schema, storable_type

if TYPE_CHECKING:
    from everview.lang.sql.lower import Lowering

Wanted = list[tuple[str, exp.Expr]]
Translate = Callable[[str], str | None]


class Select:
    """A SELECT on its way to a plan."""

    def __init__(self, lower: Lowering, tree: exp.Select) -> None:
        self.lower = lower
        self.tree = tree
        self.text = lower.text
        self.scope = Scope(lower.text, lower.domain)
        self.pending: dict[str, Marked] = {}
        self.over_groups: Callable[[exp.Expr], exp.Expr] | None = None

    def lowered(self) -> Plan:
        """The plan; the columns of the domain, if there is one, come first."""
        refuse_clauses(self.tree, self.text)
        plan = self.lower.carrying(lower_from(self.lower, self.tree, self.scope))
        if where := self.tree.args.get("where"):
            plan = self._where(plan, where.this)
        wanted = self._projections()
        having = self.tree.args.get("having")
        if (
            self.tree.args.get("group")
            or having
            or any(aggregates_in(expression) for _, expression in wanted)
        ):
            plan, wanted = self._grouped(plan, wanted)
        else:
            plan = self._attached(plan, [e for _, e in wanted], lambda column: column)
        plan, wanted = self._windowed(plan, wanted)
        if not self.tree.args.get("distinct"):
            plan = self._first_rows(plan, wanted)
        schema = schema_of(plan)
        carried = tuple(o for o in identity(schema) if o.name in self.lower.carried)
        names = unlike(name for name, _ in wanted)
        trees = (tree for _, tree in wanted)
        outputs = (self._output(n, tree, schema) for n, tree in zip(names, trees, strict=True))
        plan = map_(plan, (*carried, *outputs))
        if (quantifier := self.tree.args.get("distinct")) is not None:
            if quantifier.args.get("on"):
                raise refused("DISTINCT ON", quantifier, self.text, "use GROUP BY")
            plan = self.lower.cut(distinct(plan), self.tree)
        return plan

    def _windowed(self, plan: Plan, wanted: Wanted) -> tuple[Plan, Wanted]:
        """Window functions, and QUALIFY, which speaks of them."""
        qualify = self.tree.args.get("qualify")
        if qualify is None and not any(windows_in(tree) for _, tree in wanted):
            return plan, wanted
        named = {w.this.name.lower(): self._over(w) for w in self.tree.args.get("windows") or ()}
        windows = Windows(self.lower, plan, named)
        over = [(name, windows.replace(tree)) for name, tree in wanted]
        condition = None
        if qualify is not None:
            aliases = dict(reversed(over))
            condition = windows.replace(self._resolve(qualify.this, aliases))
        plan = windows.computed()
        if condition is not None:
            kept = self.lower.boolean(condition, schema_of(plan), "QUALIFY")
            plan = filter_(plan, kept)
        return plan, over

    def _over(self, tree: exp.Expr) -> exp.Expr:
        """A part of a query about the rows there are after grouping."""
        resolved = self._resolve(tree)
        return self.over_groups(resolved) if self.over_groups else resolved

    def _first_rows(self, plan: Plan, wanted: Wanted) -> Plan:
        """ORDER BY with LIMIT or OFFSET, over what the SELECT list reads."""
        limit, offset = limits(self.tree, self.text)
        if limit is None and not offset:
            return plan
        extra: list[Output] = []
        order = []
        for node in ordered(self.tree, self.text):
            text = scalar.text(self._order_key(node, wanted))
            name = scalar.as_column(text)
            if name is None:
                name = f"order {self.lower.number()}"
                extra.append(Output(name, self.lower.type_(text, schema_of(plan), node), text))
            order.append(placed(node, name))
        columns = columns_of(plan)
        plan = map_(plan, (*identity(schema_of(plan)), *extra))
        return project(first_rows(plan, self.lower.carried, tuple(order), limit, offset), columns)

    def _order_key(self, node: exp.Expr, wanted: Wanted) -> exp.Expr:
        """What a row is placed by: a column of the SELECT list, or an expression of its own."""
        names = tuple(name for name, _ in wanted)
        if position(node.this, names, self.text) is not None:
            return wanted[int(node.this.name) - 1][1]
        if isinstance(node.this, exp.Column) and not node.this.table:
            for name, tree in wanted:
                if name.lower() == node.this.name.lower():
                    return tree
        if self.over_groups is not None:
            return self.over_groups(self._resolve(node.this, dict(reversed(wanted))))
        return self._resolve(node.this, dict(reversed(wanted)))

    # Subqueries in expressions

    def _where(self, plan: Plan, tree: exp.Expr) -> Plan:
        """Plain conditions first, so that subqueries are asked for fewer rows."""
        asking: list[exp.Expr] = []
        for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
            if part.find(exp.Query):
                asking.append(part)
            else:
                plan = filter_(plan, self.lower.condition(part, plan, self.scope, "WHERE"))
        for part in asking:
            plan = self._where_subquery(plan, _bare(part))
        return plan

    def _where_subquery(self, plan: Plan, tree: exp.Expr) -> Plan:
        """A condition with subqueries; the common forms are joins that ask for a partner."""
        positive = not isinstance(tree, exp.Not)
        pending: dict[str, Marked] = {}
        marked = mark(tree if positive else _bare(tree.this), pending, self.lower)
        alone = next(iter(pending.values())) if marked.name in pending else None
        if alone is not None and alone.kind in ("exists", "in"):
            return self._asked(plan, alone, positive=positive)
        resolved = self._resolve(tree)
        plan = self._attached(plan, [resolved], lambda column: column)
        return filter_(plan, self.lower.boolean(resolved, schema_of(plan), "WHERE"))

    def _asked(self, plan: Plan, marked: Marked, *, positive: bool) -> Plan:
        inner = self._compute(plan, marked, lambda column: column)
        if marked.kind == "exists":
            if positive:
                return subqueries.keep_existing(plan, inner)
            return subqueries.drop_existing(plan, inner)
        left = self._left(marked, inner, lambda column: column)
        keep = subqueries.keep_in if positive else subqueries.keep_not_in
        return keep(self.lower, plan, inner, left)

    def _left(self, marked: Marked, inner: Inner, translate: Translate) -> tuple[str, ...]:
        """The operands of IN over the rows that are there."""
        if len(marked.left) != len(inner.outputs):
            raise UserError(
                "Q012",
                f"IN compares {len(marked.left)} values with {len(inner.outputs)} columns",
                span=span_of(marked.node, self.text),
                remedy="select as many columns as stand before IN",
            )
        found = []
        for tree in marked.left:
            resolved = resolve(tree, self.scope)
            names = {column.name for column in resolved.find_all(exp.Column)}
            mapping = {name: scalar.column(translate(name) or name) for name in names}
            found.append(scalar.substitute(scalar.text(resolved), mapping))
        return tuple(found)

    def _compute(self, plan: Plan, marked: Marked, translate: Translate) -> Inner:
        return subqueries.compute(self.lower, marked.query, plan, self.scope, translate)

    def _resolve(self, tree: exp.Expr, aliases: dict[str, exp.Expr] | None = None) -> exp.Expr:
        """Names resolved, with a column in the place of every subquery."""
        marked = mark(tree, self.pending, self.lower)
        return resolve(marked, self.scope, aliases, self.pending)

    def _attached(self, plan: Plan, trees: list[exp.Expr], translate: Translate) -> Plan:
        """The plan with a column for every subquery in the expressions."""
        named = {node.name for tree in trees for node in tree.find_all(exp.Column)}
        present = set(columns_of(plan))
        for name in [n for n in self.pending if n in named and n not in present]:
            marked = self.pending[name]
            inner = self._compute(plan, marked, translate)
            match marked.kind:
                case "exists":
                    plan = subqueries.attach_exists(plan, inner, name)
                case "in" | "not in":
                    left = self._left(marked, inner, translate)
                    told = marked.kind == "in"
                    attach = subqueries.attach_in if told else subqueries.attach_not_in
                    plan = attach(self.lower, plan, inner, left, name)
                case "scalar":
                    self._must_be_one_column(marked, inner)
                    one = single_row(marked.query)
                    plan = subqueries.attach_scalar(plan, inner, name, one_row=one)
        return plan

    def _must_be_one_column(self, marked: Marked, inner: Inner) -> None:
        if len(inner.outputs) != 1:
            raise UserError(
                "Q012",
                f"a subquery used as a value selects {len(inner.outputs)} columns",
                span=span_of(marked.node, self.text),
                remedy="select one column",
            )

    # The SELECT list and groups

    def _projections(self) -> Wanted:
        """The SELECT list with stars expanded: output names and resolved expressions."""
        found: Wanted = []
        for node in self.tree.expressions:
            star = node if isinstance(node, exp.Star) else node.this
            if isinstance(star, exp.Star) and isinstance(node, exp.Star | exp.Column):
                if any(star.args.get(part) for part in ("except_", "replace", "rename")):
                    raise refused("* EXCEPT", node, self.text, "list the columns")
                table = node.table if isinstance(node, exp.Column) else None
                pairs = self.scope.star(table or None, node)
                found += [(name, scalar.parse(scalar.column(plan))) for name, plan in pairs]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            found.append((output_name(node), self._resolve(inner, dict(reversed(found)))))
        return found

    def _grouped(self, plan: Plan, wanted: Wanted) -> tuple[Plan, Wanted]:
        """Group the rows; the SELECT list and HAVING then speak of groups."""
        grouping = Grouping(self.text)
        keys = group_keys(self.tree, self.scope, wanted, self._resolve, self.text)
        having = self.tree.args.get("having")
        trees = [e for _, e in wanted]
        for node in keys:
            plan = self._attached(plan, [node], lambda column: column)
            text = scalar.text(node)
            type_ = self.lower.type_(text, schema_of(plan), node)
            grouping.keys[text] = grouping.input(text, type_, "key")
        condition = None
        if having:
            marked = mark(having.this, self.pending, self.lower)
            condition = resolve_having(marked, self.scope, wanted, grouping, self.pending)
            trees.append(condition)
        grouping.free = frozenset((*self.pending, *self.lower.carried))
        calls = [node for tree in trees for node in aggregates_in(tree)]
        plan = self._attached(plan, list(calls), lambda column: column)
        for call in calls:
            add_aggregate(self.lower, call, grouping, schema_of(plan))
        made = grouped(self.lower, plan, grouping)

        def translate(column: str) -> str | None:
            if column in self.lower.carried:
                return column
            return grouping.keys.get(scalar.column(column))

        self.over_groups = grouping.over_groups
        over = [(name, grouping.over_groups(tree)) for name, tree in wanted]
        kept = grouping.over_groups(condition) if condition is not None else None
        asked = [tree for _, tree in over] + ([kept] if kept is not None else [])
        made = self._attached(made, asked, translate)
        if kept is not None:
            made = filter_(made, self.lower.boolean(kept, schema_of(made), "HAVING"))
        return made, over

    def _output(self, name: str, tree: exp.Expr, schema: Schema) -> Output:
        text = scalar.text(tree)
        type_ = self.lower.type_(text, schema, tree)
        if storable_type(type_) is None and type_ != "void":
            raise UserError(
                "Q014",
                f"the column {name} has a type that cannot be stored yet: {type_}",
                span=span_of(tree, self.text) or Span(self.text, 0, len(self.text)),
                remedy="CAST it to a plain type",
            )
        if type_ == "void" and self.lower.domain is None:
            raise UserError(
                "Q014",
                f"the column {name} has a type that cannot be stored yet: {type_}",
                span=span_of(tree, self.text) or Span(self.text, 0, len(self.text)),
                remedy="CAST NULL to a type",
            )
        return Output(name, type_, text)


def _bare(tree: exp.Expr) -> exp.Expr:
    """The expression without parentheses around it; those of a subquery belong to it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree
