"""The aggregate of a rule as a plan: for each value of what it is taken for, one value.

What it is taken for are the variables J that it shares with the bindings B around it. With I the
ways to satisfy its body, the value is that of γ_J(I), joined to B on J. A count or a sum is zero
where I has nothing for a value of J: so those values stand in I themselves, with nothing to add.
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


class _Lowers(Protocol):
    @property
    def kinds(self) -> VariableTypes: ...

    def lowered(self, body: Body, wanted: set[str], given: Bindings | None = None) -> Bindings: ...


def aggregated(
    lower: _Lowers, term: Aggregate, result: Variable, found: Bindings, taken_for: set[str]
) -> tuple[Plan, str]:
    """The bindings beside the value of an aggregate, and that value as a scalar."""
    keys = tuple(found.columns[name] for name in found.columns if name in taken_for)
    domain = distinct(map_(found.plan, copied(found.plan, keys)))
    rows = _rows(lower, term, domain, found, taken_for)
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
    made = join(found.plan, groups, tuple((key, f"{key} of group") for key in keys))
    held = scalar.column(_RESULT)
    if sums:
        return made, _narrow(f"COALESCE({held}, CAST(0 AS {type_}))", lower.kinds.settled(result))
    made = filter_(made, f"NOT {held} IS NULL")
    return made, held


def _narrow(text: str, type_: str) -> str:
    return scalar.canonical(text if type_ == FLOAT else wrapped(text, type_))


def _type(lower: _Lowers, term: Aggregate) -> Type:
    return SPARK[lower.kinds.settled(term.target) if term.target is not None else NUMBER]


def _rows(
    lower: _Lowers, term: Aggregate, domain: Plan, found: Bindings, taken_for: set[str]
) -> Plan:
    """The ways to satisfy what is aggregated: what they are taken for, and the value of each."""
    aimed = {each.name for each in variables(term.target)} if term.target is not None else set()
    if len(term.bodies) > 1 and term.function not in ("min", "max"):
        raise UserError(
            "D002",
            f"a choice inside {term.function} is not part of the language",
            span=term.span,
            remedy="derive the choice as a relation, and aggregate that",
        )
    held = {name: column for name, column in found.columns.items() if name in taken_for}
    made = []
    for body in term.bodies:
        given = None if taken_for <= bound_by(body, set()) else Bindings(domain, held)
        ways = lower.lowered(body, taken_for | aimed, given)
        made.append(_of_body(lower, term, ways, found, taken_for))
    return add(*made)


def _of_body(
    lower: _Lowers, term: Aggregate, ways: Bindings, found: Bindings, taken_for: set[str]
) -> Plan:
    """The value of every way, beside what it is taken for."""
    if term.target is None:
        text, plan = "1", ways.plan
    else:
        type_ = lower.kinds.settled(term.target)
        text = Scalars(lower.kinds, ways.columns).text(term.target, type_)
        partial = is_partial(term.target)
        plan = filter_(ways.plan, f"NOT {text} IS NULL") if partial else ways.plan
    keys = tuple(
        Output(each.name, each.type, scalar.column(ways.columns[name]))
        for name, column in found.columns.items()
        if name in taken_for
        for each in copied(found.plan, (column,))
    )
    return map_(plan, (*keys, Output(_VALUE, _type(lower, term), text)))
