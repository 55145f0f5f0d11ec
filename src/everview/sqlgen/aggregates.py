"""An aggregate of a group as SQL for Spark and for DuckDB: the spellings that differ, one row each.

An aggregate that has no row here is spelled by its own name on both engines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from everview.expr.types import WEIGHT, Schema, decimal_parts, is_exact, is_nested, type_in
from everview.plan.nodes import Aggregate, Order
from everview.sqlgen.parity.errors import NotAtParity

if TYPE_CHECKING:
    from everview.sqlgen.dialects import Dialect


def emit_aggregate(aggregate: Aggregate, schema: Schema, dialect: Dialect) -> str:
    """An aggregate over consolidated rows, each counted as often as its weight says."""
    if aggregate.column is None:
        return f"CAST(COALESCE(SUM({WEIGHT}), 0) AS BIGINT)"
    column, type_ = dialect.quote(aggregate.column), type_in(schema, aggregate.column)
    if aggregate.function == "collect_list":
        return dialect.collect(column, type_, aggregate.distinct)
    if aggregate.function in ("min", "max") and (by := dialect.sort_key(column, type_)) != column:
        best = f"ARG_{aggregate.function.upper()}"
        return f"{best}({column}, {by}) FILTER (WHERE {column} IS NOT NULL)"
    if aggregate.distinct or aggregate.function not in ("count", "sum", "avg"):
        return _of_values(aggregate, schema, dialect)
    present = f"SUM(CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END)"
    if aggregate.function == "count":
        return f"CAST(COALESCE({present}, 0) AS BIGINT)"
    target = dialect.type_(aggregate.type)
    if parts := decimal_parts(type_):
        total = f"SUM({dialect.times_weight(column, parts)})"
    elif aggregate.function == "sum" and aggregate.type == "bigint":
        return f"CAST(SUM(CAST({column} AS {dialect.wide_integer}) * {WEIGHT}) AS {target})"
    else:
        total = f"SUM(CAST({column} AS DOUBLE) * {WEIGHT})"
    if aggregate.function == "avg":
        total = f"CASE WHEN {present} = 0 THEN NULL ELSE {total} / {present} END"
    return f"CAST({total} AS {target})"


def emit_order(order: tuple[Order, ...], placed: Callable[[str], str]) -> str:
    """The items of an ORDER BY; `placed` is what a column is ordered by."""
    return ", ".join(
        f"{placed(each.column)} {'DESC' if each.descending else 'ASC'} "
        f"NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in order
    )


def _of_values(aggregate: Aggregate, schema: Schema, dialect: Dialect) -> str:
    """An aggregate of the values of a group, or of the rows as they stand there."""
    nested = [t for a in aggregate.arguments if is_nested(t := type_in(schema, a))]
    if nested and dialect.name == "duckdb" and aggregate.function != "count":
        raise NotAtParity(f"{aggregate.function} of {nested[0]}")
    call = _Call(
        tuple(map(dialect.quote, aggregate.arguments)),
        "DISTINCT " if aggregate.distinct and aggregate.function not in _OF_THE_SET else "",
        emit_order(
            aggregate.order,
            lambda name: dialect.sort_key(dialect.quote(name), type_in(schema, name)),
        ),
        aggregate.order[0].descending if aggregate.order else False,
        dialect.scalar(aggregate.fixed, ()) if aggregate.fixed else "",
    )
    if aggregate.function in ("sum", "avg"):
        call = _widened(call, aggregate, schema, dialect)
    spelling = _SPELLINGS[dialect.name].get(aggregate.function, _named(aggregate.function))
    sql = spelling(call)
    if sql is None:
        raise NotAtParity(aggregate.function)
    if aggregate.function in ("min", "max", "bool_and", "bool_or"):
        return sql
    return f"CAST({sql} AS {dialect.type_(aggregate.type)})"


_OF_THE_SET = ("min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "max_by", "min_by")
"""Aggregates for which it makes no difference how often a value occurs."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One use: the columns it reads, DISTINCT or nothing, the order, and what the text fixes."""

    args: tuple[str, ...]
    distinct: str
    order: str
    descending: bool
    fixed: str


def _widened(call: _Call, aggregate: Aggregate, schema: Schema, dialect: Dialect) -> _Call:
    """The distinct values in a type in which they can be summed."""
    exact = is_exact(type_in(schema, aggregate.column or ""))
    wide = dialect.wide_integer if exact and not decimal_parts(aggregate.type) else None
    value = f"CAST({call.args[0]} AS {wide})" if wide else call.args[0]
    if not exact:
        value = f"CAST({call.args[0]} AS DOUBLE)"
    return _Call((value,), call.distinct, "", False, "")


_Spelling: TypeAlias = Callable[[_Call], str | None]


def _named(function: str) -> _Spelling:
    return lambda call: f"{function.upper()}({call.distinct}{', '.join(call.args)})"


