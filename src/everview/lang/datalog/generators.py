"""The generator `range`: the values from a start to an end, which is excluded, by a step."""

from __future__ import annotations

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Column
from everview.lang.datalog.functors import FLOAT, SPARK
from everview.lang.datalog.scalars import Scalars, literal
from everview.lang.datalog.syntax import Call, Constant, Term
from everview.plan.build import join, unnest
from everview.plan.nodes import Empty, Plan, Values

RANGE_VALUES_MAX = 10_000
"""A range of constants with more values than this is a SEQUENCE, not VALUES."""
_VALUE = "generated"


def generated(plan: Plan, call: Call, type_: str, texts: Scalars) -> tuple[Plan, str]:
    """The rows of a plan, each once for every value, and the column that holds the value."""
    column = Column(_VALUE, SPARK[type_])
    ends = [_number(each) for each in call.arguments]
    known = [each for each in ends if each is not None]
    if len(known) == len(ends):
        found = tuple(_values(known[0], known[1], known[2] if len(known) > 2 else None))
        if len(found) <= RANGE_VALUES_MAX:
            rows = tuple((_written(each, type_, call),) for each in found)
            values = Values((column,), rows) if rows else Empty((column,))
            return join(plan, values), _VALUE
    if type_ == FLOAT:
        raise UserError(
            "D002",
            "a range of floats with ends that are not in the text is not part of the language",
            span=call.span,
            remedy="count with numbers, and convert them with itof",
        )
    return unnest(plan, _sequence(call, type_, texts), column), _VALUE


def _number(term: Term) -> int | float | None:
    if isinstance(term, Constant) and not isinstance(term.value, str):
        return term.value
    return None


def _values(start: float, stop: float, step: float | None) -> list[float]:
    """As Soufflé counts; a step of zero gives the start alone.

    >>> _values(1, 4, None), _values(5.0, 3.75, -0.5), _values(5, 1, 0), _values(5, 5, 0)
    ([1, 2, 3], [5.0, 4.5, 4.0], [5], [])
    """
    by = step if step is not None else (1 if start < stop else -1)
    if by == 0:
        return [start] if start != stop else []
    found: list[float] = []
    while (start < stop if by > 0 else start > stop) and len(found) <= RANGE_VALUES_MAX:
        found.append(start)
        start += by
    return found


def _written(value: float, type_: str, call: Call) -> str:
    return scalar.canonical(literal(Constant(value, type_, call.span), type_))


def _sequence(call: Call, type_: str, texts: Scalars) -> str:
    """The array of the values; SEQUENCE includes its end and refuses to go the wrong way."""
    spark = SPARK[type_]
    start, stop = (f"CAST({texts.text(each, type_)} AS BIGINT)" for each in call.arguments[:2])
    if len(call.arguments) > 2:
        step = f"CAST({texts.text(call.arguments[2], type_)} AS BIGINT)"
    else:
        step = f"CASE WHEN {start} < {stop} THEN CAST(1 AS BIGINT) ELSE CAST(-1 AS BIGINT) END"
    wrong = f"({step} > 0 AND {start} > {stop}) OR ({step} < 0 AND {start} < {stop})"
    empty = f"{start} = {stop} OR {wrong}"
    end = f"{stop} - CASE WHEN {step} > 0 THEN 1 ELSE -1 END"
    counted = (
        f"CASE WHEN {empty} THEN CAST(ARRAY() AS ARRAY<BIGINT>) "
        f"WHEN {step} = 0 THEN ARRAY({start}) ELSE SEQUENCE({start}, {end}, {step}) END"
    )
    return scalar.canonical(f"CAST({counted} AS ARRAY<{spark.upper()}>)")
