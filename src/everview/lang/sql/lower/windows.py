"""Window functions: arguments as columns, and ties broken where the result depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from everview.analysis.tie_sensitive import BY_PLACE
from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import AGGREGATES, result_type
from everview.expr.quoting import spark_type
from everview.expr.scalar import whole_number
from everview.expr.types import FLOATS, Type, storable_type
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.aggregates import aggregate_call, cast_operands
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.frames import frame_of
from everview.lang.sql.lower.order_limit import order_of, with_ties_broken
from everview.lang.sql.parse.span import span_of
from everview.plan.build import average_of, columns_of, identity, map_, total_type, window
from everview.plan.nodes import Order, Output, Over, Plan
from everview.plan.traverse import schema_of

_RANKING: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", "int"),
    exp.Rank: ("rank", "int"),
    exp.DenseRank: ("dense_rank", "int"),
    exp.PercentRank: ("percent_rank", "double"),
    exp.CumeDist: ("cume_dist", "double"),
    exp.Ntile: ("ntile", "int"),
}
_NAVIGATION: dict[type[exp.Expr], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
    exp.NthValue: "nth_value",
}


_SO_FAR = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_OWN_FRAME = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "percent_rank"), f"ROWS {_SO_FAR}"),
    "ntile": f"ROWS {_SO_FAR}",
    "cume_dist": f"RANGE {_SO_FAR}",
}
"""Functions that always have the same frame: it may be written, another may not."""
_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _OverClause:
    """The OVER of one call: partition keys, order and frame, and the node for errors."""

    keys: tuple[str, ...]
    order: tuple[Order, ...]
    frame: str
    node: exp.Window


@dataclass(slots=True)
class Windows:
    """The window functions of one SELECT, computed over the rows of a plan.

    `named` are the definitions of its WINDOW clause.
    """

    context: LoweringContext
    plan: Plan
    named: dict[str, exp.Expr]
    _extra: dict[str, Output] = field(default_factory=dict)
    _over: dict[tuple[str, ...], list[Over]] = field(default_factory=dict)
    _columns: dict[str, exp.Expr] = field(default_factory=dict)

    def replaced(self, tree: exp.Expr) -> exp.Expr:
        """The expression with columns in the place of window calls."""

        def column(node: exp.Expr) -> exp.Expr:
            return self._column(node) if isinstance(node, exp.Window) else node

        return tree.transform(column)

    def computed(self) -> Plan:
        """The rows with a column for every window call."""
        schema = schema_of(self.plan)
        plan = map_(self.plan, (*identity(schema), *self._extra.values()))
        for keys, columns in self._over.items():
            plan = window(plan, keys, tuple(columns))
        return plan

    def _column(self, node: exp.Window) -> exp.Expr:
        shown = scalar.text(node)
        if shown not in self._columns:
            self._columns[shown] = self._call(node)
        return self._columns[shown].copy()

    def _call(self, node: exp.Window) -> exp.Expr:
        """The column for a window call, computed together with those of the same partitions."""
        node = self._defined(node)
        call, skip_nulls = node.this, isinstance(node.this, exp.IgnoreNulls)
        if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
            call = call.this
        for inner in node.find_all(exp.Window):
            if inner is not node:
                raise UserError(
                    "Q009",
                    "a window function inside a window function",
                    span=span_of(inner, self.context.text),
                    remedy="compute it in a subquery in FROM first",
                )
        over = self._over_clause(node)
        if type(call) in _RANKING:
            return self._ranking(call, over, skip_nulls=skip_nulls)
        if type(call) in _NAVIGATION:
            return self._navigation(call, over, skip_nulls=skip_nulls)
        if isinstance(call, exp.AggFunc) and not skip_nulls:
            return self._aggregate(call, over)
        shown = call.sql_name().lower() if isinstance(call, exp.Func) else call.key
        raise _not_over(shown, node, self.context.text)

    def _over_clause(self, node: exp.Window) -> _OverClause:
        partition = (self._key(each) for each in node.args.get("partition_by") or ())
        keys = tuple(dict.fromkeys((*self.context.domain_columns, *partition)))
        clause = node.args.get("order")
        items = clause.expressions if clause is not None else ()
        order = tuple(order_of(each, self._key(each.this)) for each in items)
        types = [self._type_of(each.column) for each in order]
        frame = frame_of(node.args.get("spec"), types, self.context.text)
        return _OverClause(keys, order, frame, node)

    def _ranking(self, call: exp.Expr, over: _OverClause, *, skip_nulls: bool) -> exp.Expr:
        """ROW_NUMBER, RANK and the like, which have a frame of their own."""
        function, type_ = _RANKING[type(call)]
        self._refuse_frame(function, over)
        if skip_nulls:
            raise UserError(
                "Q009",
                f"{function.upper()} takes no IGNORE NULLS",
                span=span_of(over.node, self.context.text),
                remedy="leave IGNORE NULLS out",
            )
        count = call.this or exp.Literal.number(1)
        is_ntile = isinstance(call, exp.Ntile)
        arguments = (self._whole(count, function, 1),) if is_ntile else ()
        return self._add(replace(over, frame=""), function, type_, arguments)

    def _defined(self, node: exp.Window) -> exp.Window:
        """The call with the definition that the WINDOW clause gives its name."""
        alias = node.args.get("alias")
        if alias is None:
            return node
        definition = self.named.get(alias.name.lower())
        if definition is None:
            raise UserError(
                "Q006",
                f"there is no window {alias.name}",
                span=span_of(node, self.context.text),
                remedy="define it with WINDOW name AS (…)",
            )
        parts = {p: definition.args.get(p) for p in ("partition_by", "order", "spec")}
        if any(node.args.get(part) for part in parts):
            name = "a window that adds to a named one"
            raise refused(name, node, self.context.text, "write the whole window out")
        return exp.Window(this=node.this.copy(), **parts)

    def _input(self, tree: exp.Expr) -> str:
        """The column that holds the value of an expression."""
        text = scalar.text(tree)
        plain = scalar.as_column(text)
        if plain is not None:
            return plain
        if text not in self._extra:
            type_ = self.context.type_of(text, schema_of(self.plan), tree)
            name = f"window {self.context.fresh_number()}"
            self._extra[text] = Output(name, type_, text)
        return self._extra[text].name

    def _key(self, tree: exp.Expr) -> str:
        """The column that holds a key of PARTITION BY or ORDER BY, of a type that can be stored."""
        type_ = self.context.type_of(scalar.text(tree), schema_of(self.plan), tree)
        if type_ == "void":
            tree = scalar.parse("CAST(NULL AS INT)")
        elif storable_type(type_) is None:
            raise UserError(
                "Q014",
                f"rows cannot be told apart by values of the type {type_}",
                span=span_of(tree, self.context.text),
                remedy="CAST it to a plain type",
            )
        return self._input(tree)

    def _type_of(self, column: str) -> Type:
        own = {c.name: c.type for c in schema_of(self.plan)}
        return own.get(column) or next(o.type for o in self._extra.values() if o.name == column)

    def _navigation(self, call: exp.Expr, over: _OverClause, *, skip_nulls: bool) -> exp.Expr:
        """LAG, LEAD, FIRST_VALUE and the like, which give the value of another row."""
        function = _NAVIGATION[type(call)]
        if call.args.get("expression"):
            name = f"{function.upper()} with a second argument that is not TRUE or FALSE"
            raise refused(name, over.node, self.context.text, "write IGNORE NULLS, or leave it out")
        column = self._input(call.this)
        type_ = self._type_of(column)
        offset, default = call.args.get("offset"), call.args.get("default")
        arguments = [scalar.column(column)]
        if offset is not None:
            least = 1 if function == "nth_value" else None
            arguments.append(self._whole(offset, function, least))
        if default is not None:
            if type_ == "void":
                name = f"{function.upper()} of NULL with a default"
                raise refused(name, over.node, self.context.text, "cast the NULL to a type")
            self.context.type_of(
                f"CAST({scalar.text(default)} AS {spark_type(type_)})",
                schema_of(self.plan),
                over.node,
            )
            arguments.append(scalar.text(default))
        if function in ("lag", "lead"):
            self._refuse_frame(function, over)
        elif over.order and (skip_nulls or function != "first_value") and not _breaks_ties(over):
            name = f"{function.upper()} over rows that may tie"
            raise refused(name, over.node, self.context.text, "write ROWS BETWEEN …")
        return self._add(over, function, type_, tuple(arguments), skip_nulls=skip_nulls)

    def _whole(self, node: exp.Expr, function: str, least: int | None) -> str:
        """A number that a function takes, which must be a literal."""
        value = whole_number(node)
        if value is None or (least is not None and value < least) or abs(value) > _INT_MAX:
            above = "" if least is None else f" from {least}"
            shown = scalar.text(node).replace("`", "")
            raise UserError(
                "Q013",
                f"{function.upper()} takes a whole number{above}, not {shown}",
                span=span_of(node, self.context.text),
                remedy="write the number itself",
            )
        return str(value)

    def _refuse_frame(self, function: str, over: _OverClause) -> None:
        """Refuse any frame but its own for a function that always has the same frame."""
        if over.frame and over.frame != _OWN_FRAME.get(function):
            raise UserError(
                "Q009",
                f"{function.upper()} takes no frame",
                span=span_of(over.node, self.context.text),
                remedy="leave ROWS or RANGE out",
            )

    def _aggregate(self, node: exp.AggFunc, over: _OverClause) -> exp.Expr:
        """An aggregate over a frame; AVG of exact numbers is a sum divided by a count."""
        call = aggregate_call(node, self.context.text)
        function = call.function
        if call.distinct or not AGGREGATES[function].window:
            shown = f"{function} of distinct values" if call.distinct else function
            raise _not_over(shown, over.node, self.context.text)
        if not call.arguments:
            return self._add(over, "count", "bigint", ())
        operands = cast_operands(self.context, call, over.node, schema_of(self.plan))
        columns = tuple(self._input(scalar.parse(text)) for text, _ in operands)
        arguments, type_ = tuple(map(scalar.column, columns)), self._type_of(columns[0])
        if function == "avg" and type_ not in FLOATS:
            total = self._add(over, "sum", total_type(type_), arguments)
            count = self._add(over, "count", "bigint", arguments)
            text = average_of(scalar.text(total), scalar.text(count), type_)
            return exp.Paren(this=scalar.parse(text).copy())
        result = result_type(function, type_)
        assert result is not None
        return self._add(over, function, result, arguments)

    def _add(
        self,
        over: _OverClause,
        function: str,
        type_: Type,
        arguments: tuple[str, ...],
        *,
        skip_nulls: bool = False,
    ) -> exp.Expr:
        """A new column for a function over a window; ties are broken where the result needs it."""
        order = over.order
        if not order and (function in BY_PLACE or function in ("rank", "dense_rank")):
            name = f"{function.upper()} without ORDER BY"
            raise refused(name, over.node, self.context.text, "say which row comes first")
        if function in BY_PLACE or over.frame.startswith("ROWS"):
            order = with_ties_broken(order, over.keys, columns_of(self.plan))
        name = f"window {self.context.fresh_number()}"
        column = Over(name, type_, function, arguments, order, over.frame, skip_nulls)
        self._over.setdefault(over.keys, []).append(column)
        return scalar.parse(scalar.column(name)).copy()


def _not_over(shown: str, node: exp.Expr, text: str) -> UserError:
    name = f"the window function {shown}"
    return refused(name, node, text, "use another function, or GROUP BY and join")


def _breaks_ties(over: _OverClause) -> bool:
    """Whether a frame separates rows that tie in the order, or always holds all of them."""
    whole = "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return over.frame.startswith("ROWS") or over.frame.endswith(whole)
