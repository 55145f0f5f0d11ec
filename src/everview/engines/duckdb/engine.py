"""The embedded engine: the same programs in one process, with what they read kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from everview.database.audit_query import inlined, written_minus_stored
from everview.engines.duckdb import queries
from everview.engines.duckdb.calculator import Calculator
from everview.engines.duckdb.scan import added_up, stored_item, stored_items
from everview.engines.duckdb.scan_evaluator import Reading
from everview.errors import Span, UserError
from everview.expr.quoting import duckdb_name
from everview.expr.types import WEIGHT, Schema, Type, names
from everview.lang.sql.lower.top_level_query import OrderedQuery
from everview.lang.sql.parse.statements import Query
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of, sources
from everview.program.steps import (
    Compute,
    Fetch,
    Program,
    change_name,
)
from everview.rewrite.passes import rewrite
from everview.runtime.arrow_types import arrow_schema, conform
from everview.runtime.cache.probe_keys import ProbeKeys
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.interpreter import InProcess, is_idle, run_small
from everview.runtime.protocol import Changes, Difference, Snapshot, Violation, Written
from everview.runtime.recursion.seminaive import Solver
from everview.runtime.report import MEMORY, Outcome
from everview.runtime.results import Result
from everview.runtime.retry import Answer, twice
from everview.runtime.vector.batches import VECTOR_MAX_ROWS
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, emit_consolidated
from everview.store.manifest import Segment
from everview.store.sort_order import orderable

PART = 4_000_000
"""A relation that is built of more rows is written in parts, so that it need not be in memory."""
_MADE = "made"

EMBEDDED = "the embedded engine has no other reader"
"""Why an audit reads a query as the view was read."""


class DuckDBEngine(InProcess):
    """Programs on DuckDB, in this process; no Java, no Spark."""

    name = "duckdb"

    def __init__(self, memory: str | None = None, few: int = VECTOR_MAX_ROWS) -> None:
        super().__init__(Calculator(memory, few))

    def analyze(self, scalar: str, schema: Schema, span: Span | None) -> Type:
        """Refuse by name: what our own rules do not type is known to Spark alone."""
        return queries.analyze(scalar, schema, span)

    def describe(self, sql: str, relations: Mapping[str, Schema], *, once: bool = False) -> Schema:
        """The columns of a query in the language of views; others are known to Spark alone."""
        return queries.described(sql, relations)

    def register(self, name: str, function: Callable[..., Any], gives: Type) -> None:
        """Functions in Python belong to Spark."""
        raise UserError(
            "E012",
            f"the embedded engine does not call {name}, a function in Python",
            remedy="write it with CREATE FUNCTION, or open the store with engine='spark'",
        )

    def knows(self, plan: Plan) -> bool:
        """Whether all of a plan is shown to give Spark's answer."""
        return queries.is_known(plan)

    def run(
        self,
        program: Program,
        changes: Changes,
        snapshot: Snapshot,
        epoch: int,
        violation: Violation,
    ) -> Outcome:
        """Run a transaction's program; its results are added to memory when it has committed."""
        calculator = self._calculator
        with self._busy:
            try:
                with queries.refused_by_name():
                    outcome = run_small(
                        self, calculator, program, changes, snapshot, epoch, violation
                    )
            finally:
                calculator.forget()
            self._hot.stage(outcome.segments, outcome.written)
        return outcome

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, outcome: Outcome) -> None:
        """Bring slices of relations in memory."""
        for step in steps:
            if is_idle(step, self._calculator, outcome):
                continue
            if step.by is None:
                rows = conform(self._hot.rows(step.relation, step.schema, snapshot), step.schema)
            else:
                keys = ProbeKeys(self.values(step), self.agreeing(step))
                rows = self._hot.lookup(step.relation, step.by, keys, step.schema, snapshot)
            self._calculator.give(step.result, rows)
            outcome.took(step, MEMORY, rows.num_rows)

    def compute(self, step: Compute, outcome: Outcome) -> None:
        """Evaluate a step."""
        self._calculator.compute(step)

    def gear(self, rows: float) -> str:
        """There is one."""
        return "small"

    def build(self, name: str, plan: Plan, snapshot: Snapshot, epoch: int) -> Segment:
        """The value of `plan` over the stored relations, as the base of a new relation."""
        store, sort, schema = snapshot.store, snapshot.stored[name].sort, schema_of(plan)
        with self._reading() as calculator:
            held = self._held(plan, snapshot, {}, calculator)
            count = _make(plan, held, snapshot, calculator)
            if count > PART:
                by = orderable(arrow_schema(schema), sort)
                parts = calculator.parts(_MADE, schema, by, PART)
                return store.write_parts(name, epoch, map(_in_calendar, parts), sort)
            rows = _in_calendar(calculator.result(_MADE, schema))
        return store.write_segment(name, epoch, rows, sort, kind="base")

    def weighted(self, rows: Any, table: str, schema: Schema, weight: int) -> Any:
        """Spark DataFrames belong to Spark."""
        raise UserError(
            "E012",
            f"{table}: a Spark DataFrame cannot be taken by the embedded engine",
            remedy="hand over df.toArrow(), or open the store with engine='spark'",
        )

    def limited(self, rows: Any, table: str, lengths: Sequence[tuple[str, int]]) -> Any:
        """There are no frames."""
        raise AssertionError(type(rows))

    def read(self, name: str, snapshot: Snapshot) -> Result:
        """The rows of a stored relation."""
        schema = snapshot.stored[name].schema
        query = OrderedQuery(Source(name, schema), names(schema))
        return Result(lambda: self._answer(query, snapshot, {}))

    def query(self, sql: str, reads: Sequence[str], snapshot: Snapshot, pending: Changes) -> Result:
        """A query over stored relations and changes not committed yet."""
        query = queries.lowered(sql, snapshot)
        queries.must_be_known(query)
        kept = {name: list(parts) for name, parts in pending.items()}
        return Result(lambda: self._answer(query, snapshot, kept))

    def change_of(self, result: Result, schema: Schema) -> pa.Table:
        """The rows of a query that carry signs, as weighted rows."""
        rows = result.to_arrow()
        return conform(rows.rename_columns([*rows.column_names[:-1], WEIGHT]), schema)

    def difference(
        self, name: str, text: Mapping[str, Written], tables: Sequence[str], snapshot: Snapshot
    ) -> Difference:
        """A view's query minus the view, all read from the segments."""
        with queries.known_to_spark():
            plan = written_minus_stored(name, text, snapshot, queries.analyze)
        read = [each.name for each in sources(plan)]
        with self._reading() as calculator:
            held = stored_items(read, snapshot, calculator, careful=False)
            found = _rows(plan, held, snapshot, calculator)
            total = calculator.rows(f"SELECT sum({WEIGHT}) AS n FROM {held[name]} AS q")
        return Difference(int(total.column("n")[0].as_py() or 0), found, EMBEDDED)

    def recompute(
        self,
        name: str,
        query: Query,
        views: Mapping[str, Plan],
        snapshot: Snapshot,
        pending: Changes,
    ) -> pa.Table:
        """A query after the pending changes minus the rows stored."""
        with queries.known_to_spark():
            plan = written_minus_stored(name, {name: query.text}, snapshot, queries.analyze)
        plans: dict[str, Plan] = {}
        for view, each in views.items():
            plans[view] = inlined(each, plans)
        plan = inlined(plan, plans)
        with self._reading() as calculator:
            held = self._held(plan, snapshot, pending, calculator)
            return _rows(plan, held, snapshot, calculator)

    def fixed(self, rows: Any, table: str, snapshot: Snapshot) -> Any:
        """Nothing: changes are in memory."""
        return rows

    def close(self) -> None:
        """Give the memory back."""
        self._calculator.close()

    def _answer(self, query: OrderedQuery, snapshot: Snapshot, pending: Changes) -> pa.Table:
        """The rows of a query, with changes that are not committed yet."""
        with self._reading() as calculator:
            held = self._held(query.plan, snapshot, pending, calculator)
            rows = _asked(lambda read: _asked_once(query, read, calculator), held, snapshot)
        schema = arrow_schema(schema_of(query.plan))
        return rows.cast(pa.schema([schema.field(name) for name in query.columns]))

    def _held(
        self, plan: Plan, snapshot: Snapshot, pending: Changes, calculator: Calculator
    ) -> dict[str, str]:
        """What a plan reads as FROM items, with changes that are not committed yet."""
        held = {each.name: self._current(each.name, snapshot, calculator) for each in sources(plan)}
        for name in [name for name in held if pending.get(name)]:
            calculator.give(change_name(name), pa.concat_tables(pending[name]))
            listed = (*names(snapshot.stored[name].schema), WEIGHT)
            columns = ", ".join(map(duckdb_name, listed))
            both = (held[name], duckdb_name(change_name(name)))
            rows = " UNION ALL ".join(f"SELECT {columns} FROM {each}" for each in both)
            held[name] = f"({rows})"
        return held

    def _current(self, name: str, snapshot: Snapshot, calculator: Calculator) -> str:
        """A relation as a FROM item: from memory where it is at hand, else from its segments."""
        rows = self._hot.rows_if_held(name, snapshot)
        if rows is None:
            return stored_item(name, snapshot, calculator)
        known = f"hot {name}"
        calculator.give(known, rows)
        return duckdb_name(known)


