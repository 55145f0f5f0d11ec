"""Aggregate functions: which call is which, and what the groups of a query are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import AGGREGATES, aggregate_operands
from everview.expr.types import Column, Schema, Type
from everview.lang.sql.bind.canonical_form import canonical_text
from everview.lang.sql.bind.refuse import refused, windowed
from everview.lang.sql.bind.scope import shown_name
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Aggregate, Output

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
"""The function of a call; those that desugaring made say it themselves."""

_ANY = (exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue)
"""Calls that give the value of some row."""
_INSTEAD: dict[type[exp.Expr], str] = {
    **dict.fromkeys(_ANY, "use MIN or MAX: which row comes first is nobody's choice"),
    exp.ApproxQuantile: "use PERCENTILE, which is exact",
    exp.ApproxDistinct: "use COUNT(DISTINCT …), which is exact",
    exp.Quantile: "write the place as a number from 0 to 1",
    exp.PercentileCont: "write a number from 0 to 1, and WITHIN GROUP (ORDER BY …)",
    exp.PercentileDisc: "write a number from 0 to 1, and WITHIN GROUP (ORDER BY …)",
    exp.GroupConcat: "add WITHIN GROUP (ORDER BY …): the order of the strings must be defined",
}
_OTHERS = "use another aggregate, such as SUM, COUNT, AVG, MIN or MAX"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate: what it reads, in which order, and what is fixed in the text.

    Without arguments it counts rows.
    """

    function: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False
    order: tuple[exp.Expr, ...] = ()
    fixed: str = ""


