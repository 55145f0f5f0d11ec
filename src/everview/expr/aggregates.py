"""THE AGGREGATES: every function of a whole group, what Spark casts its arguments to, its type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.expr.parameters import (
    Parameter,
    a_double,
    a_string,
    an_integer,
    anything,
    exactly,
    summand,
)
from everview.expr.types import INTEGERS, Type, decimal_parts, storable_type


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function: its parameters, and its type from those of its arguments.

    With `copies`, the number of copies of a row matters and the function is not a sum, so it is
    computed over rows repeated by their weight. With `window`, it may stand before OVER.
    """

    parameters: tuple[Parameter, ...]
    result: Callable[[Type], Type]
    copies: bool = True
    window: bool = True


def aggregate_operands(function: str, types: tuple[Type, ...]) -> tuple[Type, ...] | None:
    """The types Spark casts the arguments to, None where they cannot be aggregated so.

    >>> aggregate_operands("covar_pop", ("int", "decimal(5,2)"))
    ('double', 'double')
    >>> aggregate_operands("sum", ("date",))
    """
    parameters = AGGREGATES[function].parameters
    if function == "count":
        parameters = parameters * len(types)
    if len(parameters) != len(types):
        return None
    casts = (parameter(type_) for parameter, type_ in zip(parameters, types, strict=True))
    operands = tuple(type_ for type_ in casts if type_ is not None)
    return operands if len(operands) == len(types) else None


def result_type(function: str, argument: Type) -> Type | None:
    """Spark's type of an aggregate, None where the argument cannot be aggregated as it is.

    >>> result_type("sum", "decimal(12,2)"), result_type("avg", "decimal(12,2)")
    ('decimal(22,2)', 'decimal(16,6)')
    """
    aggregate = AGGREGATES[function]
    is_taken = aggregate.parameters[0](argument) == argument
    return aggregate.result(argument) if is_taken else None


def counts_copies(function: str) -> bool:
    """Whether a function is computed over rows repeated by their weight."""
    return AGGREGATES[function].copies


def _stored(type_: Type) -> Type | None:
    """Any type with an order, which maps have not."""
    return type_ if storable_type(type_) and "map<" not in type_ else None


def _wider(more: int, scale: int, whole: Type) -> Callable[[Type], Type]:
    """A decimal of more digits for a decimal, `whole` for an integer, double for the others."""

    def result(type_: Type) -> Type:
        parts = decimal_parts(type_)
        if parts:
            return f"decimal({min(38, parts[0] + more)},{min(38, parts[1] + scale)})"
        return whole if type_ in INTEGERS else "double"

    return result


def _same(type_: Type) -> Type:
    return type_


def _always(type_: Type) -> Callable[[Type], Type]:
    return lambda _: type_


def _each(names: str, function: AggregateFunction) -> dict[str, AggregateFunction]:
    return dict.fromkeys(names.split(), function)


_double = _always("double")

AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction((anything,), _always("bigint"), copies=False),
    "sum": AggregateFunction((summand,), _wider(10, 0, "bigint"), copies=False),
    "avg": AggregateFunction((summand,), _wider(4, 4, "double"), copies=False),
    **_each("min max", AggregateFunction((_stored,), _same, copies=False)),
    **_each("bool_and bool_or", AggregateFunction((exactly("boolean"),), _same, copies=False)),
    **_each("bit_and bit_or", AggregateFunction((an_integer,), _same, copies=False)),
    "bit_xor": AggregateFunction((an_integer,), _same),
    **_each("var_pop var_samp stddev_pop stddev_samp", AggregateFunction((a_double,), _double)),
    **_each("covar_pop covar_samp", AggregateFunction((a_double, a_double), _double)),
    **_each(
        "corr regr_slope regr_intercept regr_r2 regr_sxx regr_syy regr_sxy",
        AggregateFunction((a_double, a_double), _double, window=False),
    ),
    **_each("skewness kurtosis", AggregateFunction((a_double,), _double, window=False)),
    **_each(
        "max_by min_by", AggregateFunction((_stored, _stored), _same, copies=False, window=False)
    ),
    **_each(
        "percentile_cont percentile_disc", AggregateFunction((a_double,), _double, window=False)
    ),
    "mode": AggregateFunction((_stored,), _same, window=False),
    "listagg": AggregateFunction((a_string,), _same, window=False),
    "collect_list": AggregateFunction(
        (_stored,), lambda type_: f"array<{type_}>", copies=False, window=False
    ),
}
"""Every aggregate there is; sqlgen/aggregates.py has the spelling where engines differ."""
