"""The embedded engine: the same programs in one process, with what they read kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from everview.engines.duckdb import queries
from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.engines.duckdb.scan import (
    consolidated_item,
    stored_item,
    stream_relation,
    stream_rows,
)
from everview.engines.duckdb.scan_evaluator import ScanEvaluator
from everview.errors import Span, UserError
from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema, Type, names
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.plan.nodes import Plan, Source
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import schema_of, sources
from everview.program.steps import Fetch, Program, change_name
from everview.rewrite.passes import rewrite
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.cached_slices import fetch_in_process
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.interpreter import InProcess
from everview.runtime.memory_budget import EMBEDDED, memory_budget
from everview.runtime.protocol import Changes, Files, Part, Snapshot, TextEvaluator, Violation
from everview.runtime.report import RunReport
from everview.runtime.results import Result
from everview.runtime.retry import Answer, retry_consolidated
from everview.runtime.workspace import Workspace
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, emit_consolidated
from everview.store.manifest import Run, Segment
from everview.store.sort_order import orderable

BUILD_CHUNK_ROWS = 4_000_000
"""A relation of more rows is built in chunks, so that it need not be in memory."""
_BUILT = "built"


class DuckDBEngine:
    """Programs on DuckDB, in this process; no Java, no Spark."""

    name = "duckdb"
    large_rows = float("inf")
    text: TextEvaluator | None = None

    def __init__(
        self,
        memory: int | None = None,
        vector_max_rows: int | None = None,
        allow: Allow = NOTHING,
    ) -> None:
        self.allow = allow
        budget = memory_budget(memory, EMBEDDED)
        self.local = InProcess(duckdb_workspace(budget.calculating, vector_max_rows), budget)
        self.frames = _NoFrames()

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """Refuse by name: what our own rules do not type is known to Spark alone."""
        return queries.analyze(scalar, schema, span)

    def refusal(self, plan: Plan) -> UserError | None:
        """Which part of a plan is not shown to give Spark's answer; None if all of it is."""
        try:
            queries.must_be_known(plan)
        except UserError as problem:
            return problem
        return None

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> RunReport:
        """Run a transaction's program."""
        with queries.refused_by_name():
            return self.local.run(self, program, changes, snapshot, epoch, violation)

    def preview(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        violation: Violation,
        wanted: Collection[str],
    ) -> Mapping[str, Part]:
        """Run a transaction's program without writing."""
        with queries.refused_by_name():
            return self.local.preview(self, program, changes, snapshot, violation, wanted)

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, report: RunReport) -> None:
        """Look slices up in the relation cache, or in files as long as they are not in it."""
        fetch_in_process(steps, self.local, snapshot, report)

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of `plan` over the stored relations, as the base of a new relation."""
        store, sort, schema = snapshot.store, snapshot.stored[name].sort, schema_of(plan)
        with self.local.reading() as workspace:
            items = self._items(plan, snapshot, {}, workspace)
            count = _create_built(plan, items, snapshot, workspace)
            if count > BUILD_CHUNK_ROWS:
                by = orderable(arrow_schema(schema), sort)
                chunks = workspace.sql.sorted_chunks(_BUILT, schema, by, BUILD_CHUNK_ROWS)
                return store.write_parts(name, epoch, map(_in_calendar, chunks), sort)
            rows = _in_calendar(workspace.table(_BUILT, schema))
        return store.write_segment(name, epoch, rows, sort, kind="base")

    def compact(self, run: Run, snapshot: Snapshot, epoch: int) -> Segment | None:
        """None: there is this process alone."""
        return None

    def evaluate(
        self, plan: Plan, snapshot: Snapshot, pending: Changes, *, cached: bool = True
    ) -> pa.Table:
        """The consolidated rows of a plan over stored relations and pending changes."""
        with self.local.reading() as workspace:
            items = self._items(plan, snapshot, pending, workspace, cached=cached)
            _create_built(plan, items, snapshot, workspace)
            return workspace.table(_BUILT, schema_of(plan))

    def select(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> Result:
        """The rows that a query shows; what is not known is refused at once."""
        queries.must_be_known(query.plan)
        kept = {name: list(parts) for name, parts in pending.items()}
        plan = query.plan
        whole = isinstance(plan, Source) and query == OrderedQuery(plan, names(plan.schema))
        shown = Result(
            lambda: self._shown_rows(query, snapshot, kept),
            stream=partial(self._shown_batches, query, snapshot, kept),
            named=lambda: query.columns,
        )
        if isinstance(plan, Source) and whole and not kept.get(plan.name):
            stream = partial(stream_relation, self.local, plan.name, snapshot)
            relation = snapshot.relation(plan.name)
            return replace(shown, stream=stream, counted=lambda: relation.weight)
        return shown

    def lookup(self, name: str, by: Sequence[str], keys: pa.Table, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation that agree with one of `keys` in the columns `by`."""
        return self.local.lookup(self, name, by, keys, snapshot)

    def register_function(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Functions in Python belong to Spark."""
        raise UserError(
            "E012",
            f"the embedded engine does not call {name}, a function in Python",
            remedy="write it with CREATE FUNCTION, or open the store with engine='spark'",
        )

    def close(self) -> None:
        """Give the memory back."""
        self.local.close()

    def _shown_rows(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> pa.Table:
        with self.local.reading() as workspace:
            items = self._items(query.plan, snapshot, pending, workspace)

            def rows(items: Mapping[str, str]) -> pa.Table:
                plan = ScanEvaluator(workspace, items, _emit).without_loops(query.plan)
                return workspace.rows(queries.rows_sql(replace(query, plan=plan), items))

            shown = _retry_items(rows, items, snapshot)
        schema = arrow_schema(schema_of(query.plan))
        return shown.cast(pa.schema([schema.field(name) for name in query.columns]))

    def _shown_batches(
        self, query: OrderedQuery, snapshot: Snapshot, pending: Changes, size: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a query, all computed before the first is given: they lie in DuckDB."""
        with self.local.reading() as workspace:
            items = self._items(query.plan, snapshot, pending, workspace, cached=False)

            def create(items: Mapping[str, str]) -> int:
                plan = ScanEvaluator(workspace, items, _emit).without_loops(query.plan)
                sql = queries.rows_sql(replace(query, plan=plan), items)
                return workspace.create_table(_BUILT, sql)

            _retry_items(create, items, snapshot)
            schema = schema_of(query.plan)
            yield from stream_rows(workspace, duckdb_name(_BUILT), schema, query.columns, size)

    def _items(
        self,
        plan: Plan,
        snapshot: Snapshot,
        pending: Changes,
        workspace: Workspace,
        *,
        cached: bool = True,
    ) -> dict[str, str]:
        """The stored relations that a plan reads as FROM items, with changes not yet committed."""
        item = self._item if cached else stored_item
        items = {each.name: item(each.name, snapshot, workspace) for each in sources(plan)}
        for name in [name for name in items if pending.get(name)]:
            workspace.register(change_name(name), pa.concat_tables(pending[name]))
            listed = (*names(snapshot.stored[name].schema), WEIGHT)
            columns = ", ".join(map(duckdb_name, listed))
            both = (items[name], duckdb_name(change_name(name)))
            rows = " UNION ALL ".join(f"SELECT {columns} FROM {each}" for each in both)
            items[name] = f"({rows})"
        return items

    def _item(self, name: str, snapshot: Snapshot, workspace: Workspace) -> str:
        """A relation as a FROM item: from the cache where it is there, else from its segments."""
        rows = self.local.cache.rows_if_held(name, snapshot)
        if rows is None:
            return stored_item(name, snapshot, workspace)
        cached = f"cached {name}"
        workspace.register(cached, rows)
        return duckdb_name(cached)


class _NoFrames:
    """Changes come as Arrow tables: there is no Spark to make a frame of."""

    files: Files | None = None

    def weighted(
        self,
        rows: Any,
        table: str,
        weight: int,
        lengths: Sequence[tuple[str, int]],
        snapshot: Snapshot,
    ) -> Any:
        """Spark DataFrames belong to Spark."""
        raise _no_frame(table)

    def stage(self, frames: Sequence[Any], table: str, snapshot: Snapshot) -> Part:
        """Spark DataFrames belong to Spark."""
        raise _no_frame(table)

    def take_keys(self, rows: Any, table: str, key: Schema) -> Any:
        """Spark DataFrames belong to Spark."""
        raise _no_frame(table)

    def change(self, result: Result, table: str, snapshot: Snapshot) -> pa.Table:
        """The rows of a query whose last column has the weights."""
        rows, schema = result.to_arrow(), snapshot.stored[table].schema
        return conform(rows.rename_columns([*rows.column_names[:-1], WEIGHT]), schema)

    def minimized(
        self, table: str, change: Part, snapshot: Snapshot, pending: Sequence[Part], *, once: bool
    ) -> Part:
        """All rows are in memory here."""
        raise AssertionError(type(change))

    def removal(
        self, table: str, key: Sequence[str], by: Any, snapshot: Snapshot, pending: Sequence[Part]
    ) -> Part:
        """All rows are in memory here."""
        raise AssertionError(type(by))


def _no_frame(table: str) -> UserError:
    return UserError(
        "E012",
        f"{table}: a Spark DataFrame cannot be taken by the embedded engine",
        remedy="hand over df.toArrow(), or open the store with engine='spark'",
    )


def _create_built(
    plan: Plan, items: Mapping[str, str], snapshot: Snapshot, workspace: Workspace
) -> int:
    """Store the consolidated rows of a plan over FROM items as a table; how many there are."""

    def create(items: Mapping[str, str]) -> int:
        solved = ScanEvaluator(workspace, items, _emit).without_loops(plan)
        return workspace.create_table(_BUILT, _emit(solved, items))

    return _retry_items(create, items, snapshot)


def _in_calendar(rows: pa.Table) -> pa.Table:
    must_be_in_calendar(rows)
    return rows


def _emit(plan: Plan, items: Mapping[str, str]) -> str:
    """The SQL of a plan; without columns that nobody reads, where the plan as it is is unknown."""
    try:
        return emit_consolidated(plan, DUCKDB, items)
    except NotAtParity:
        with queries.refused_by_name():
            return emit_consolidated(rewrite(plan), DUCKDB, items)


def _retry_items(
    compute: Callable[[Mapping[str, str]], Answer], items: Mapping[str, str], snapshot: Snapshot
) -> Answer:
    """What is computed over FROM items; after an error, over consolidated ones."""

    def attempt(consolidated: bool) -> Answer:
        if not consolidated:
            return compute(items)
        return compute({n: consolidated_item(n, item, snapshot) for n, item in items.items()})

    return retry_consolidated(attempt)
