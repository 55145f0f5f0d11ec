"""The aggregate of a rule as a plan: GROUP BY the variables that it shares with the rule.

Let J be those grouping variables, B the bindings of the rule and I the bindings of the body of the
aggregate. The value is γ_J(I), joined with B on J. A count or a sum is zero where I has no row for
a value of J, so each value of J adds a row with the value 0 to I.
"""

from __future__ import annotations

from typing import Protocol

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.types import Type
from everview.lang.datalog.bindings import Bindings, copied
from everview.lang.datalog.functors import FLOAT, NUMBER, SPARK, wrapped
from everview.lang.datalog.normal_form import bound_by
from everview.lang.datalog.scalars import Scalars, is_partial
from everview.lang.datalog.syntax import Aggregate, Body, Variable, variables
from everview.lang.datalog.types import VariableTypes
from everview.plan.build import add, distinct, filter_, group_by, join, map_
from everview.plan.nodes import Aggregate as Grouped
from everview.plan.nodes import Output, Plan

_VALUE = "aggregated value"
_RESULT = "aggregate"
_FUNCTIONS = {"count": "sum", "sum": "sum", "min": "min", "max": "max", "mean": "avg"}


class LowersBodies(Protocol):
    """How the body of an aggregate is lowered: by the lowering of the rule around it."""

    @property
    def types(self) -> VariableTypes:
        """The types of the variables of the rule."""

    def lowered(self, body: Body, wanted: set[str], given: Bindings | None = None) -> Bindings:
        """All bindings that satisfy a body, starting from `given`, with the variables `wanted`."""


def aggregated(
    lower: LowersBodies, term: Aggregate, result: Variable, bindings: Bindings, grouping: set[str]
) -> tuple[Plan, str]:
    """The bindings joined with the value of an aggregate, and that value as a scalar."""
    keys = tuple(bindings.columns[name] for name in bindings.columns if name in grouping)
    domain = distinct(map_(bindings.plan, copied(bindings.plan, keys)))
    rows = _rows(lower, term, domain, bindings, grouping)
    sums = _FUNCTIONS[term.function] == "sum"
    value = _type(lower, term)
    if sums and keys:
        zero = Output(_VALUE, value, scalar.canonical(f"CAST(0 AS {value})"))
        rows = add(rows, map_(domain, (*copied(domain), zero)))
    function = _FUNCTIONS[term.function]
    type_ = result_type(function, value)
    assert type_ is not None
    groups = group_by(rows, keys, (Grouped(_RESULT, type_, function, _VALUE),))
    theirs = tuple(
        Output(f"{each.name} of group", each.type, each.scalar) for each in copied(groups, keys)
    )
    groups = map_(groups, (*theirs, *copied(groups, (_RESULT,))))
    joined = join(bindings.plan, groups, tuple((key, f"{key} of group") for key in keys))
    held = scalar.column(_RESULT)
    if sums:
        return joined, _narrow(
            f"COALESCE({held}, CAST(0 AS {type_}))", lower.types.final_type(result)
        )
    return filter_(joined, f"NOT {held} IS NULL"), held


def _narrow(text: str, type_: str) -> str:
    return scalar.canonical(text if type_ == FLOAT else wrapped(text, type_))


def _type(lower: LowersBodies, term: Aggregate) -> Type:
    return SPARK[lower.types.final_type(term.target) if term.target is not None else NUMBER]


def _rows(
    lower: LowersBodies, term: Aggregate, domain: Plan, bindings: Bindings, grouping: set[str]
) -> Plan:
    """The rows to aggregate: the grouping variables and the value, for each binding of the body."""
    target_names = (
        {each.name for each in variables(term.target)} if term.target is not None else set()
    )
    if len(term.bodies) > 1 and term.function not in ("min", "max"):
        raise UserError(
            "D002",
            f"a choice inside {term.function} is not part of the language",
            span=term.span,
            remedy="derive the choice as a relation, and aggregate that",
        )
    held = {name: column for name, column in bindings.columns.items() if name in grouping}
    rows = []
    for body in term.bodies:
        given = None if grouping <= bound_by(body, set()) else Bindings(domain, held)
        inner = lower.lowered(body, grouping | target_names, given)
        rows.append(_of_body(lower, term, inner, bindings, grouping))
    return add(*rows)


def _of_body(
    lower: LowersBodies, term: Aggregate, inner: Bindings, bindings: Bindings, grouping: set[str]
) -> Plan:
    """The value for every binding of one body, with the grouping variables."""
    if term.target is None:
        text, plan = "1", inner.plan
    else:
        type_ = lower.types.final_type(term.target)
        text = Scalars(lower.types, inner.columns).text(term.target, type_)
        partial = is_partial(term.target)
        plan = filter_(inner.plan, f"NOT {text} IS NULL") if partial else inner.plan
    keys = tuple(
        Output(each.name, each.type, scalar.column(inner.columns[name]))
        for name, column in bindings.columns.items()
        if name in grouping
        for each in copied(bindings.plan, (column,))
    )
    return map_(plan, (*keys, Output(_VALUE, _type(lower, term), text)))
