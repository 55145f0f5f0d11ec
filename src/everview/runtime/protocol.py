"""What an engine does: run a program over stored relations, build relations, answer queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from everview.errors import Span
from everview.expr.types import Schema, Type
from everview.lang.sql.parse.statements import Query
from everview.plan.nodes import Plan
from everview.program.steps import Check, Compute, Fetch, Program
from everview.runtime.report import Outcome
from everview.runtime.results import Result
from everview.store.manifest import Manifest, Relation, Segment
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class Stored:
    """How a stored relation is read: its columns, its sort order, its ring columns if totals.

    A state is `ours`: queries do not see it.
    """

    schema: Schema
    sort: tuple[str, ...]
    rings: tuple[str, ...] = ()
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One epoch of a store, with what is needed to read any relation in it."""

    store: Store
    manifest: Manifest
    stored: Mapping[str, Stored]

    def relation(self, name: str) -> Relation:
        """The segments of a relation; one that was never written has none."""
        return self.manifest.relations.get(name) or Relation(name, ())


Violation = Callable[[Check, pa.Table], Exception]
"""Makes the error for a check that found rows."""

SIGN = "change weight"
"""The column of a query by which the rows of a change carry their weights, always the last."""

Changes = Mapping[str, Sequence[Any]]
"""For each table, weighted rows: Arrow tables, or frames of the engine's own."""


class Gear(Protocol):
    """What an engine adds to the calculator: where slices come from, and who computes a step."""

    @property
    def loading(self) -> float:
        """Milliseconds that it took so far to bring relations into memory."""

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, outcome: Outcome) -> None:
        """Bring the slices of one round."""

    def values(self, step: Fetch) -> pa.ChunkedArray:
        """The values that a fetch is looked up by, as values of the column that it looks at."""

    def compute(self, step: Compute, outcome: Outcome) -> None:
        """Evaluate a step and name its result."""


Written = str | Plan
"""A view as it is written: a query in SQL, or the plan of what another language says."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How many rows a view has, and its query minus the view as weighted rows.

    `ours` says why the query was read by Everview itself; it is empty where Spark read it.
    """

    rows: int
    weighted: pa.Table
    ours: str = ""


class Engine(Protocol):
    """The narrow waist between programs and whatever computes them."""

    name: str

    def confine(self, store: Store) -> None:
        """Let what computes in this process open the files of a store, and no others."""

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """The type of a scalar by Spark's rules, or a UserError at `span`."""

    def describe(self, sql: str, relations: Mapping[str, Schema], *, once: bool = False) -> Schema:
        """The columns of a query over relations, or a UserError when it cannot be answered.

        A query that is asked `once`, and not kept, may reach what whoever opened the store allows.
        """

    def register(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Make a function of the user's, written in Python, known to queries."""

    def knows(self, plan: Plan) -> bool:
        """Whether it is known to evaluate a plan as Spark would."""

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> Outcome:
        """Run a transaction's program; write segments, commit nothing."""

    def gear(self, rows: float) -> str:
        """The gear that a change of so many rows asks for."""

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of a plan over the stored relations, written as the base of a relation."""

    def weighted(self, rows: Any, table: str, schema: Schema, weight: int) -> Any:
        """A frame of the user's as weighted rows of a table."""

    def limited(self, rows: Any, table: str, lengths: Sequence[tuple[str, int]]) -> Any:
        """Rows of a frame whose texts are no longer than a table's types say."""

    def lookup(self, name: str, by: str, keys: pa.ChunkedArray, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation whose column `by` is among `keys`."""

    def calculate(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """A plan over relations in memory."""

    def add_up(self, rows: pa.Table, stored: Stored) -> pa.Table:
        """The sum of weighted rows of a relation in memory."""

    def read(self, name: str, snapshot: Snapshot) -> Result:
        """The rows of a stored relation, each as often as its weight says."""

    def query(self, sql: str, reads: Sequence[str], snapshot: Snapshot, pending: Changes) -> Result:
        """A query over stored relations, with changes that are not committed yet."""

    def change_of(self, result: Result, schema: Schema) -> Any:
        """The rows of a query that carry weights, in memory when they are few."""

    def difference(
        self, name: str, queries: Mapping[str, Written], tables: Sequence[str], snapshot: Snapshot
    ) -> Difference:
        """A view's query minus the view."""

    def recompute(
        self,
        name: str,
        query: Query,
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> Any:
        """A query after the pending changes minus the stored rows of `name`, as weighted rows.

        `views` are those under it that the changes move, in order, as plans.
        """

    def fixed(self, rows: Any, table: str, snapshot: Snapshot) -> Any:
        """Weighted rows of a table that stay the same however often they are read."""

    def moved(self, before: Snapshot, after: Manifest) -> None:
        """Compaction gave relations other segments with the same sum."""

    def interrupt(self) -> None:
        """End the statements that are running, from another thread."""

    def forget(self) -> None:
        """Drop all that is kept in memory, after an exception at any moment."""

    def close(self) -> None:
        """Release what the engine holds."""
