"""The physical program: straight-line steps, as data."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from everview.differentiate.lifting import MAX_ITERATIONS
from everview.expr.types import ITERATION, Column, Schema, searchable
from everview.plan.nodes import Plan
from everview.plan.traverse import referred


@dataclass(frozen=True, slots=True)
class State:
    """A stored relation that derivatives read: the value of `plan`, sorted by `sort`."""

    name: str
    plan: Plan
    sort: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of a range: a column of the rows that ask, plus a constant.

    The constant is in units of the type: days of a date, microseconds of a timestamp.
    """

    column: str
    plus: int = 0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Between which limits a stored `column` is wanted, for each row that asks; None is no limit.

    The limits belong to the range. A row in which one of them is NULL asks for nothing.
    """

    column: str
    low: Limit | None
    high: Limit | None


@dataclass(frozen=True, slots=True)
class KeySet:
    """The values of one column of a computed relation, by which a slice is fetched.

    A row is wanted if it agrees with one row of the relation in that column and in those of `also`:
    pairs of a column that is stored and one of the relation. Who fetches may leave them aside.
    Without a column, rows in a `range` are wanted, or all of them.
    """

    relation: str
    column: str = ""
    also: tuple[tuple[str, str], ...] = ()
    range: KeyRange | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Bring the rows of a stored relation whose `by` column is among the keys.

    Without `by` the whole relation is brought, or what is in the ranges of its keys, unless the
    keys have no rows. A slice may hold more rows than asked for: whatever reads it joins or
    restricts it again.
    """

    result: str
    relation: str
    schema: Schema
    by: str | None
    keys: tuple[KeySet, ...]

    @property
    def ranged_by(self) -> str | None:
        """The column in whose ranges all rows are that anyone asks for; None if there is none."""
        columns = {None if key.range is None else key.range.column for key in self.keys}
        return columns.pop() if len(columns) == 1 else None

    @property
    def reads_by(self) -> str | None:
        """How the relation is looked up, in words; None if the whole of it is read."""
        return ranges_of(column) if (column := self.ranged_by) else self.by


def lookup_step(result: str, relation: str, schema: Schema, by: Sequence[str], keys: str) -> Fetch:
    """The step that brings the rows which agree with keys of the same names in some columns."""
    first, *others = searchable(schema, by) or ("",)
    keyset = KeySet(keys, first, tuple((each, each) for each in others))
    return Fetch(result, relation, schema, first or None, (keyset,))


@dataclass(frozen=True, slots=True)
class Compute:
    """Evaluate `plan` over changes, slices and earlier results, and name the result.

    A result that is written is consolidated: equal rows added up, rows that cancel gone.
    """

    result: str
    plan: Plan
    consolidated: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """`plan` must have no rows, or the transaction is refused.

    Of an assertion, `table` is its name and `text` says what it demands.
    """

    rule: str
    table: str
    columns: tuple[str, ...]
    plan: Plan
    text: str = ""


@dataclass(frozen=True, slots=True)
class Add:
    """Add a computed change to a piece of state, when the epoch commits."""

    state: str
    change: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Add a computed change to a view, when the epoch commits."""

    view: str
    change: str


@dataclass(frozen=True, slots=True)
class Looped:
    """One relation X = δ(S) or X = S of a loop, by the names that its parts have in the program.

    `start` is the change of S caused from outside the loop, `later` the change caused by one
    iteration for later ones; either may be empty. `now` is what an iteration adds to ΔX, `before`
    what those before it added. `history` fetches the old S of the rows in `touched`; without it
    X = S. In the end `sums` is ΔS and `changes` is ΔX.
    """

    name: str
    schema: Schema
    start: str
    later: str
    now: str
    before: str
    touched: str
    sums: str
    changes: str
    history: Fetch | None = None

    @property
    def traced(self) -> Schema:
        """The columns of its rows, and the iteration at which each changed."""
        return (*self.schema, Column(ITERATION, "int"))


@dataclass(frozen=True, slots=True)
class Loop:
    """Follow a change through the iterations of a fixpoint, from the first one that it touches.

    At each iteration rows are looked at again that have changed there, or that have changed before
    and came there again. `body` says what their change does to later iterations.
    """

    name: str
    relations: tuple[Looped, ...]
    body: tuple[Fetch | Compute, ...]
    limit: int = 0

    @property
    def most(self) -> int:
        """The last iteration at which a row may come."""
        return self.limit or MAX_ITERATIONS

    @property
    def results(self) -> tuple[str, ...]:
        """What is known after it."""
        return tuple(name for each in self.relations for name in (each.sums, each.changes))

    @property
    def reads(self) -> tuple[str, ...]:
        """What has to be known before it."""
        own = {name for r in self.relations for name in (r.now, r.before, r.touched)}
        own |= {step.result for step in self.body}
        found = [each.start for each in self.relations if each.start]
        for step in self.body:
            match step:
                case Fetch(keys=keys):
                    found += (key.relation for key in keys)
                case Compute(plan=plan):
                    found += refs(plan)
        return tuple(dict.fromkeys(name for name in found if name not in own))

    @property
    def fetches(self) -> tuple[Fetch, ...]:
        """The relations that are looked into at every iteration."""
        histories = (each.history for each in self.relations if each.history is not None)
        return (*histories, *(step for step in self.body if isinstance(step, Fetch)))


Step: TypeAlias = Fetch | Compute | Loop | Check | Add | Publish


def refs(plan: Plan) -> tuple[str, ...]:
    """The results of earlier steps that a plan reads."""
    return tuple(each.name for each in referred(plan))


@dataclass(frozen=True, slots=True)
class Program:
    """What a transaction that touches `inputs` does, in rounds: fetches first, then arithmetic.

    Only from the tables in `removing` are rows removed.
    """

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    removing: frozenset[str] = frozenset()

    def publishing(self, views: Collection[str]) -> Program:
        """The same checks and computations, of which only changes of some views are published."""
        kept = (
            step
            for step in self.steps
            if not isinstance(step, Add)
            and not (isinstance(step, Publish) and step.view not in views)
        )
        return replace(self, steps=tuple(kept))


def change_name(relation: str) -> str:
    """The name under which a program knows the change of a relation."""
    return f"Δ{relation}"


def violations_name(assertion: str) -> str:
    """The name under which a program knows the rows that come to violate an assertion."""
    return f"violations of {assertion}"


def ranges_of(column: str) -> str:
    """How a lookup by ranges of a column is called."""
    return f"ranges of {column}"


def fetch_mark(relation: str, by: str | None) -> str:
    """How a fetch is known in statistics: the relation and what it is looked up by."""
    return f"{relation} by {by}" if by else f"{relation} whole"