@dataclass(slots=True)
class Grouping:
    """What a GROUP BY computes first, and the aggregates and keys made of it."""

    text: str
    inputs: dict[str, Output] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """The column of each key, by the canonical text of its expression."""
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    free: frozenset[str] = frozenset()
    """Columns that stand for subqueries and are joined to the groups."""
    sets: tuple[tuple[str, ...], ...] = ()
    """The keys of each grouping, where there are several."""
    whole: bool = False
    """Whether the one grouping set is the one without keys."""
    marks: dict[str, tuple[str, bool, tuple[str, ...]]] = field(default_factory=dict)
    """GROUPING and GROUPING_ID calls: a column, whether it is one bit, and the keys it tells of."""

    @property
    def schema(self) -> Schema:
        """The columns computed first."""
        return tuple(Column(output.name, output.type) for output in self.inputs.values())

    def input(self, text: str, type_: Type, stem: str) -> str:
        """The name of the input column with this value."""
        for output in self.inputs.values():
            if output.scalar == text:
                return output.name
        name = scalar.as_column(text) or f"{stem}{len(self.inputs) + 1}"
        self.inputs[name] = Output(name, type_, text)
        return name

    def key(self, node: exp.Expr) -> str | None:
        """The key that an expression is, if it is one."""
        return self.keys.get(canonical_text(node))

    def over_groups(self, tree: exp.Expr) -> exp.Expr:
        """The expression over group keys and aggregates instead of rows."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if windowed(node):
                return node
            shown = scalar.text(node)
            if shown in self.marks:
                return column_named(self.marks[shown][0])
            if (key := self.key(node)) is not None:
                return column_named(key)
            if shown in self.aggregates:
                return column_named(self.aggregates[shown].name)
            if isinstance(node, exp.Column) and node.name not in self.free:
                name = shown_name(node.name.partition(".")[2] or node.name)
                raise UserError(
                    "Q009",
                    f"{name} is neither in GROUP BY nor inside an aggregate",
                    span=span_of(node, self.text),
                    remedy="add it to GROUP BY, or aggregate it",
                )
            return node

        return tree.transform(replaced)


def aggregates_in(tree: exp.Expr) -> list[exp.AggFunc]:
    """The aggregate calls of an expression, outermost first."""
    return [node for node in tree.walk() if isinstance(node, exp.AggFunc) and not windowed(node)]


def must_be_plain(tree: exp.Expr, place: str, text: str) -> None:
    """Refuse aggregates and window functions where only rows are spoken of."""
    for node in (*aggregates_in(tree), *tree.find_all(exp.Window)):
        windowed = isinstance(node, exp.Window)
        raise UserError(
            "Q009",
            f"{'a window function' if windowed else 'an aggregate'} inside {place}",
            span=span_of(node, text),
            remedy=_REMEDIES[windowed].get(place, "compute it in a subquery in FROM first"),
        )


_REMEDIES = (
    {"WHERE": "move the condition to HAVING", "GROUP BY": "group by plain expressions"},
    {"WHERE": "move the condition to QUALIFY, or to a query around this one"},
)
"""What to do with an aggregate, and with a window function, in the wrong place."""


def aggregate_call(node: exp.AggFunc, text: str) -> AggregateCall:
    """What a call asks for, or a refusal."""
    for part in (node.this, *node.expressions, node.args.get("expression")):
        if isinstance(part, exp.Expr):
            must_be_plain(part, "an aggregate", text)
    if isinstance(node, exp.AnonymousAggFunc):
        return _ordered_call(node)
    function = _FUNCTIONS.get(type(node))
    if function is None or _says_more(node):
        name = f"the aggregate {scalar.text(node).partition('(')[0].lower()}"
        raise refused(name, node, text, _INSTEAD.get(type(node), _OTHERS))
    first, *others = (part for part in (node.this, node.args.get("expression")) if part)
    if isinstance(first, exp.Distinct):
        return AggregateCall(function, (*first.expressions, *others), distinct=True)
    if isinstance(node, exp.ArrayUniqueAgg):
        return AggregateCall(function, (first,), distinct=True)
    if function == "count" and isinstance(first, exp.Star | exp.Literal):
        return AggregateCall(function, ())
    return AggregateCall(function, (first, *others))


def _says_more(node: exp.AggFunc) -> bool:
    """Whether a call has an argument that we do not know, or none at all."""
    known = ("this", "expression", "big_int", "nulls_excluded")
    return node.this is None or any(v for key, v in node.args.items() if key not in known)


def _ordered_call(node: exp.AnonymousAggFunc) -> AggregateCall:
    """A call made by desugaring: name(value, literal, order …)."""
    first, fixed, *order = node.expressions
    distinct = isinstance(first, exp.Distinct)
    value = first.expressions[0] if distinct else first
    said = "" if isinstance(fixed, exp.Null) else scalar.text(fixed)
    return AggregateCall(str(node.this), (value,), distinct, tuple(order), said)


def cast_operands(
    call: AggregateCall, texts: tuple[str, ...], types: tuple[Type, ...], node: exp.Expr, text: str
) -> list[tuple[str, Type]]:
    """The arguments of an aggregate as Spark casts them, or an error."""
    takes = len(AGGREGATES[call.function].parameters)
    if len(types) != takes and call.function != "count":
        raise UserError(
            "Q012",
            f"{call.function.upper()} takes {takes} arguments, not {len(types)}",
            span=span_of(node, text),
            remedy="give as many as it takes",
        )
    operands = aggregate_operands(call.function, types)
    if operands is None:
        raise UserError(
            "Q013",
            f"{call.function.upper()} of {', '.join(types)} has no meaning",
            span=span_of(node, text),
            remedy="aggregate a number, or CAST it to one",
        )
    return [
        (each if to == type_ else scalar.canonical(f"CAST({each} AS {to})"), to)
        for each, type_, to in zip(texts, types, operands, strict=True)
    ]


def any_value_of(node: exp.AggFunc) -> exp.Expr | None:
    """What a call wants the value of in any row, None for other calls."""
    return node.this if isinstance(node, _ANY) else None


def column_named(name: str) -> exp.Column:
    """A plan column in an expression."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
