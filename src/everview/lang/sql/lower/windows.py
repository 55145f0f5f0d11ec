"""Window functions: what they read made columns, rows that tie put in an order of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.analysis.tie_sensitive import BY_PLACE
from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import AGGREGATES, result_type
from everview.expr.types import FLOATS, Type, storable_type
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.aggregates import AggregateCall, aggregate_call, cast_operands
from everview.lang.sql.lower.frames import frame_of, whole_number
from everview.lang.sql.parse.order_limit import placed
from everview.lang.sql.parse.span import span_of
from everview.plan.build import (
    average_of,
    columns_of,
    filter_,
    identity,
    map_,
    project,
    total_type,
    window,
)
from everview.plan.nodes import Order, Output, Over, Plan
from everview.plan.traverse import schema_of

if TYPE_CHECKING:
    from everview.lang.sql.lower.query import Lowering

_NUMBERS: dict[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", "int"),
    exp.Rank: ("rank", "int"),
    exp.DenseRank: ("dense_rank", "int"),
    exp.PercentRank: ("percent_rank", "double"),
    exp.CumeDist: ("cume_dist", "double"),
    exp.Ntile: ("ntile", "int"),
}
_VALUES: dict[type[exp.Expr], str] = {
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
"""The frame that may be written where another may not."""
_MOST = 2**31 - 1


@dataclass(slots=True)
class Windows:
    """The window functions of one SELECT, computed over the rows of a plan."""

    lower: Lowering
    plan: Plan
    named: dict[str, exp.Expr]
    _extra: dict[str, Output] = field(default_factory=dict)
    _over: dict[tuple[str, ...], list[Over]] = field(default_factory=dict)
    _known: dict[str, exp.Expr] = field(default_factory=dict)

    def replace(self, tree: exp.Expr) -> exp.Expr:
        """The expression with columns in the place of window calls."""

        def replaced(node: exp.Expr) -> exp.Expr:
            return self._column(node) if isinstance(node, exp.Window) else node

        return tree.transform(replaced)

    def computed(self) -> Plan:
        """The rows with a column for every window call."""
        schema = schema_of(self.plan)
        plan = map_(self.plan, (*identity(schema), *self._extra.values()))
        for keys, columns in self._over.items():
            plan = window(plan, keys, tuple(columns))
        return plan

    def _column(self, node: exp.Window) -> exp.Expr:
        shown = scalar.text(node)
        if shown not in self._known:
            self._known[shown] = self._call(node)
        return self._known[shown].copy()

    def _call(self, node: exp.Window) -> exp.Expr:
        node = self._defined(node)
        call, skip = node.this, isinstance(node.this, exp.IgnoreNulls)
        if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
            call = call.this
        for inner in node.find_all(exp.Window):
            if inner is not node:
                raise UserError(
                    "Q009",
                    "a window function inside a window function",
                    span=span_of(inner, self.lower.text),
                    remedy="compute it in a subquery in FROM first",
                )
        asked = (self._key(each) for each in node.args.get("partition_by") or ())
        keys = tuple(dict.fromkeys((*self.lower.carried, *asked)))
        order = tuple(self._order(each) for each in _ordered(node))
        types = [self._type_of(each.column) for each in order]
        frame = frame_of(node.args.get("spec"), types, self.lower.text)
        kind = type(call)
        if kind in _NUMBERS:
            function, type_ = _NUMBERS[kind]
            self._refuse_frame(function, frame, node)
            if skip:
                raise UserError(
                    "Q009",
                    f"{function.upper()} takes no IGNORE NULLS",
                    span=span_of(node, self.lower.text),
                    remedy="leave IGNORE NULLS out",
                )
            count = call.this or exp.Literal.number(1)
            arguments = (self._whole(count, function, 1),) if kind is exp.Ntile else ()
            return self._add(keys, function, type_, arguments, order, "", node)
        if kind in _VALUES:
            return self._value(call, keys, order, frame, node, skip)
        if isinstance(call, exp.AggFunc) and not skip:
            return self._aggregate(call, keys, order, frame, node)
        shown = call.sql_name().lower() if isinstance(call, exp.Func) else call.key
        raise _not_over(shown, node, self.lower.text)

    def _defined(self, node: exp.Window) -> exp.Window:
        """The call with what a WINDOW clause says of its name."""
        alias = node.args.get("alias")
        if alias is None:
            return node
        known = self.named.get(alias.name.lower())
        if known is None:
            raise UserError(
                "Q006",
                f"there is no window {alias.name}",
                span=span_of(node, self.lower.text),
                remedy="define it with WINDOW name AS (…)",
            )
        parts = {p: known.args.get(p) for p in ("partition_by", "order", "spec")}
        if any(node.args.get(part) for part in parts):
            name = "a window that adds to a named one"
            raise refused(name, node, self.lower.text, "write the whole window out")
        return exp.Window(this=node.this.copy(), **parts)

    def _input(self, tree: exp.Expr) -> str:
        """The column that holds the value of an expression."""
        text = scalar.text(tree)
        plain = scalar.as_column(text)
        if plain is not None:
            return plain
        if text not in self._extra:
            type_ = self.lower.type_(text, schema_of(self.plan), tree)
            name = f"window {self.lower.number()}"
            self._extra[text] = Output(name, type_, text)
        return self._extra[text].name

    def _key(self, tree: exp.Expr) -> str:
        """The column that holds what rows are told apart by, which is of a type of columns."""
        type_ = self.lower.type_(scalar.text(tree), schema_of(self.plan), tree)
        if type_ == "void":
            tree = scalar.parse("CAST(NULL AS INT)")
        elif storable_type(type_) is None:
            raise UserError(
                "Q014",
                f"rows cannot be told apart by values of the type {type_}",
                span=span_of(tree, self.lower.text),
                remedy="CAST it to a plain type",
            )
        return self._input(tree)

    def _order(self, node: exp.Expr) -> Order:
        return placed(node, self._key(node.this))

    def _type_of(self, column: str) -> Type:
        own = {c.name: c.type for c in schema_of(self.plan)}
        return own.get(column) or next(o.type for o in self._extra.values() if o.name == column)

    def _value(
        self,
        call: exp.Expr,
        keys: tuple[str, ...],
        order: tuple[Order, ...],
        frame: str,
        node: exp.Window,
        skip: bool,
    ) -> exp.Expr:
        function = _VALUES[type(call)]
        if call.args.get("expression"):
            name = f"{function.upper()} with a second argument that is not TRUE or FALSE"
            raise refused(name, node, self.lower.text, "write IGNORE NULLS, or leave it out")
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
                raise refused(name, node, self.lower.text, "cast the NULL to a type")
            self.lower.type_(f"CAST({scalar.text(default)} AS {type_})", schema_of(self.plan), node)
            arguments.append(scalar.text(default))
        if function in ("lag", "lead"):
            self._refuse_frame(function, frame, node)
        elif order and (skip or function != "first_value") and not _tells_ties_apart(frame):
            name = f"{function.upper()} over rows that may tie"
            raise refused(name, node, self.lower.text, "write ROWS BETWEEN …")
        return self._add(keys, function, type_, tuple(arguments), order, frame, node, skip)

    def _whole(self, node: exp.Expr, function: str, least: int | None) -> str:
        """A number that a function takes, which must be told by the text alone."""
        value = whole_number(node)
        if value is None or (least is not None and value < least) or abs(value) > _MOST:
            above = "" if least is None else f" from {least}"
            shown = scalar.text(node).replace("`", "")
            raise UserError(
                "Q013",
                f"{function.upper()} takes a whole number{above}, not {shown}",
                span=span_of(node, self.lower.text),
                remedy="write the number itself",
            )
        return str(value)

    def _refuse_frame(self, function: str, frame: str, node: exp.Window) -> None:
        """Functions of the place of a row have a frame of their own."""
        if frame and frame != _OWN_FRAME.get(function):
            raise UserError(
                "Q009",
                f"{function.upper()} takes no frame",
                span=span_of(node, self.lower.text),
                remedy="leave ROWS or RANGE out",
            )

    def _aggregate(
        self,
        node: exp.AggFunc,
        keys: tuple[str, ...],
        order: tuple[Order, ...],
        frame: str,
        window: exp.Window,
    ) -> exp.Expr:
        call = aggregate_call(node, self.lower.text)
        function = call.function
        if call.distinct or not AGGREGATES[function].window:
            shown = f"{function} of distinct values" if call.distinct else function
            raise _not_over(shown, window, self.lower.text)
        if not call.arguments:
            return self._add(keys, "count", "bigint", (), order, frame, window)
        columns = self._operands(call, window)
        arguments, type_ = tuple(map(scalar.column, columns)), self._type_of(columns[0])
        if function == "avg" and type_ not in FLOATS:
            total = self._add(keys, "sum", total_type(type_), arguments, order, frame, window)
            count = self._add(keys, "count", "bigint", arguments, order, frame, window)
            text = average_of(scalar.text(total), scalar.text(count), type_)
            return exp.Paren(this=scalar.parse(text).copy())
        result = result_type(function, type_)
        assert result is not None
        return self._add(keys, function, result, arguments, order, frame, window)

    def _operands(self, call: AggregateCall, node: exp.Window) -> tuple[str, ...]:
        """The columns that hold the arguments of an aggregate, as Spark casts them."""
        texts = tuple(map(scalar.text, call.arguments))
        schema = schema_of(self.plan)
        types = tuple(
            self.lower.type_(text, schema, tree)
            for text, tree in zip(texts, call.arguments, strict=True)
        )
        made = cast_operands(call, texts, types, node, self.lower.text)
        return tuple(self._input(scalar.parse(text)) for text, _ in made)

    def _add(
        self,
        keys: tuple[str, ...],
        function: str,
        type_: Type,
        arguments: tuple[str, ...],
        order: tuple[Order, ...],
        frame: str,
        node: exp.Window,
        skip_nulls: bool = False,
    ) -> exp.Expr:
        if not order and (function in BY_PLACE or function in ("rank", "dense_rank")):
            name = f"{function.upper()} without ORDER BY"
            raise refused(name, node, self.lower.text, "say which row comes first")
        if function in BY_PLACE or frame.startswith("ROWS"):
            order = with_ties(order, keys, columns_of(self.plan))
        name = f"window {self.lower.number()}"
        over = Over(name, type_, function, arguments, order, frame, skip_nulls)
        self._over.setdefault(keys, []).append(over)
        return scalar.parse(scalar.column(name)).copy()


def with_ties(
    order: tuple[Order, ...], keys: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[Order, ...]:
    """An order in which only equal rows tie."""
    known = {*keys, *(each.column for each in order)}
    return (*order, *(Order(name) for name in columns if name not in known))


def first_rows(
    plan: Plan, keys: tuple[str, ...], order: tuple[Order, ...], limit: int | None, offset: int
) -> Plan:
    """The rows in a range of places, within each value of `keys`."""
    if limit is None and not offset:
        return plan
    name, columns = "place", columns_of(plan)
    placed = Over(name, "int", "row_number", (), with_ties(order, keys, columns))
    bounds = [f"{scalar.column(name)} > {offset}"] if offset else []
    bounds += [f"{scalar.column(name)} <= {offset + limit}"] if limit is not None else []
    kept = filter_(window(plan, keys, (placed,)), scalar.canonical(" AND ".join(bounds)))
    return project(kept, columns)


def _ordered(node: exp.Window) -> list[exp.Expr]:
    clause = node.args.get("order")
    return list(clause.expressions) if clause is not None else []


def _not_over(shown: str, node: exp.Expr, text: str) -> UserError:
    name = f"the window function {shown}"
    return refused(name, node, text, "use another function, or GROUP BY and join")


def _tells_ties_apart(frame: str) -> bool:
    """Whether a frame ends between rows that tie, or has all of them."""
    return frame.startswith("ROWS") or frame.endswith(
        "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    )
