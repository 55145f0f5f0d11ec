"""Semi-naive evaluation: a recursion from scratch, each iteration over what the last one added.

Xₙ₊₁ − Xₙ = B(Xₙ) − B(Xₙ₋₁) is the derivative of the body (dbsp eq. 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from everview.differentiate.derive import derive
from everview.differentiate.lifting import MAX_ITERATIONS, is_lifted, opened, summed
from everview.errors import UserError
from everview.expr.types import Schema
from everview.plan.build import add, columns_of, distinct, negate, restrict_to_keys
from everview.plan.nodes import Change, Distinct, Empty, Fixpoint, Plan, Recursive, Ref, Source
from everview.plan.traverse import children, has_loops, schema_of, transform, with_children
from everview.rewrite.loop_normal_form import flattened
from everview.rewrite.normalize import normalize


class PlanEvaluator(Protocol):
    """Evaluates plans without loops over relations that are known by name."""

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the consolidated rows of a plan known under a name."""

    def reach(self, loop: LoopPlans, names: Mapping[str, str]) -> None:
        """Run a loop, and make what its relations reach known under names.

        Rows of a traced loop have the iteration at which they come.
        """


def endless(name: str, limit: int) -> UserError:
    """The error for a loop that goes beyond its limit, or beyond what any may."""
    why = "its limit" if limit else "as many as there may be"
    return UserError(
        "E014",
        f"the recursion of {name} has not ended after {limit or MAX_ITERATIONS} iterations, {why}",
        remedy="let it end: with UNION instead of UNION ALL or a condition that becomes false; or "
        "give it a larger limit: MAX RECURSION LEVEL in SQL, `limit` in a plan",
    )


@dataclass(slots=True)
class Solver:
    """Turns plans with loops into plans over what the loops reach."""

    evaluator: PlanEvaluator
    _reached: dict[Plan, Ref] = field(default_factory=dict)
    _names: int = 0

    def solved(self, plan: Plan) -> Plan:
        """The same plan, with each loop in it replaced by what it reaches."""
        if not has_loops(plan):
            return plan
        node = with_children(plan, tuple(self.solved(part) for part in children(plan)))
        if isinstance(node, Fixpoint) and node not in self._reached:
            self._solve(node)
        return self._reached.get(node, node)

    def _solve(self, node: Fixpoint) -> None:
        """What every relation of a loop reaches, and when its rows came."""
        loop = loop_plans(node if node.traced else flattened(node), self.value)
        each = {name: replace(node, result=name) for name in node.names}
        refs = {name: self._fresh(plan) for name, plan in each.items()}
        self.evaluator.reach(loop, {name: ref.name for name, ref in refs.items()})
        self._reached |= {each[name]: ref for name, ref in refs.items()}

    def _fresh(self, like: Plan) -> Ref:
        self._names += 1
        return Ref(f"reached {self._names}", schema_of(like))

    def value(self, plan: Plan) -> Ref:
        """The value of a plan, made known under a name."""
        if isinstance(plan, Ref):
            return plan
        ref = self._fresh(plan)
        self.evaluator.materialize(ref.name, plan)
        return ref


@dataclass(frozen=True, slots=True)
class RelationPlans:
    """What the first iteration adds to one relation of a loop, and what each later one does.

    Plans read what the iteration before added as `now`, and what those before that did as `before`.
    `later` may have rows again that were reached before; `fresh` has not.
    """

    name: str
    schema: Schema
    first: Plan
    later: Plan
    is_set: bool

    @property
    def now(self) -> str:
        """The name of what the last iteration added."""
        return _now(self.name)

    @property
    def before(self) -> str:
        """The name of what iterations before the last one added."""
        return _before(self.name)

    @property
    def fresh(self) -> Plan:
        """The rows of a later iteration that were not reached before."""
        if not self.is_set:
            return self.later
        reached = add(Ref(self.before, self.schema), Ref(self.now, self.schema))
        again = restrict_to_keys(self.later, reached, columns_of(self.later))
        return add(self.later, negate(again))


@dataclass(frozen=True, slots=True)
class LoopPlans:
    """A loop as the plans of its iterations."""

    relations: tuple[RelationPlans, ...]
    result: str
    limit: int
    traced: bool

    def must_not_go_on(self, iteration: int) -> None:
        """An error if an iteration that adds rows, counted from one, is beyond the last allowed."""
        if iteration > (self.limit or MAX_ITERATIONS):
            raise endless(self.result, self.limit)


def loop_plans(node: Fixpoint, value: Callable[[Plan], Ref]) -> LoopPlans:
    """The plans of a loop; `value` names the value of what its bodies read from outside."""
    make = _added if is_lifted(node) else _difference
    relations = tuple(make(node, name, value) for name in node.names)
    return LoopPlans(relations, node.result, node.limit, node.traced)


def _added(node: Fixpoint, name: str, value: Callable[[Plan], Ref]) -> RelationPlans:
    """The derivative of a body, of a set without what was reached before."""
    body = node.body(name)
    found = opened(summed(body))
    outside = {each: value(plan) for each, plan in found.outside.items()}

    def first(leaf: Plan) -> Plan:
        if isinstance(leaf, Source):
            return outside.get(leaf.name) or Empty(leaf.schema)
        return leaf

    def later(leaf: Plan) -> Plan:
        match leaf:
            case Source(source, schema, _):
                return outside.get(source) or Ref(_before(found.inside[source]), schema)
            case Change(source, schema):
                return Ref(_now(found.inside[source]), schema)
            case _:
                return leaf

    start = normalize(transform(found.plan, first))
    moved = normalize(transform(derive(found.plan, frozenset(found.inside)), later))
    is_set = isinstance(body, Distinct)
    if is_set:
        start, moved = distinct(start), distinct(moved)
    return RelationPlans(name, schema_of(body), start, moved, is_set)


def _difference(node: Fixpoint, name: str, _: Callable[[Plan], Ref]) -> RelationPlans:
    """What any iteration makes of a relation, minus what there was."""
    body = node.body(name)

    def everything(each: str) -> Plan:
        schema = schema_of(node.body(each))
        return add(Ref(_before(each), schema), Ref(_now(each), schema))

    def reached(leaf: Plan) -> Plan:
        return everything(leaf.name) if isinstance(leaf, Recursive) else leaf

    def nothing(leaf: Plan) -> Plan:
        return Empty(leaf.schema) if isinstance(leaf, Recursive) else leaf

    moved = normalize(add(transform(body, reached), negate(everything(name))))
    return RelationPlans(name, schema_of(body), normalize(transform(body, nothing)), moved, False)


def _before(name: str) -> str:
    return f"before {name}"


def _now(name: str) -> str:
    return f"now {name}"
