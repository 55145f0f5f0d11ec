"""What an engine is to the database above it: the verbs, and the epoch that they read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from everview.errors import Span, UserError
from everview.expr.types import WEIGHT, Column, Schema, Type
from everview.lang.sql.allowlist.allow import Allow
from everview.plan.nodes import Plan
from everview.plan.ordered_query import OrderedQuery
from everview.program.steps import Check, Fetch, Program
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.files.formats import FileOptions
from everview.runtime.files.reading import FileRows
from everview.runtime.memory_budget import MemoryBudget
from everview.runtime.report import RunReport
from everview.runtime.results import Result
from everview.store.layouts import with_former
from everview.store.manifest import Manifest, Relation, Run, Segment
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class FormerLayout:
    """What each column of a relation was in files of a layout that it had before.

    Columns that those files lack are left out.
    """

    columns: tuple[tuple[str, Column], ...]

    def name_of(self, column: str) -> str | None:
        """What the files call a column of now; the weight has one name always."""
        found = dict(self.columns).get(column)
        return found.name if found is not None else (WEIGHT if column == WEIGHT else None)


@dataclass(frozen=True, slots=True)
class Stored:
    """How a stored relation is read: its columns, its sort order, its ring columns if totals.

    A state is `ours`: queries do not see it. A table that was altered has `former` layouts.
    """

    schema: Schema
    sort: tuple[str, ...]
    rings: tuple[str, ...] = ()
    ours: bool = False
    former: tuple[FormerLayout, ...] = ()
    fills: tuple[tuple[str, bytes], ...] = ()
    """By column, the value in rows of files that lack it, if it is not NULL."""

    def arrow(self, only: Schema | None = None) -> pa.Schema:
        """The Arrow schema of its columns, or of some, by which files of any layout are read."""
        wanted = arrow_schema(self.schema if only is None else only)
        if not self.former:
            return wanted
        fills = dict(self.fills)
        former = [
            with_former(field, [each.name_of(field.name) for each in self.former], fill)
            for field in wanted
            for fill in (fills.get(field.name),)
        ]
        return pa.schema(former)


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


@dataclass(frozen=True, slots=True)
class Staged:
    """A change that executors have written: the segment that it will be, once it is committed.

    `rows` holds the same rows where they are few enough for this process.
    """

    segment: Segment
    rows: pa.Table | None = None


Part: TypeAlias = pa.Table | Staged
"""Weighted rows that change a table: in memory, or written already."""

Changes = Mapping[str, Sequence[Part]]
"""For each table, the parts whose sum is its change."""


def row_count(part: Part) -> int:
    """How many weighted rows a part of a change has."""
    return part.segment.rows if isinstance(part, Staged) else int(part.num_rows)


def in_memory(parts: Iterable[Part]) -> list[pa.Table] | None:
    """The rows of all parts, None where some of them are in files alone."""
    rows = [part.rows if isinstance(part, Staged) else part for part in parts]
    return None if any(each is None for each in rows) else rows


class Gear(Protocol):
    """Where the interpreter of programs gets slices of stored relations from."""

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, report: RunReport) -> None:
        """Name in the workspace the slices of one round.

        A slice holds every row whose key is asked for; it may hold more, and rows that cancel.
        """


@dataclass(frozen=True, slots=True)
class Difference:
    """How many rows a view has, and its query minus the view as weighted rows.

    `ours` says why the query was read by Everview itself; it is empty where Spark read it.
    """

    rows: int
    weighted: pa.Table
    ours: str = ""


class Held(Protocol):
    """What is held of relations between transactions; any thread may ask."""

    @property
    def held_bytes(self) -> int:
        """How much is held, in memory or mapped."""

    def bytes_of(self, name: str) -> int:
        """How much of one relation is held."""


class Local(Protocol):
    """What every engine computes in this process, in memory."""

    @property
    def budget(self) -> MemoryBudget:
        """How much may be held between transactions."""

    @property
    def held(self) -> Held:
        """How much is held now."""

    def confine(self, store: Store) -> None:
        """Let what computes in this process open the files of a store, and no others."""

    def evaluate(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The consolidated rows of a plan over relations in memory."""

    def consolidate(self, rows: pa.Table, stored: Stored) -> pa.Table:
        """Weighted rows of a relation, equal ones added up and those that cancel left out."""

    def on_compacted(self, before: Snapshot, after: Manifest) -> None:
        """Keep relations in memory whose segments were replaced by others with the same sum."""

    def interrupt(self) -> None:
        """End the statements that are running, from another thread."""

    def forget(self) -> None:
        """Drop all that is kept in memory, after an exception at any moment."""


class Files(Protocol):
    """Files that executors read and write."""

    def read(self, rows: FileRows) -> Any:
        """The rows of files as a frame whose texts are values of the columns asked for."""

    def explained(self, rows: FileRows) -> AbstractContextManager[None]:
        """Where the files are computed with: one that is not what it should be is an error."""

    def write(self, result: Result, path: str, options: FileOptions) -> int:
        """Write rows to a folder that is not there yet; how many."""


