"""A loop over relations as one plan over all its iterations: lifting (dbsp §5).

The differences Xₙ − Xₙ₋₁ of every iteration are an ordinary relation, whose rows say at which
iteration n they come. On such relations the body of a loop is made of ordinary operators again:
linear ones carry n along, what is read from outside comes at the first iteration, what the loop
itself has reached comes one iteration later, and a pair of rows comes when the later one does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from everview.expr import scalar
from everview.expr.types import BEGUN, ITERATION, Column
from everview.plan.build import add, columns_of, filter_, identity, join, map_, negate, project
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Map,
    Negate,
    Output,
    Plan,
    Recursive,
    Source,
    Unnest,
    Values,
)
from everview.plan.text import print_plan
from everview.plan.traverse import children, recurs, schema_of, with_children

MAX_ITERATIONS = 100_000
"""The limit of a loop that was given none. In process an endless one is there in half a minute."""

_STEP = scalar.column(ITERATION)
_LIFTED = (Filter, Map, Unnest, Add, Negate, Join, Recursive)


def trace_of(node: Fixpoint, name: str) -> Fixpoint:
    """One relation of a loop, with the iteration at which each row comes."""
    return replace(node, result=name, traced=True)


def label(node: Fixpoint) -> str:
    """A name for a loop, the same whichever of its relations is read."""
    text = print_plan(replace(node, result=node.names[0], traced=False))
    digest = hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
    return f"{'_'.join(node.names[:3])}__{digest}"


def summed(body: Plan) -> Plan:
    """What a relation of a loop is the distinct of, or is itself."""
    return body.child if isinstance(body, Distinct) else body


def is_lifted(node: Fixpoint) -> bool:
    """Whether every body is a distinct, or none, over operators that can be lifted."""
    return BEGUN not in node.names and all(
        map(_lifts, (summed(body) for _, body in node.equations))
    )


def _lifts(plan: Plan) -> bool:
    if not recurs(plan):
        return True
    return isinstance(plan, _LIFTED) and all(map(_lifts, children(plan)))


@dataclass(frozen=True, slots=True)
class Lifted:
    """The sum that a relation of a loop depends on, over all iterations.

    `plan` reads what is outside and what the loop has reached as sources, by the names in
    `outside` and `inside`.
    """

    plan: Plan
    outside: dict[str, Plan]
    inside: dict[str, str]


def opened(body: Plan) -> Lifted:
    """A body of a loop over named leaves, as it is at one iteration."""
    outside: dict[str, Plan] = {}
    inside: dict[str, str] = {}
    return Lifted(_opened(body, outside, inside, count()), outside, inside)


def _opened(
    plan: Plan, outside: dict[str, Plan], inside: dict[str, str], numbers: Iterator[int]
) -> Plan:
    if isinstance(plan, Recursive):
        inside[f"@{plan.name}"] = plan.name
        return Source(f"@{plan.name}", plan.schema)
    if not recurs(plan) and not isinstance(plan, Values):
        known = next((name for name, each in outside.items() if each == plan), None)
        name = known or f"@{next(numbers)}"
        outside[name] = plan
        return Source(name, schema_of(plan))
    return with_children(
        plan, tuple(_opened(part, outside, inside, numbers) for part in children(plan))
    )


def lifted(body: Plan) -> Lifted:
    """A body of a loop over named leaves, as it is over all iterations."""
    found = opened(body)
    made = _with_iteration(_lift(found.plan, found.inside))
    return replace(found, plan=project(made, (*columns_of(found.plan), ITERATION)))


def _lift(plan: Plan, inside: dict[str, str]) -> tuple[Plan, bool]:
    """The plan over all iterations; False when it does not depend on them and has no column."""
    match plan:
        case Source(name, schema, _) if name in inside:
            steps = Source(name, (*schema, Column(ITERATION, "int")))
            return map_(steps, (*identity(schema), _output(f"{_STEP} + 1"))), True
        case Filter(child, predicate):
            made, moves = _lift(child, inside)
            return filter_(made, predicate), moves
        case Map(child, outputs):
            made, moves = _lift(child, inside)
            return map_(made, (*outputs, _output(_STEP)) if moves else outputs), moves
        case Unnest(child):
            made, moves = _lift(child, inside)
            return replace(plan, child=made), moves
        case Negate(child):
            made, moves = _lift(child, inside)
            return negate(made), moves
        case Add(left, right):
            first, second = _lift(left, inside), _lift(right, inside)
            if not (first[1] or second[1]):
                return plan, False
            return add(_with_iteration(first), _with_iteration(second)), True
        case Join():
            return _lift_join(plan, inside)
        case _:
            return plan, False


def _lift_join(plan: Join, inside: dict[str, str]) -> tuple[Plan, bool]:
    """A pair comes when the later of its rows comes."""
    left, first = _lift(plan.left, inside)
    right, second = _lift(plan.right, inside)
    if not (first or second):
        return plan, False
    both = first and second
    other = f"{ITERATION}right"
    if both:
        renamed = Output(other, "int", _STEP)
        right = map_(right, (*identity(schema_of(plan.right)), renamed))
    made = join(left, right, plan.on, plan.residual, plan.nulls)
    when = f"GREATEST({_STEP}, {scalar.column(other)})" if both else _STEP
    return map_(made, (*identity(schema_of(plan)), _output(when))), True


def _with_iteration(made: tuple[Plan, bool]) -> Plan:
    """What does not depend on the iteration comes at the first one."""
    plan, moves = made
    return plan if moves else map_(plan, (*identity(schema_of(plan)), _output("1")))


def _output(text: str) -> Output:
    return Output(ITERATION, "int", scalar.canonical(text))


def unlifted(plan: Plan) -> Plan:
    """Rows without the iteration at which they come: the sum of all differences."""
    return project(plan, tuple(name for name in columns_of(plan) if name != ITERATION))
