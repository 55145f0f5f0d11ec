"""Syntactic sugar removed: FILTER, COUNT_IF, ANY, aliases of aggregates, subqueries in ON."""

from __future__ import annotations

import re

from sqlglot import exp

from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.refuse import windowed

_NAMED: dict[str, type[exp.AggFunc]] = {
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
    "std": exp.StddevSamp,
    "mean": exp.Avg,
}
_PERCENTILES = {exp.PercentileCont: "percentile_cont", exp.PercentileDisc: "percentile_disc"}


def desugared(tree: exp.Expr) -> exp.Expr:
    """The query in a smaller language: FILTER clauses, COUNT_IF and the like are rewritten."""
    result = tree.copy()
    # Inner nodes first: one that is rewritten may stand inside another.
    for node in reversed(list(result.walk())):
        simpler = _simpler(node)
        if node is result:
            result = simpler
        elif simpler is not node:
            node.replace(simpler)
    return result


def _simpler(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Filter() if _filters_by_position(node):
            return node
        case exp.Filter(this=exp.AggFunc() as call):
            return _filtered(call, node.expression.this)
        case exp.Window() if (kept := _filtered_value(node)) is not None:
            listed = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            return exp.alias_(kept, output_name(node), quoted=True) if listed else kept
        case exp.CountIf():
            return exp.Count(this=_when(node.this, exp.Literal.number(1)))
        case exp.Count() if node.expressions:
            return _count_all([node.this, *node.expressions])
        case exp.RegrCount():
            return _count_all([node.this, node.expression])
        case exp.RegrAvgx() | exp.RegrAvgy():
            return _average_of_pairs(node)
        case exp.Anonymous() if node.name.lower() in _NAMED and len(node.expressions) == 1:
            return _NAMED[node.name.lower()](this=node.expressions[0])
        case exp.Any() if not node.find(exp.Query) and not isinstance(
            node.parent, exp.Like | exp.ILike
        ):
            return exp.LogicalOr(this=node.this)
        case exp.Predicate(expression=exp.Any(this=exp.Query() as query)) if type(node) in _NEGATED:
            every = _NEGATED[type(node)](this=node.this, expression=exp.All(this=query))
            return exp.Not(this=every)
        case exp.Select():
            return _with_subqueries_in_where(node)
        case exp.IgnoreNulls(this=exp.AggFunc() as call) if not windowed(call):
            return call
        case exp.Median() | exp.Quantile() | exp.Mode() | exp.GroupConcat() | exp.WithinGroup():
            ordered = _ordered(node)
            ordered.meta.update(node.meta)
            return ordered
        case _:
            return node


_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.NEQ: exp.EQ,
    exp.EQ: exp.NEQ,
}
"""A comparison holds for ANY row if its negation does not hold for ALL rows."""


def _with_subqueries_in_where(node: exp.Select) -> exp.Select:
    """Subqueries in ON of inner joins moved to WHERE, if no RIGHT or FULL join follows."""
    for join in reversed(node.args.get("joins") or ()):
        if str(join.args.get("side") or "").upper() in ("RIGHT", "FULL"):
            break
        on = join.args.get("on")
        if on is None or any(join.args.get(p) for p in ("side", "using", "method")):
            continue
        if str(join.args.get("kind") or "INNER").upper() not in ("INNER", "CROSS"):
            continue
        parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
        asking = [part for part in parts if part.find(exp.Query)]
        if asking:
            plain = [part.copy() for part in parts if part not in asking]
            join.set("on", exp.and_(*plain) if plain else None)
            node.where(*asking, copy=False)
    return node


def _ordered(node: exp.Expr) -> exp.Expr:
    """Ordered-set aggregates such as PERCENTILE_CONT, as name(value, constant, order …)."""
    match node:
        case exp.Median():
            return _call("percentile_cont", node.this, exp.Literal.number("0.5"))
        case exp.Quantile() if type(node) is exp.Quantile and (
            fraction := _fraction(node.args["quantile"])
        ):
            return _call("percentile_cont", node.this, fraction)
        case exp.WithinGroup(
            this=exp.PercentileCont() | exp.PercentileDisc() as call,
            expression=exp.Order(expressions=[by]),
        ) if (fraction := _fraction(call.this)) is not None:
            return _call(_PERCENTILES[type(call)], by.this, fraction, by)
        case exp.WithinGroup(this=exp.Mode(), expression=exp.Order(expressions=[by])):
            return _call("mode", by.this, exp.Null(), by)
        case exp.Mode() if (
            node.this
            and not isinstance(node.this, exp.Distinct)
            and not isinstance(node.args.get("deterministic"), exp.Null)
        ):
            least = exp.Ordered(this=node.this.copy(), nulls_first=True)
            return _call("mode", node.this, exp.Null(), least)
        case exp.GroupConcat(this=exp.Order() as order) if isinstance(
            _separator(node), exp.Literal
        ) and not node.args.get("on_overflow"):
            return _call("listagg", order.this, _separator(node), *order.expressions)
        case _:
            return node


