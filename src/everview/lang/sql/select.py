"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT, in that order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql import answers, subqueries
from everview.lang.sql.aggregates import Grouping, aggregates_in, must_be_plain
from everview.lang.sql.from_clause import lower_from
from everview.lang.sql.generators import in_projections, lower_projections
from everview.lang.sql.grouping import add_aggregate, group_keys, grouped, single_row
from everview.lang.sql.grouping_sets import add_mark
from everview.lang.sql.limits import limits, ordered, placed, shown_column, unlimited
from everview.lang.sql.naming import output_name
from everview.lang.sql.nested import refuse_maps
from everview.lang.sql.place import span_of
from everview.lang.sql.refuse import refuse_clauses, refused
from everview.lang.sql.resolve import resolve, resolve_having
from everview.lang.sql.scope import Scope, named_twice, unlike
from everview.lang.sql.sessions import with_sessions
from everview.lang.sql.stars import is_star, selected_by_star, with_stars
from everview.lang.sql.subqueries import Inner, Marked, mark
from everview.lang.sql.time_windows import with_time_window
from everview.lang.sql.windows import Windows, first_rows
from everview.plan import scalar
from everview.plan.build import columns_of, distinct, filter_, identity, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of
from everview.plan.types import Column, Schema, storable_type

if TYPE_CHECKING:
    from everview.lang.sql.lower import Lowering

Wanted = list[tuple[str, exp.Expr]]
Translate = Callable[[str], str | None]


