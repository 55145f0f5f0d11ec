"""Semi-naive evaluation: a recursion from scratch, each iteration over what the last one added.

Xₙ₊₁ − Xₙ = B(Xₙ) − B(Xₙ₋₁) is the derivative of the body (dbsp eq. 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from everview.differentiate.derive import derive
from everview.differentiate.lifting import MAX_ITERATIONS, is_lifted, opened, summed
from everview.errors import UserError
from everview.expr.types import ITERATION, WEIGHT
from everview.plan.build import add, columns_of, distinct, negate, restrict_to_keys
from everview.plan.nodes import Change, Distinct, Empty, Fixpoint, Plan, Recursive, Ref, Source
from everview.plan.traverse import children, has_loops, schema_of, transform, with_children
from everview.rewrite.loop_normal_form import flattened
from everview.rewrite.normalize import normalize
from everview.runtime.arrow_types import arrow_schema

MAX_CHUNKS = 64
"""A relation of more chunks is copied into one."""


class PlanEvaluator(Protocol):
    """Evaluates plans without loops over relations that are registered by name."""

    def evaluate(self, plan: Plan) -> pa.Table:
        """The consolidated rows of a plan."""

    def materialize(self, name: str, plan: Plan) -> None:
        """Make the consolidated rows of a plan known under a name."""

    def register(self, name: str, table: pa.Table) -> None:
        """Make weighted rows known under a name."""


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
        loop = node if node.traced else flattened(node)
        steps = _Loop(loop, self).steps()
        for name in node.names:
            each = replace(node, result=name)
            rows = [_at(rows, n + 1) if node.traced else rows for n, rows in enumerate(steps[name])]
            empty = arrow_schema(schema_of(each)).empty_table()
            self._reached[each] = self._fresh(each)
            self.evaluator.register(self._reached[each].name, pa.concat_tables([empty, *rows]))

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


def _at(rows: pa.Table, iteration: int) -> pa.Table:
    """Rows that come at an iteration."""
    column = pa.array([iteration] * rows.num_rows, pa.int32())
    return rows.add_column(rows.num_columns - 1, ITERATION, column)


class _Loop:
    """One loop, run to its end."""

    def __init__(self, node: Fixpoint, solver: Solver) -> None:
        self._node = node
        self._solver = solver
        self._before: dict[str, pa.Table] = {}
        self._now: dict[str, pa.Table] = {}
        self._given: set[str] = set()
        make = self._added if is_lifted(node) else self._difference
        for name in node.names:
            empty = arrow_schema(schema_of(node.body(name))).empty_table()
            self._before[name] = self._now[name] = empty
        self._plans = {name: make(name) for name in node.names}

    def steps(self) -> dict[str, list[pa.Table]]:
        """What each iteration adds to each relation."""
        node, rows = self._node, self._solver.evaluator.evaluate
        found: dict[str, list[pa.Table]] = {name: [] for name in node.names}
        for iteration in range((node.limit or MAX_ITERATIONS) + 1):
            added = {name: rows(plans[iteration > 0]) for name, plans in self._plans.items()}
            if not any(each.num_rows for each in added.values()):
                return found
            self._advance(added)
            for name, each in added.items():
                found[name].append(each)
        raise endless(node.result, node.limit)

    def _advance(self, added: Mapping[str, pa.Table]) -> None:
        for name, rows in added.items():
            if name in self._given and not rows.num_rows and not self._now[name].num_rows:
                continue
            self._given.add(name)
            both = pa.concat_tables([self._before[name], self._now[name]])
            chunks = both.column(WEIGHT).num_chunks
            self._before[name] = both.combine_chunks() if chunks > MAX_CHUNKS else both
            self._now[name] = rows
            self._solver.evaluator.register(_before(name), self._before[name])
            self._solver.evaluator.register(_now(name), rows)

    def _added(self, name: str) -> tuple[Plan, Plan]:
        """What the first iteration adds to a relation, and what each later one does."""
        body = self._node.body(name)
        found = opened(summed(body))
        outside = {each: self._solver.value(plan) for each, plan in found.outside.items()}

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
        if not isinstance(body, Distinct):
            return start, moved
        return distinct(start), self._fresh(distinct(moved), name)

    def _fresh(self, plan: Plan, name: str) -> Plan:
        """The rows of a set that were not reached before."""
        reached = self._reached(name)
        return add(plan, negate(restrict_to_keys(plan, reached, columns_of(plan))))

    def _reached(self, name: str) -> Plan:
        schema = schema_of(self._node.body(name))
        return add(Ref(_before(name), schema), Ref(_now(name), schema))

    def _difference(self, name: str) -> tuple[Plan, Plan]:
        """What any iteration makes of a relation, minus what there was."""
        body = self._node.body(name)

        def reached(leaf: Plan) -> Plan:
            return self._reached(leaf.name) if isinstance(leaf, Recursive) else leaf

        def nothing(leaf: Plan) -> Plan:
            return Empty(leaf.schema) if isinstance(leaf, Recursive) else leaf

        moved = add(transform(body, reached), negate(self._reached(name)))
        return normalize(transform(body, nothing)), normalize(moved)


def _before(name: str) -> str:
    return f"before {name}"


def _now(name: str) -> str:
    return f"now {name}"