def _rows(
    plan: Plan, held: Mapping[str, str], snapshot: Snapshot, calculator: Calculator
) -> pa.Table:
    """The weighted rows of a plan over FROM items."""
    _make(plan, held, snapshot, calculator)
    return calculator.result(_MADE, schema_of(plan))


def _make(plan: Plan, held: Mapping[str, str], snapshot: Snapshot, calculator: Calculator) -> int:
    """Let DuckDB hold the weighted rows of a plan over FROM items; how many there are."""

    def keep(read: Mapping[str, str]) -> int:
        solved = Solver(Reading(calculator, read, _written)).solved(plan)
        return calculator.keep(_MADE, _written(solved, read))

    return _asked(keep, held, snapshot)


def _asked_once(query: OrderedQuery, read: Mapping[str, str], calculator: Calculator) -> pa.Table:
    solved = Solver(Reading(calculator, read, _written)).solved(query.plan)
    return calculator.rows(queries.rows_sql(replace(query, plan=solved), read))


def _in_calendar(rows: pa.Table) -> pa.Table:
    must_be_in_calendar(rows)
    return rows


def _written(plan: Plan, read: Mapping[str, str]) -> str:
    """The SQL of a plan; without what nobody reads, where the whole is not known."""
    try:
        return emit_consolidated(plan, DUCKDB, read)
    except NotAtParity:
        with queries.refused_by_name():
            return emit_consolidated(rewrite(plan), DUCKDB, read)


def _asked(
    answer: Callable[[Mapping[str, str]], Answer], held: Mapping[str, str], snapshot: Snapshot
) -> Answer:
    """What is answered over FROM items, added up first where they have to be."""

    def asked(careful: bool) -> Answer:
        summed = {name: added_up(name, item, snapshot) for name, item in held.items()}
        return answer(summed if careful else held)

    return twice(asked)
