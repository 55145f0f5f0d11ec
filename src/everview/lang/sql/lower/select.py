"""One SELECT: FROM, WHERE, GROUP BY, HAVING, the SELECT list and DISTINCT, in that order."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Column, Schema, storable_type
from everview.lang.sql.bind.canonical_form import canonical_text
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.nested_types import refuse_maps
from everview.lang.sql.bind.refuse import refuse_clauses, refused
from everview.lang.sql.bind.resolve import resolve_having
from everview.lang.sql.bind.scope import named_twice, negated_name, unlike
from everview.lang.sql.bind.stars import is_star, selected_by_star, with_stars
from everview.lang.sql.lower.aggregates import Grouping, aggregates_in, must_be_plain
from everview.lang.sql.lower.expressions import NOT, Expressions, Wanted, here
from everview.lang.sql.lower.from_clause import lower_from
from everview.lang.sql.lower.generators import in_projections, lower_projections
from everview.lang.sql.lower.grouping import add_aggregate, group_keys, grouped
from everview.lang.sql.lower.grouping_sets import add_mark, several_sets
from everview.lang.sql.lower.session_windows import with_sessions
from everview.lang.sql.lower.time_windows import with_time_window
from everview.lang.sql.lower.windows import Windows, first_rows
from everview.lang.sql.parse.order_limit import limits, order_clause, ordered, placed, shown_column
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, distinct, filter_, identity, map_, project
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


class Select(Expressions):
    """A SELECT on its way to a plan."""

    def lowered(self, *, opposites: bool = False) -> Plan:
        """The plan; the columns of the domain, if there is one, come first.

        With `opposites`, a condition with IN in the SELECT list has NOT of it beside it.
        """
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
            plan = self.where(plan, where.this)
        self.wanted = self._projections(schema_of(plan))
        denied = self.opposites() if opposites else {}
        self.later = {**self._later(), **denied}
        having = self.tree.args.get("having")
        if self.tree.args.get("group") or having or any(map(aggregates_in, self.operands())):
            plan = self._grouped(plan, having)
        else:
            plan = self.attached(plan, self.trees(), here)
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
        outputs = [self._output(n, tree, schema) for n, tree in zip(names, trees, strict=True)]
        for at, name in enumerate(names):
            if (denied := self.later.get(f"{NOT}{at}")) is not None:
                outputs.append(self._output(negated_name(name), denied, schema))
        return map_(plan, (*carried, *outputs))

    def _rewrite(self, change: Callable[[exp.Expr], exp.Expr]) -> None:
        """All expressions in terms of the rows there are now."""
        self.wanted = [(name, change(tree)) for name, tree in self.wanted]
        self.later = {name: change(tree) for name, tree in self.later.items()}

    def _later(self) -> dict[str, exp.Expr]:
        """What QUALIFY, ORDER BY and WINDOW say, by what it is for."""
        aliases = dict(reversed(self.wanted))
        found: dict[str, exp.Expr] = {}
        if qualify := self.tree.args.get("qualify"):
            found[_QUALIFY] = self.condition(self.resolve(qualify.this, aliases))
        cut = limits(self.tree, self.text) != (None, 0)
        if cut and not self.tree.args.get("distinct"):
            for place, node in enumerate(self._order_items()):
                found[f"{_ORDER}{place}"] = self._order_key(node.this, aliases)
        for window in self.tree.args.get("windows") or ():
            name = f"{_WINDOW}{window.this.name.lower()}"
            if name in found:
                raise named_twice(window.this, "WINDOW", self.text)
            found[name] = self.resolve(window)
        return found

    def _order_items(self) -> list[exp.Expr]:
        shown = [name for name, _ in self.wanted]
        return ordered(order_clause(self.tree, self.text), shown, self.scope.has)

    def _order_key(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
        """What a row is placed by: a column of the SELECT list, or an expression of its own."""
        names = tuple(name for name, _ in self.wanted)
        shown = shown_column(node, names, self.text)
        if isinstance(node, exp.Literal) and shown is not None:
            return self.wanted[int(node.name) - 1][1]
        return aliases[shown] if shown is not None else self.resolve(node, aliases)

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
        for place, node in enumerate(self._order_items()):
            text = scalar.text(self.later[f"{_ORDER}{place}"])
            type_ = self.lower.type_(text, schema_of(plan), node)
            if type_ == "void":  # NULL is the same in every row
                continue
            name = scalar.as_column(text)
            if name is None:
                name = f"order {self.lower.number()}"
                extra.append(Output(name, type_, text))
            refuse_maps((Column(output_name(node.this), type_),), "ORDER BY", node, self.text)
            order.append(placed(node, name))
        columns = columns_of(plan)
        plan = map_(plan, (*identity(schema_of(plan)), *extra))
        return project(first_rows(plan, self.lower.carried, tuple(order), limit, offset), columns)

    def _projections(self, schema: Schema) -> Wanted:
        """The SELECT list with stars expanded: output names and resolved expressions."""
        found: Wanted = []
        for node in self.tree.expressions:
            if is_star(node):
                found += selected_by_star(node, self.scope, self.lower, schema)
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            written = with_stars(inner.copy(), self.scope, self.lower, schema)
            found.append((output_name(node), self.resolve(written, dict(reversed(found)))))
        return found

    def _grouped(self, plan: Plan, having: exp.Expr | None) -> Plan:
        """Group the rows; all other expressions then speak of groups."""
        grouping = Grouping(self.text)
        keys, sets = group_keys(self.tree, self.scope, self.wanted, self.resolve, self.text)
        for node in keys:
            plan = self.attached(plan, [node], here)
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
            if grouping.key(node) is None:
                grouping.keys[canonical_text(node)] = grouping.input(text, type_, "key")
        for key in (key for each in sets for key in each):
            if grouping.key(key) is None:
                raise UserError(
                    "Q009",
                    "GROUPING SETS has a key that is not before it in GROUP BY",
                    span=span_of(key, self.text),
                    remedy="list it in GROUP BY too, or leave out the list before GROUPING SETS",
                )
        plan = with_sessions(self.lower, plan, keys, sets)
        grouping.sets = tuple(
            tuple(grouping.keys[canonical_text(key)] for key in each) for each in sets
        )
        grouping.whole = several_sets(self.tree.args.get("group")) and not sets
        if having is not None:
            self.later[_HAVING] = self.condition(
                self.marked(
                    having.this,
                    lambda each: resolve_having(
                        each, self.scope, self.wanted, grouping, self.given
                    ),
                )
            )
            for window in self.later[_HAVING].find_all(exp.Window):
                must_be_plain(window, "HAVING", self.text)
        grouping.free = frozenset((*self.pending, *self.lower.carried))
        calls = [node for tree in self.operands() for node in aggregates_in(tree)]
        plan = self.attached(plan, list(calls), here)
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
        made = self.attached(made, self.trees(), translate)
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


_QUALIFY, _HAVING, _ORDER, _WINDOW = "?qualify", "?having", "#", "@"
