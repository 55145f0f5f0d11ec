"""Aggregate calls: which function each is, what Spark casts its arguments to, and its column."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import AGGREGATES, aggregate_operands, result_type
from everview.expr.types import Column, Schema, Type, storable_type, type_in
from everview.lang.sql.bind.refuse import must_be_plain, refused
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.order_limit import order_of
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Aggregate, Order, Output

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
    exp.Skewness: "skewness",
    exp.Kurtosis: "kurtosis",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_list",
}
"""The function of a call; calls made by desugaring have it in their name."""

_ANY_ROW = (exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue)
"""Calls that give the value of some row."""
_REMEDIES: dict[type[exp.Expr], str] = {
    **dict.fromkeys(_ANY_ROW, "use MIN or MAX: which row comes first is nobody's choice"),
    exp.ApproxQuantile: "use PERCENTILE, which is exact",
    exp.ApproxDistinct: "use COUNT(DISTINCT …), which is exact",
    exp.Quantile: "write the place as a number from 0 to 1",
    exp.PercentileCont: "write a number from 0 to 1, and WITHIN GROUP (ORDER BY …)",
    exp.PercentileDisc: "write a number from 0 to 1, and WITHIN GROUP (ORDER BY …)",
    exp.GroupConcat: "add WITHIN GROUP (ORDER BY …): the order of the strings must be defined",
}
_OTHER_REMEDY = "use another aggregate, such as SUM, COUNT, AVG, MIN or MAX"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate: its arguments, their order, and the constant that it is given.

    Without arguments it counts rows.
    """

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    order: tuple[exp.Expr, ...] = ()
    fixed: str = ""


@dataclass(slots=True)
class InputColumns:
    """The columns that are computed from rows before they are grouped, each value once."""

    outputs: dict[str, Output] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The names and types of the columns."""
        return tuple(Column(output.name, output.type) for output in self.outputs.values())

    def add(self, text: str, type_: Type, stem: str) -> str:
        """The name of the column with this value; a new one begins with `stem`."""
        for output in self.outputs.values():
            if output.scalar == text:
                return output.name
        name = scalar.as_column(text) or f"{stem}{len(self.outputs) + 1}"
        self.outputs[name] = Output(name, type_, text)
        return name


def lower_aggregate(
    context: LoweringContext, node: exp.AggFunc, name: str, inputs: InputColumns, schema: Schema
) -> Aggregate:
    """An aggregate call as the column `name`; what it reads is added to `inputs`."""
    call = aggregate_call(node, context.text)
    if not call.arguments:
        return Aggregate(name, "bigint", "count")
    first, *more = _arguments(context, call, node, inputs, schema)
    result = result_type(call.function, type_in(inputs.schema, first))
    assert result is not None
    order = _order(context, call, first, inputs, schema)
    return Aggregate(
        name, result, call.function, first, call.distinct, tuple(more), order, call.fixed
    )


def _arguments(
    context: LoweringContext,
    call: AggregateCall,
    node: exp.Expr,
    inputs: InputColumns,
    schema: Schema,
) -> tuple[str, ...]:
    """The columns that hold the arguments, as Spark casts them."""
    operands = cast_operands(context, call, node, schema)
    if call.function == "count" and not call.distinct:
        operands = [_is_not_null(text, type_) for text, type_ in operands]
    return tuple(inputs.add(text, type_, "value") for text, type_ in operands)


def _is_not_null(text: str, type_: Type) -> tuple[str, Type]:
    """A value that is only counted; one that cannot be stored is replaced by 1, NULL stays NULL."""
    if storable_type(type_):
        return text, type_
    return scalar.canonical(f"CASE WHEN {text} IS NULL THEN NULL ELSE 1 END"), "int"


def _order(
    context: LoweringContext, call: AggregateCall, value: str, inputs: InputColumns, schema: Schema
) -> tuple[Order, ...]:
    """The order of the rows of a group, in which only equal values tie."""
    order: list[Order] = []
    for node in call.order:
        text = scalar.text(node.this)
        type_ = context.type_of(text, schema, node.this)
        order.append(order_of(node, inputs.add(text, type_, "order")))
    if not order or any(each.column == value for each in order):
        return tuple(order)
    if call.function != "listagg":
        return tuple(Order(value, each.descending) for each in order)
    if call.distinct:
        name = "LISTAGG(DISTINCT …) in the order of something else"
        raise refused(name, call.order[0], context.text, "order by the string itself")
    return (*order, Order(value))


def aggregate_call(node: exp.AggFunc, text: str) -> AggregateCall:
    """A call read from its tree, or a refusal."""
    for part in (node.this, *node.expressions, node.args.get("expression")):
        if isinstance(part, exp.Expr):
            must_be_plain(part, "an aggregate", text)
    if isinstance(node, exp.AnonymousAggFunc):
        return _ordered_call(node)
    function = _FUNCTIONS.get(type(node))
    if function is None or _says_more(node):
        name = f"the aggregate {scalar.text(node).partition('(')[0].lower()}"
        raise refused(name, node, text, _REMEDIES.get(type(node), _OTHER_REMEDY))
    first, *others = (part for part in (node.this, node.args.get("expression")) if part)
    if isinstance(first, exp.Distinct):
        return AggregateCall(function, (*first.expressions, *others), distinct=True)
    if isinstance(node, exp.ArrayUniqueAgg):
        return AggregateCall(function, (first,), distinct=True)
    if function == "count" and isinstance(first, exp.Star | exp.Literal):
        return AggregateCall(function, ())
    return AggregateCall(function, (first, *others))


def _says_more(node: exp.AggFunc) -> bool:
    """Whether a call has an argument that is not understood, or none at all."""
    understood = ("this", "expression", "big_int", "nulls_excluded")
    return node.this is None or any(v for key, v in node.args.items() if key not in understood)


def _ordered_call(node: exp.AnonymousAggFunc) -> AggregateCall:
    """A call made by desugaring: name(value, literal, order …)."""
    first, fixed, *order = node.expressions
    distinct = isinstance(first, exp.Distinct)
    value = first.expressions[0] if distinct else first
    constant = "" if isinstance(fixed, exp.Null) else scalar.text(fixed)
    return AggregateCall(str(node.this), (value,), distinct, tuple(order), constant)


def cast_operands(
    context: LoweringContext, call: AggregateCall, node: exp.Expr, schema: Schema
) -> list[tuple[str, Type]]:
    """The arguments of an aggregate with their types, as Spark casts them, or an error."""
    texts = tuple(map(scalar.text, call.arguments))
    types = tuple(
        context.type_of(text, schema, tree)
        for text, tree in zip(texts, call.arguments, strict=True)
    )
    takes = len(AGGREGATES[call.function].parameters)
    if len(types) != takes and call.function != "count":
        raise UserError(
            "Q012",
            f"{call.function.upper()} takes {takes} arguments, not {len(types)}",
            span=span_of(node, context.text),
            remedy="give as many as it takes",
        )
    operands = aggregate_operands(call.function, types)
    if operands is None:
        raise UserError(
            "Q013",
            f"{call.function.upper()} of {', '.join(types)} has no meaning",
            span=span_of(node, context.text),
            remedy="aggregate a number, or CAST it to one",
        )
    return [
        (each if to == type_ else scalar.canonical(f"CAST({each} AS {to})"), to)
        for each, type_, to in zip(texts, types, operands, strict=True)
    ]


def any_value_of(node: exp.AggFunc) -> exp.Expr | None:
    """The argument of a call that gives the value of some row, None for other calls."""
    return node.this if isinstance(node, _ANY_ROW) else None