class Select:
    """A SELECT on its way to a plan.

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

    def lowered(self) -> Plan:
        """The plan; the columns of the domain, if there is one, come first."""
        refuse_clauses(self.tree, self.text)
        if in_projections(self.tree):
            return lower_projections(
                self.lower,
                self.tree,
                len(self.lower.carried),
                lambda tree: Select(self.lower, tree).lowered(),
            )
        plan = lower_from(self.lower, self.tree, self.scope)
        plan, self.tree = with_time_window(self.lower, plan, self.tree, self.scope)
        if where := self.tree.args.get("where"):
            plan = self._where(plan, where.this)
        self.wanted = self._projections(schema_of(plan))
        self.later = self._later()
        having = self.tree.args.get("having")
        if self.tree.args.get("group") or having or any(map(aggregates_in, self._operands())):
            plan = self._grouped(plan, having)
        else:
            plan = self._attached(plan, self._trees(), _here)
        plan = self._windowed(plan)
        if not self.tree.args.get("distinct"):
            plan = self._first_rows(plan)
        plan = self._selected(plan)
        if (quantifier := self.tree.args.get("distinct")) is not None:
            if quantifier.args.get("on"):
                raise refused("DISTINCT ON", quantifier, self.text, "use GROUP BY")
            refuse_maps(schema_of(plan), "DISTINCT", self.tree, self.text)
            plan = self.lower.cut(distinct(plan), self.tree)
        return plan

    def _selected(self, plan: Plan) -> Plan:
        """The columns of the domain, and what the SELECT list makes of the rows."""
        schema = schema_of(plan)
        carried = tuple(o for o in identity(schema) if o.name in self.lower.carried)
        names = unlike(name for name, _ in self.wanted)
        trees = (tree for _, tree in self.wanted)
        outputs = (self._output(n, tree, schema) for n, tree in zip(names, trees, strict=True))
        return map_(plan, (*carried, *outputs))

    def _trees(self) -> list[exp.Expr]:
        return [*(tree for _, tree in self.wanted), *self.later.values()]

    def _operands(
        self, trees: list[exp.Expr] | None = None, present: Collection[str] = ()
    ) -> list[exp.Expr]:
        """The expressions, and what the subqueries in them look for that are not there yet."""
        found = self._trees() if trees is None else list(trees)
        for tree in found:
            for column in tree.find_all(exp.Column):
                if column.name in self.pending and column.name not in present:
                    found += map(self.over, self.pending[column.name].left)
        return found

    def _rewrite(self, change: Callable[[exp.Expr], exp.Expr]) -> None:
        """All expressions in terms of the rows there are now."""
        self.wanted = [(name, change(tree)) for name, tree in self.wanted]
        self.later = {name: change(tree) for name, tree in self.later.items()}

    def _later(self) -> dict[str, exp.Expr]:
        """What QUALIFY, ORDER BY and WINDOW say, by what it is for."""
        aliases = dict(reversed(self.wanted))
        found: dict[str, exp.Expr] = {}
        if qualify := self.tree.args.get("qualify"):
            found[_QUALIFY] = self._resolve(qualify.this, aliases)
        cut = limits(self.tree, self.text) != (None, 0)
        if cut and not self.tree.args.get("distinct"):
            for place, node in enumerate(ordered(self.tree, self.text)):
                found[f"{_ORDER}{place}"] = self._order_key(node.this, aliases)
        for window in self.tree.args.get("windows") or ():
            name = f"{_WINDOW}{window.this.name.lower()}"
            if name in found:
                raise named_twice(window.this, "WINDOW", self.text)
            found[name] = self._resolve(window)
        return found

    def _order_key(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
        """What a row is placed by: a column of the SELECT list, or an expression of its own."""
        names = tuple(name for name, _ in self.wanted)
        shown = shown_column(node, names, self.text)
        if isinstance(node, exp.Literal) and shown is not None:
            return self.wanted[int(node.name) - 1][1]
        return aliases[shown] if shown is not None else self._resolve(node, aliases)

    def _windowed(self, plan: Plan) -> Plan:
        """Window functions, and QUALIFY, which speaks of them."""
        named = {
            name.removeprefix(_WINDOW): tree
            for name, tree in self.later.items()
            if name.startswith(_WINDOW)
        }
        self.later = {name: tree for name, tree in self.later.items() if name[:1] != _WINDOW}
        windows = Windows(self.lower, plan, named)
        self._rewrite(windows.replace)
        plan = windows.computed()
        if (condition := self.later.get(_QUALIFY)) is not None:
            plan = filter_(plan, self.lower.boolean(condition, schema_of(plan), "QUALIFY"))
        return plan

    def _first_rows(self, plan: Plan) -> Plan:
        """ORDER BY with LIMIT or OFFSET, over what the SELECT list reads."""
        limit, offset = limits(self.tree, self.text)
        if limit is None and not offset:
            return plan
        extra: list[Output] = []
        order = []
        for place, node in enumerate(ordered(self.tree, self.text)):
            text = scalar.text(self.later[f"{_ORDER}{place}"])
            name = scalar.as_column(text)
            if name is None:
                name = f"order {self.lower.number()}"
                extra.append(Output(name, self.lower.type_(text, schema_of(plan), node), text))
            type_ = self.lower.type_(text, schema_of(plan), node)
            refuse_maps((Column(output_name(node.this), type_),), "ORDER BY", node, self.text)
            order.append(placed(node, name))
        columns = columns_of(plan)
        plan = map_(plan, (*identity(schema_of(plan)), *extra))
        return project(first_rows(plan, self.lower.carried, tuple(order), limit, offset), columns)

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
        resolved = self._resolve(tree)
        for each in self._operands([resolved]):
            must_be_plain(each, "WHERE", self.text)
        negated = isinstance(resolved, exp.Not)
        alone = self.pending.get((_bare(resolved.this) if negated else resolved).name)
        if alone is None or alone.kind not in _ASKING or (negated and alone.kind != "exists"):
            plan = self._attached(plan, [resolved], _here)
            return filter_(plan, self.lower.boolean(resolved, schema_of(plan), "WHERE"))
        plan = self._attached(plan, list(alone.left), _here)
        inner = self._compute(plan, alone, _here)
        match alone.kind:
            case "exists":
                keep = answers.drop_existing if negated else answers.keep_existing
                return keep(plan, inner)
            case "in":
                return answers.keep_in(self.lower, plan, inner, self._left(alone, inner))
            case _:
                return answers.keep_not_in(self.lower, plan, inner, self._left(alone, inner))

    def _left(self, marked: Marked, inner: Inner) -> tuple[str, ...]:
        """The operands of IN over the rows that are there."""
        if len(marked.left) != len(inner.outputs):
            word = "IN" if marked.kind in _ASKING else f"{marked.kind} ALL"
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

    def _resolve(self, tree: exp.Expr, aliases: dict[str, exp.Expr] | None = None) -> exp.Expr:
        """Names resolved, with a column in the place of every subquery."""
        return self._marked(tree, lambda each: resolve(each, self.scope, aliases, self.pending))

    def _marked(self, tree: exp.Expr, resolved: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        def marked(part: exp.Expr) -> exp.Expr:
            return resolved(mark(part, self.pending, self.lower, marked))

        return marked(tree)

    def _attached(self, plan: Plan, trees: list[exp.Expr], translate: Translate) -> Plan:
        """The plan with a column for every subquery in the expressions."""
        present = set(columns_of(plan))
        operands = self._operands(trees, present)
        named = {node.name for tree in operands for node in tree.find_all(exp.Column)}
        for name in [n for n in self.pending if n in named and n not in present]:
            marked = self.pending[name]
            inner = self._compute(plan, marked, translate)
            match marked.kind:
                case "exists":
                    plan = answers.attach_exists(plan, inner, name)
                case "in" | "not in":
                    left = self._left(marked, inner)
                    told = marked.kind == "in"
                    attach = answers.attach_in if told else answers.attach_not_in
                    plan = attach(self.lower, plan, inner, left, name)
                case ">" | ">=" | "<" | "<=" | "=":
                    (operand,) = self._left(marked, inner)
                    plan = answers.attach_all(plan, inner, operand, marked.kind, name)
                case "scalar":
                    self._must_be_one_column(marked, inner)
                    one = single_row(marked.query)
                    plan = answers.attach_scalar(plan, inner, name, one_row=one)
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

    def _projections(self, schema: Schema) -> Wanted:
        """The SELECT list with stars expanded: output names and resolved expressions."""
        found: Wanted = []
        for node in self.tree.expressions:
            if is_star(node):
                found += selected_by_star(node, self.scope, self.lower, schema)
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            written = with_stars(inner.copy(), self.scope, self.lower, schema)
            found.append((output_name(node), self._resolve(written, dict(reversed(found)))))
        return found

    def _grouped(self, plan: Plan, having: exp.Expr | None) -> Plan:
        """Group the rows; all other expressions then speak of groups."""
        grouping = Grouping(self.text)
        keys, sets = group_keys(self.tree, self.scope, self.wanted, self._resolve, self.text)
        for node in keys:
            plan = self._attached(plan, [node], _here)
            text = scalar.text(node)
            type_ = self.lower.type_(text, schema_of(plan), node)
            refuse_maps((Column(output_name(node), type_),), "GROUP BY", node, self.text)
            if type_ == "void" and sets:
                raise UserError(
                    "Q014",
                    "NULL as a key of GROUPING SETS, ROLLUP or CUBE has no type",
                    span=span_of(node, self.text) or Span(self.text, 0, len(self.text)),
                    remedy="leave it out, or CAST NULL to a type",
                )
            grouping.keys[text] = grouping.input(text, type_, "key")
        for key in (key for each in sets for key in each):
            if scalar.text(key) not in grouping.keys:
                raise UserError(
                    "Q009",
                    "GROUPING SETS has a key that is not before it in GROUP BY",
                    span=span_of(key, self.text),
                    remedy="list it in GROUP BY too, or leave out the list before GROUPING SETS",
                )
        plan = with_sessions(self.lower, plan, keys, sets)
        grouping.sets = tuple(tuple(grouping.keys[scalar.text(k)] for k in each) for each in sets)
        if having is not None:
            self.later[_HAVING] = self._marked(
                having.this,
                lambda each: resolve_having(each, self.scope, self.wanted, grouping, self.pending),
            )
            for window in self.later[_HAVING].find_all(exp.Window):
                must_be_plain(window, "HAVING", self.text)
        grouping.free = frozenset((*self.pending, *self.lower.carried))
        calls = [node for tree in self._operands() for node in aggregates_in(tree)]
        plan = self._attached(plan, list(calls), _here)
        for call in calls:
            if isinstance(call, exp.Grouping | exp.GroupingId):
                add_mark(call, grouping, self.text)
            else:
                add_aggregate(self.lower, call, grouping, schema_of(plan))
        made = grouped(self.lower, plan, grouping)

        def translate(column: str) -> str | None:
            if column in self.lower.carried:
                return column
            return grouping.keys.get(scalar.column(column))

        self._rewrite(grouping.over_groups)
        self.over = grouping.over_groups
        made = self._attached(made, self._trees(), translate)
        if (kept := self.later.pop(_HAVING, None)) is not None:
            made = filter_(made, self.lower.boolean(kept, schema_of(made), "HAVING"))
        return made

    def _output(self, name: str, tree: exp.Expr, schema: Schema) -> Output:
        text = scalar.text(tree)
        type_ = self.lower.type_(text, schema, tree)
        # A subquery may select NULL; a view has to say of which type.
        untyped = type_ == "void"
        if self.lower.domain is None if untyped else storable_type(type_) is None:
            raise UserError(
                "Q014",
                f"the column {name} has a type that cannot be stored yet: {type_}",
                span=span_of(tree, self.text) or Span(self.text, 0, len(self.text)),
                remedy="CAST NULL to a type" if untyped else "CAST it to a plain type",
            )
        return Output(name, type_, text)


_ASKING = ("exists", "in", "not in")
"""Subqueries that a condition may be alone: then they are joins that ask for a partner."""
_QUALIFY, _HAVING, _ORDER, _WINDOW = "?qualify", "?having", "#", "@"


def _here(column: str) -> str | None:
    """Before grouping, a column of the scope is itself."""
    return column


def _bare(tree: exp.Expr) -> exp.Expr:
    """The expression without parentheses around it; those of a subquery belong to it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree
