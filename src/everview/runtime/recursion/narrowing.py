"""Narrows the body of a loop to slices: what is large is read by the keys of what is small.

Sideways information passing: in now ⋈ R, of R only the rows with a key of `now` matter. So a body
over few rows costs by those rows and what they meet, not by what was reached or is joined with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from everview.expr import scalar
from everview.expr.types import Schema, type_in
from everview.plan.build import columns_of
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Join,
    Map,
    Negate,
    Plan,
    Ref,
    Restrict,
    Values,
)
from everview.plan.traverse import referred, schema_of, walk


class NarrowingError(Exception):
    """A plan reads all of something large, whatever the keys are."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of `plan`, by the name under which the narrowed plan reads them.

    They are at least those whose `keys` are the `probe_keys` of a row of `probe`; all without keys.
    """

    name: str
    plan: Plan
    keys: tuple[str, ...]
    probe: Plan
    probe_keys: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The columns of the rows."""
        return schema_of(self.plan)


@dataclass(slots=True)
class Narrowing:
    """Narrows plans; relations that are not `small` are read in slices.

    `growing` are the relations that rows are added to, and that a slice may read only row by row.
    The slices are in the order in which they are filled: a probe may read those before it.
    """

    small: frozenset[str]
    growing: frozenset[str] = frozenset()
    slices: list[Slice] = field(default_factory=list)
    _made: set[str] = field(default_factory=set)

    def narrow(self, plan: Plan) -> Plan:
        """The same plan over small relations and slices."""
        if self._is_small(plan):
            return plan
        match plan:
            case Filter(child) | Map(child) | Negate(child) | Distinct(child):
                return replace(plan, child=self.narrow(child))
            case Add(left, right):
                return replace(plan, left=self.narrow(left), right=self.narrow(right))
            case Join(left, right, on):
                one, other = self._pair(left, right, on)
                return replace(plan, left=one, right=other)
            case Restrict(child, to, on):
                one, other = self._pair(child, to, on)
                return replace(plan, child=one, to=other)
            case _:
                raise NarrowingError(type(plan).__name__)

    def _pair(self, left: Plan, right: Plan, on: Sequence[tuple[str, str]]) -> tuple[Plan, Plan]:
        """Both sides of a join, the one by the keys of the other."""
        ours, theirs = tuple(a for a, _ in on), tuple(b for _, b in on)
        if self._is_bounded_by_small(left):
            one = self.narrow(left)
            return one, self._by_keys(right, theirs, one, ours)
        if self._is_bounded_by_small(right):
            other = self.narrow(right)
            return self._by_keys(left, ours, other, theirs), other
        raise NarrowingError("a join of what is large")

    def _by_keys(
        self, plan: Plan, keys: tuple[str, ...], probe: Plan, probe_keys: tuple[str, ...]
    ) -> Plan:
        """A side of a join, of which only rows with the keys of a probe matter."""
        if self._is_small(plan):
            return plan
        if self._is_row_by_row(plan):
            return self._slice(plan, keys, probe, probe_keys)
        match plan:
            case Add(left, right):
                return replace(
                    plan,
                    left=self._by_keys(left, keys, probe, probe_keys),
                    right=self._by_keys(right, keys, probe, probe_keys),
                )
            case Filter(child) | Negate(child):
                return replace(plan, child=self._by_keys(child, keys, probe, probe_keys))
            case Map(child, outputs):
                origin = {output.name: scalar.as_column(output.scalar) for output in outputs}
                under = tuple(name for key in keys if (name := origin[key]) is not None)
                if len(under) == len(keys):
                    return replace(plan, child=self._by_keys(child, under, probe, probe_keys))
            case Join(left, right, on):
                ours, theirs = tuple(a for a, _ in on), tuple(b for _, b in on)
                if {*keys} <= {*columns_of(left)}:
                    one = self._by_keys(left, keys, probe, probe_keys)
                    return replace(plan, left=one, right=self._by_keys(right, theirs, one, ours))
                if {*keys} <= {*columns_of(right)}:
                    other = self._by_keys(right, keys, probe, probe_keys)
                    return replace(plan, left=self._by_keys(left, ours, other, theirs), right=other)
        if {each.name for each in referred(plan)}.isdisjoint(self.small | self.growing):
            return self._slice(plan, keys, probe, probe_keys)
        raise NarrowingError(type(plan).__name__)

    def _slice(
        self, plan: Plan, keys: tuple[str, ...], probe: Plan, probe_keys: tuple[str, ...]
    ) -> Plan:
        ours, theirs = schema_of(plan), schema_of(probe)
        if [type_in(ours, key) for key in keys] != [type_in(theirs, key) for key in probe_keys]:
            raise NarrowingError("keys of different types")
        made = Slice(f"slice {len(self.slices)}", plan, keys, probe, probe_keys)
        self.slices.append(made)
        self._made.add(made.name)
        return Ref(made.name, made.schema)

    def _is_small(self, plan: Plan) -> bool:
        return all(each.name in self.small or each.name in self._made for each in referred(plan))

    def _is_bounded_by_small(self, plan: Plan) -> bool:
        """Whether a plan has no rows where the small relations have none."""
        match plan:
            case Ref(name):
                return name in self.small or name in self._made
            case Filter(child) | Map(child) | Negate(child):
                return self._is_bounded_by_small(child)
            case Add(left, right):
                return self._is_bounded_by_small(left) and self._is_bounded_by_small(right)
            case Join(left, right) | Restrict(left, right):
                return self._is_bounded_by_small(left) or self._is_bounded_by_small(right)
            case Values():
                return True
            case _:
                return False

    def _is_row_by_row(self, plan: Plan) -> bool:
        """Whether a plan over one relation computes each row by itself."""
        return all(isinstance(node, Filter | Map | Negate | Ref) for node in walk(plan))
