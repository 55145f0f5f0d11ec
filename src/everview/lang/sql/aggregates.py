"""Aggregate functions: which there are, what type they have, and what they are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.place import span_of
from everview.lang.sql.refuse import refused
from everview.plan import scalar
from everview.plan.nodes import Aggregate, AggregateFunction, Output
from everview.plan.types import FLOATS, INTEGERS, Type, decimal_parts, storable_type

_FUNCTIONS: dict[type[exp.Expr], AggregateFunction] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_list",
}


def result_type(function: str, argument: Type) -> Type | None:
    """Spark's type of an aggregate, None where the argument cannot be aggregated so.

    >>> result_type("sum", "decimal(12,2)"), result_type("avg", "decimal(12,2)")
    ('decimal(22,2)', 'decimal(16,6)')
    """
    if function == "count":
        return "bigint"
    if function in ("min", "max"):
        return argument if storable_type(argument) and "map<" not in argument else None
    if function == "collect_list":
        return f"array<{argument}>" if "map<" not in argument else None
    if function in ("bool_and", "bool_or"):
        return argument if argument == "boolean" else None
    parts = decimal_parts(argument)
    if parts:
        more, scale = (10, 0) if function == "sum" else (4, 4)
        return f"decimal({min(38, parts[0] + more)},{min(38, parts[1] + scale)})"
    if argument in INTEGERS:
        return "bigint" if function == "sum" else "double"
    return "double" if argument in FLOATS else None


@dataclass(slots=True)
class Grouping:
    """What a GROUP BY computes first, and the aggregates and keys made of it."""

    text: str
    inputs: dict[str, Output] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    free: frozenset[str] = frozenset()
    """Columns that stand for subqueries and are joined to the groups."""

    def input(self, text: str, type_: Type, stem: str) -> str:
        """The name of the input column with this value."""
        for output in self.inputs.values():
            if output.scalar == text:
                return output.name
        name = scalar.as_column(text) or f"{stem}{len(self.inputs) + 1}"
        self.inputs[name] = Output(name, type_, text)
        return name

    def over_groups(self, tree: exp.Expr) -> exp.Expr:
        """The expression over group keys and aggregates instead of rows."""

        def replaced(node: exp.Expr) -> exp.Expr:
            shown = scalar.text(node)
            if shown in self.keys:
                return column_named(self.keys[shown])
            if shown in self.aggregates:
                return column_named(self.aggregates[shown].name)
            if isinstance(node, exp.Column) and node.name not in self.free:
                raise UserError(
                    "Q009",
                    f"{node.name} is neither in GROUP BY nor inside an aggregate",
                    span=span_of(node, self.text),
                    remedy="add it to GROUP BY, or aggregate it",
                )
            return node

        return tree.transform(replaced)


def aggregates_in(tree: exp.Expr) -> list[exp.AggFunc]:
    """The aggregate calls of an expression, outermost first."""
    return [node for node in tree.walk() if isinstance(node, exp.AggFunc) and not _windowed(node)]


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


def _windowed(node: exp.Expr) -> bool:
    """Whether a call is that of a window, and not one over groups."""
    parent = node.parent
    if isinstance(parent, exp.IgnoreNulls | exp.RespectNulls):
        return _windowed(parent)
    return isinstance(parent, exp.Window) and parent.this is node


def function_of(node: exp.AggFunc, text: str) -> AggregateFunction:
    """The name of a supported aggregate, or a refusal."""
    function = _FUNCTIONS.get(type(node))
    if function is None:
        name = f"the aggregate {node.sql_name().lower()}"
        raise refused(name, node, text, "use SUM, COUNT, AVG, MIN or MAX")
    several = isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1
    if node.expressions or several:
        name = f"{function.upper()} of several columns"
        raise refused(name, node, text, "aggregate one expression")
    must_be_plain(node.this, "an aggregate", text)
    return function


def column_named(name: str) -> exp.Column:
    """A plan column in an expression."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