def _fraction(node: exp.Expr) -> exp.Expr | None:
    """A literal between 0 and 1, as a number."""
    if not isinstance(node, exp.Literal) or not re.fullmatch(r"0*1(\.0*)?|0*(\.\d*)?", node.name):
        return None
    return exp.Literal.number(node.name)


def _call(name: str, *parts: exp.Expr) -> exp.Expr:
    return exp.AnonymousAggFunc(this=name, expressions=[part.copy() for part in parts])


def _separator(node: exp.Expr) -> exp.Expr:
    given = node.args.get("separator")
    if given is None or isinstance(given, exp.Null):
        return exp.Literal.string("")
    whole = isinstance(given, exp.Literal) and given.name.isdigit()
    return exp.Literal.string(given.name) if whole else given


def _count_all(values: list[exp.Expr]) -> exp.Expr:
    """The number of rows in which no value is NULL."""
    return exp.Count(this=_when(_none_null(values), exp.Literal.number(1)))


def _average_of_pairs(node: exp.Expr) -> exp.Expr:
    pair = [node.this, node.expression]
    wanted = pair[1] if isinstance(node, exp.RegrAvgx) else pair[0]
    return exp.Avg(this=_when(_none_null(pair), wanted))


def _none_null(values: list[exp.Expr]) -> exp.Expr:
    return exp.and_(*(exp.Is(this=v.copy(), expression=exp.Null()).not_() for v in values))


def _filtered(call: exp.AggFunc, condition: exp.Expr) -> exp.Expr:
    """An aggregate with FILTER: the value is NULL in rows that do not satisfy the condition."""
    if isinstance(call, exp.AnonymousAggFunc):
        first, fixed, *order = call.expressions
        kept = _kept(first, condition)
        value, whole = _value(kept), _value(first)
        moved = (by.copy() if by.this != whole else _by(by, value) for by in order)
        return _call(str(call.this), kept, fixed, *moved)
    filtered = call.copy()
    for part in ("this", "expression"):
        if (argument := call.args.get(part)) is not None:
            filtered.set(part, _kept(argument, condition))
    return filtered


_BY_POSITION = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
    *(exp.Lag, exp.Lead, exp.NthValue, exp.FirstValue, exp.LastValue, exp.First, exp.Last),
)
"""Window functions that count rows: for them a row with the value NULL is still a row."""
_VALUES = (exp.FirstValue, exp.LastValue, exp.First, exp.Last)


def _filters_by_position(node: exp.Filter) -> bool:
    return isinstance(_without_nulls_clause(node.this), _BY_POSITION)


def _filtered_value(node: exp.Window) -> exp.Expr | None:
    """FIRST_VALUE or LAST_VALUE of the rows of a frame that satisfy a condition.

    In the other rows it is NULL, which IGNORE NULLS skips. In these it is a struct of the value,
    which is not NULL even where the value is.
    """
    filtered = _without_nulls_clause(node.this)
    if not isinstance(filtered, exp.Filter):
        return None
    call = _without_nulls_clause(filtered.this)
    if not isinstance(call, _VALUES):
        return None
    skip = any(isinstance(each, exp.IgnoreNulls) for each in (node.this, filtered.this))
    condition, value = filtered.expression.this, call.this
    name = exp.to_identifier("held")
    pair = exp.PropertyEQ(this=name.copy(), expression=value.copy())
    held = value if skip else exp.Struct(expressions=[pair])
    wanted = call.copy()
    wanted.set("this", _when(condition, held))
    window = node.copy()
    window.set("this", exp.IgnoreNulls(this=wanted))
    return window if skip else exp.Dot(this=window, expression=name)


def _without_nulls_clause(node: exp.Expr) -> exp.Expr:
    nulls = isinstance(node, exp.IgnoreNulls | exp.RespectNulls)
    return node.this if nulls else node


def _value(argument: exp.Expr) -> exp.Expr:
    return argument.expressions[0] if isinstance(argument, exp.Distinct) else argument


def _by(ordered: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The same direction and order of NULLs for another value."""
    moved = ordered.copy()
    moved.set("this", value.copy())
    return moved


def _kept(argument: exp.Expr, condition: exp.Expr) -> exp.Expr:
    if isinstance(argument, exp.Distinct):
        return exp.Distinct(expressions=[_when(condition, each) for each in argument.expressions])
    star = isinstance(argument, exp.Star)
    return _when(condition, exp.Literal.number(1) if star else argument)


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