class Frames(Protocol):
    """Data frames of the user's, or of the engine's own, as changes of tables.

    A frame is computed once, when it is staged, so that a change stays the same however often it is
    read.
    """

    @property
    def files(self) -> Files | None:
        """Who reads files as frames, and writes frames as files; None where this process does."""

    def weighted(
        self,
        rows: Any,
        table: str,
        weight: int,
        lengths: Sequence[tuple[str, int]],
        snapshot: Snapshot,
    ) -> Any:
        """A frame of the user's as a frame of weighted rows; no value may change by a cast.

        Texts of the columns in `lengths` may be no longer than that. Nothing is computed yet.
        """

    def stage(self, frames: Sequence[Any], table: str, snapshot: Snapshot) -> Part:
        """The rows of frames of weighted rows together, computed once."""

    def take_keys(self, rows: Any, table: str, key: Schema) -> Any:
        """A frame of the user's as values of a table's key columns: Arrow if few, else a frame."""

    def change(self, result: Result, table: str, snapshot: Snapshot) -> Part:
        """The rows of a query as a change of a table; its last column has the weights."""

    def minimized(
        self, table: str, change: Part, snapshot: Snapshot, pending: Sequence[Part], *, once: bool
    ) -> Part:
        """The part of a change that has an effect: max(m ∸ d, i) − m of each row.

        m rows are there, d are deleted and i inserted; where rows are there only `once`, i ≤ 1.
        """

    def removal(
        self, table: str, key: Sequence[str], by: Any, snapshot: Snapshot, pending: Sequence[Part]
    ) -> Part:
        """Minus the rows of a table, pending changes included, that have a key of `by`.

        `by` is a part of a change or a frame; the result is computed where the rows are.
        """


class TextEvaluator(Protocol):
    """Spark reading SQL itself: the one way by which text, checked word by word, is evaluated.

    An audit compares a view with what Spark makes of its text, so that nothing which maintains the
    view has a part in the answer. A query by the user, and a block that is recomputed, may say what
    only Spark knows.
    """

    def describe(self, sql: str, relations: Mapping[str, Schema], *, once: bool) -> Schema:
        """The columns of a query over relations, or a UserError if Spark does not accept it.

        A query that runs `once`, and is not kept, may read what the store was opened with.
        """

    def select(
        self,
        sql: str,
        reads: Sequence[str],
        snapshot: Snapshot,
        pending: Changes,
        own: Callable[[], OrderedQuery | None],
    ) -> Result:
        """A query over stored relations, with changes that are not committed yet.

        `own` is the plan of a query that Spark does not read, or ends too early: a recursion.
        """

    def difference(
        self, name: str, texts: Mapping[str, str], tables: Sequence[str], snapshot: Snapshot
    ) -> Difference | str:
        """A view's query minus the view, or why Spark does not read the query.

        `texts` are the queries of the view and of those under it, in order of declaration.
        """

    def is_deterministic(
        self, name: str, texts: Mapping[str, str], tables: Sequence[str], snapshot: Snapshot
    ) -> bool:
        """Whether Spark gives one answer, in whatever order the rows of tables arrive."""

    def plan_difference(self, name: str, plan: Plan, snapshot: Snapshot) -> Difference | None:
        """As `difference`, where `plan` is the query minus the view; Spark computes it.

        None if Spark's optimizer fails on it.
        """

    def recompute(
        self,
        name: str,
        query: tuple[str, Sequence[str]],
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> Any:
        """A query after the pending changes minus the stored rows of `name`, as a change.

        The query is its text and what it reads; `views` are those under it that the changes move,
        in order, as plans.
        """


class TooLarge(Exception):  # noqa: N818  (a signal between gears, not an error)
    """More is looked up than this process should hold; executors can compute with it."""


class LoopNotFollowedError(UserError):
    """A change moves more of a recursion than is followed in process: it has to be recomputed."""

    def __init__(self) -> None:
        super().__init__(
            "E013",
            "the change is too large to be followed through a recursion",
            remedy="send it in smaller transactions",
        )


class Engine(Protocol):
    """The narrow waist between plans and programs and whatever computes them.

    An engine may never change an answer: Spark's is the definition, and what an engine is not shown
    to compute as Spark does it refuses by name. Nothing that an engine writes counts before the
    next manifest names it, so every verb may fail or be repeated at any moment.
    """

    name: str
    large_rows: float
    """A change of more rows is computed by Spark SQL throughout."""
    allow: Allow
    """What statements may reach beside the store."""

    @property
    def local(self) -> Local:
        """What computes in this process."""

    @property
    def frames(self) -> Frames:
        """Data frames as changes."""

    @property
    def text(self) -> TextEvaluator | None:
        """Who reads SQL by itself; None where every query has to be lowered to a plan."""

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """The type of a scalar by Spark's rules, or a UserError at `span`."""

    def refusal(self, plan: Plan) -> UserError | None:
        """Why a plan is not evaluated, by name; None if it is shown to be as Spark would."""

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> RunReport:
        """Run a transaction's program over one epoch and write the segments of the next.

        A check that finds rows raises the `violation`, and then nothing counts.
        """

    def preview(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        violation: Violation,
        wanted: Collection[str],
    ) -> Mapping[str, Part]:
        """Run a transaction's program, checks included; the changes of the relations `wanted`.

        What is computed in process is not written; what executors compute they write, and it does
        not count.
        """

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of a plan over stored relations, written as the base of a relation."""

    def compact(self, run: Run, snapshot: Snapshot, epoch: int) -> Segment | None:
        """The sum of a run of segments, written as one; None if it is to be done in process."""

    def evaluate(
        self, plan: Plan, snapshot: Snapshot, pending: Changes, *, cached: bool = True
    ) -> pa.Table:
        """The consolidated rows of a plan over stored relations and changes not yet committed.

        Unless what is `cached` in memory may be used, all is read from the segments.
        """

    def select(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> Result:
        """The rows that a query shows, each as often as its weight says, read when asked for."""

    def lookup(self, name: str, by: Sequence[str], keys: pa.Table, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation that agree with one of `keys` in the columns `by`.

        There may be more rows: floats and nested columns are not searched by, and of the others
        the first counts.

        More than this process should hold raise `TooLarge`, where there are executors.
        """

    def register_function(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Make a function of the user's, written in Python, known to queries."""

    def close(self) -> None:
        """Release what the engine holds."""