def _template(text: str) -> _Spelling:
    """Arguments by number; {pair} are both, with DISTINCT where that is asked for."""

    def spell(call: _Call) -> str:
        pair = f"{call.distinct}{', '.join(call.args)}"
        way = "DESC" if call.descending else "ASC"
        return text.format(
            *call.args,
            pair=pair,
            way=way,
            order=call.order,
            fixed=call.fixed,
            distinct=call.distinct,
        )

    return spell


def _spark_extreme(function: str) -> _Spelling:
    """Of the values that tie, the greatest by MAX_BY and the least by MIN_BY."""
    ranked = "CASE WHEN {1} IS NULL THEN NULL ELSE NAMED_STRUCT('by', {1}, 'value', {0}) END"
    return _template(f"{function.upper()}({{0}}, {ranked})")


def _spark_percentile(call: _Call) -> str:
    if call.descending:
        return f"PERCENTILE_CONT({call.fixed}) WITHIN GROUP (ORDER BY {call.args[0]} DESC)"
    return f"PERCENTILE({call.distinct}{call.args[0]}, {call.fixed})"


def _duckdb_count(call: _Call) -> str:
    if len(call.args) == 1:
        return f"COUNT({call.distinct}{call.args[0]})"
    missing = " OR ".join(f"{arg} IS NULL" for arg in call.args)
    values = f"CASE WHEN {missing} THEN NULL ELSE ({', '.join(call.args)}) END"
    return f"COUNT({call.distinct}{values})"


def _of_sorted(formula: str) -> _Spelling:
    """A function of the sorted values of a group, which are called l."""
    values = "list({distinct}{0} ORDER BY {0} {way}) FILTER (WHERE {0} IS NOT NULL)"
    return _template(f"list_transform([{values}], lambda l: {formula})[1]")


_PLACE = "((len(l) - 1) * {fixed}::DOUBLE)"
_LOW, _HIGH = (f"l[CAST({way}({_PLACE}) AS BIGINT) + 1]" for way in ("floor", "ceil"))
_BETWEEN = (
    f"CASE WHEN {_LOW} = {_HIGH} THEN {_LOW} "
    f"ELSE {_LOW} + ({_HIGH} - {_LOW}) * ({_PLACE} - floor({_PLACE})) END"
)
"""The value at a place between two others, as Spark finds it, to the bit."""
_UP_TO = "l[greatest(1, CAST(ceil(len(l) * {fixed}::DOUBLE) AS BIGINT))]"
"""The first value that has the given part of the values up to it."""


def _spark_listed(call: _Call) -> str:
    """Values in their order; of distinct ones by hand, where Spark fails beside other DISTINCTs."""
    [value] = call.args
    if not call.distinct:
        return f"LISTAGG({value}, {call.fixed}) WITHIN GROUP (ORDER BY {call.order})"
    ordered = f"SORT_ARRAY(COLLECT_SET({value}), {not call.descending})"
    return f"IF(COUNT({value}) > 0, ARRAY_JOIN({ordered}, {call.fixed}), NULL)"


_SPELLINGS: dict[str, dict[str, _Spelling]] = {
    "spark": {
        "max_by": _spark_extreme("max_by"),
        "min_by": _spark_extreme("min_by"),
        "percentile_cont": _spark_percentile,
        "percentile_disc": _template("PERCENTILE_DISC({fixed}) WITHIN GROUP (ORDER BY {0} {way})"),
        "mode": _template("MODE() WITHIN GROUP (ORDER BY {0} {way})"),
        "listagg": _spark_listed,
    },
    "duckdb": {
        "count": _duckdb_count,
        "corr": _template(
            "CASE WHEN REGR_SXX({pair}) = 0 OR REGR_SYY({pair}) = 0 THEN NULL ELSE CORR({pair}) END"
        ),
        "regr_slope": _template("CASE WHEN REGR_SXX({pair}) <> 0 THEN REGR_SLOPE({pair}) END"),
        "regr_intercept": _template(
            "CASE WHEN REGR_SXX({pair}) <> 0 THEN "
            "REGR_AVGY({pair}) - REGR_SLOPE({pair}) * REGR_AVGX({pair}) END"
        ),
        "skewness": lambda _: None,
        "kurtosis": lambda _: None,
        "max_by": _template(
            "FIRST({0} ORDER BY {1} DESC, {0} DESC NULLS LAST) FILTER (WHERE {1} IS NOT NULL)"
        ),
        "min_by": _template(
            "FIRST({0} ORDER BY {1} ASC, {0} ASC NULLS FIRST) FILTER (WHERE {1} IS NOT NULL)"
        ),
        "percentile_cont": _of_sorted(_BETWEEN),
        "percentile_disc": _of_sorted(_UP_TO),
        "mode": _template("MODE({0} ORDER BY {0} {way})"),
        "listagg": _template("STRING_AGG({distinct}{0}, {fixed} ORDER BY {order})"),
    },
}
