"""What a rule may ask for: the change of what its operator reads, and the change of a loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from everview.expr.types import ITERATION, Column, Schema
from everview.plan.nodes import Fixpoint, Plan, Ref


class Derive(Protocol):
    """Δ, as the rule of an operator uses it."""

    def __call__(self, plan: Plan, /) -> Plan:
        """The change of a plan that the operator reads."""

    def partial(self, plan: Plan, changed: Collection[str]) -> Plan:
        """The change of a plan over sources of its own, of which only `changed` change."""

    def keeps(self, plan: Plan, /) -> bool:
        """Whether a map of some factors of a product is stored, so that a change looks it up."""

    def loop(self, change: LoopChange) -> Plan:
        """The change of the relation that a traced loop is asked for, iteration by iteration."""


@dataclass(frozen=True, slots=True)
class RelationChange:
    """How one relation X = δ(S) or X = S of a loop changes, over all iterations (dbsp §6).

    S is `sum`, what the body of X adds up to, before the transaction. ΔS = `start` + Σₙ `later`:
    `start` is caused from outside the loop, `later` by the ΔX of one iteration for later ones.
    Either may be empty. The names stand for relations that exist while the loop is followed.
    """

    name: str
    schema: Schema
    sum: Plan
    start: Plan
    later: Plan
    is_set: bool
    loop: str

    @property
    def lifted(self) -> Schema:
        """The columns of X and the iteration at which a row comes."""
        return (*self.schema, Column(ITERATION, "int"))

    @property
    def now(self) -> Ref:
        """What one iteration adds to ΔX."""
        return now(self.loop, self.name, self.lifted)

    @property
    def before(self) -> Ref:
        """What the iterations before it added to ΔX."""
        return before(self.loop, self.name, self.lifted)

    @property
    def touched(self) -> Ref:
        """The rows whose sum changes."""
        return Ref(f"{self.loop} touched {self.name}", self.schema)

    @property
    def sums(self) -> Ref:
        """ΔS, when the loop has ended."""
        return Ref(f"{self.loop} sums {self.name}", self.lifted)

    @property
    def changes(self) -> Ref:
        """ΔX, when the loop has ended."""
        return Ref(f"{self.loop} changes {self.name}", self.lifted)


@dataclass(frozen=True, slots=True)
class LoopChange:
    """How the relations of a traced loop change."""

    node: Fixpoint
    relations: tuple[RelationChange, ...]


def now(loop: str, name: str, schema: Schema) -> Ref:
    """What the current iteration of a loop adds to the change of a relation."""
    return Ref(f"{loop} now {name}", schema)


def before(loop: str, name: str, schema: Schema) -> Ref:
    """What the iterations before it added to the change of a relation."""
    return Ref(f"{loop} before {name}", schema)
