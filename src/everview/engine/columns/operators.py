"""Plans over Arrow record batches: each operator as a function of what it reads.

A batch has the columns of its plan's schema, in order, and the weight last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import is_
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.engine.arrow import arrow_schema, arrow_type
from everview.engine.columns.batches import (
    Change,
    chosen,
    nothing,
    ones,
    picked,
    reweighted,
    weights,
)
from everview.engine.columns.grouping import every_pair, occurs, pairs
from everview.engine.columns.numbers import values_at
from everview.engine.columns.partitions import partition, window
from everview.engine.columns.scalars import Compute, Fold, compiled
from everview.engine.columns.summing import consolidate, groups, threshold, totals
from everview.engine.columns.unknown import Unknown
from everview.plan import scalar
from everview.plan.nodes import (
    Add,
    Distinct,
    Empty,
    Filter,
    Groups,
    Join,
    Map,
    Negate,
    Output,
    Partition,
    Plan,
    Positive,
    Ref,
    Restrict,
    Totals,
    Values,
    Window,
)
from everview.plan.traverse import schema_of, walk
from everview.plan.types import WEIGHT, Schema

Known: TypeAlias = Mapping[str, pa.RecordBatch]
Evaluate: TypeAlias = Callable[[Known], pa.RecordBatch]

PLANS = 4096
"""How many plans are kept ready."""
_SUMMED = Distinct | Positive | Groups | Totals | Partition
"""Operators whose rows are consolidated as they are."""


class Columns:
    """Computes plans on columns; `fold` gives the value of an expression without columns."""

    def __init__(self, fold: Fold) -> None:
        self._fold = lru_cache(maxsize=PLANS)(fold)
        self._ready = lru_cache(maxsize=PLANS)(self._prepared)
        self._last: dict[Plan, tuple[list[pa.RecordBatch], pa.RecordBatch]] = {}

    def forget(self) -> None:
        """Let go of what was computed."""
        self._last.clear()

    def evaluate(self, plan: Plan, known: Known, *, consolidated: bool) -> pa.RecordBatch:
        """The weighted rows of a plan; Unknown, or an Arrow error, if the database has to tell."""
        ready = self._ready(plan)
        if ready is None:
            raise Unknown(type(plan).__name__)
        rows = ready(known)
        if not consolidated or isinstance(plan, _SUMMED):
            return rows
        return consolidate(rows, schema_of(plan), ())

    def _prepared(self, plan: Plan) -> Evaluate | None:
        """What evaluates a plan, None if it is not known here."""
        try:
            return self._plan(plan)
        except (Unknown, pa.ArrowException):
            return None

    def _plan(self, plan: Plan) -> Evaluate:
        match plan:
            case Empty(schema):
                none = nothing(arrow_schema(schema))
                return lambda _: none
            case Values(schema, rows):
                return self._values(schema, rows)
            case Ref(name, schema):
                wanted = arrow_schema(schema)
                return lambda known: picked(known[name], wanted)
            case Filter(child, predicate):
                return self._after(plan, child, self._filter(predicate, schema_of(child)))
            case Map(Join() as child, outputs):
                return self._mapped_join(plan, child, outputs)
            case Map(child, outputs):
                return self._after(plan, child, self._map(outputs, schema_of(child)))
            case Add():
                return self._add(plan)
            case Negate(child):
                return self._after(plan, child, _negated)
            case Join():
                return self._join(plan, schema_of(plan), schema_of(plan))
            case Restrict():
                return self._restrict(plan)
            case Distinct(child):
                return self._after(plan, child, threshold(schema_of(child), once=True))
            case Positive(child):
                return self._after(plan, child, threshold(schema_of(child), once=False))
            case Totals(child, keys, measures):
                return self._after(plan, child, totals(plan, schema_of(child), keys, measures))
            case Groups(child, keys):
                return self._after(plan, child, groups(schema_of(child), keys))
            case Partition(child):
                return self._after(plan, child, partition(plan))
            case Window(child):
                return self._after(plan, child, window(plan))
            case _:
                raise Unknown(type(plan).__name__)

    def _after(self, plan: Plan, child: Plan, then: Change) -> Evaluate:
        return _unless_empty(plan, self._plan(child), then)

    def _values(self, schema: Schema, rows: tuple[tuple[str, ...], ...]) -> Evaluate:
        texts = [tuple(self._constant(text) for text in row) for row in rows]
        columns = [
            pa.array([row[place].as_py() for row in texts], arrow_type(column.type))
            for place, column in enumerate(schema)
        ]
        made = pa.record_batch([*columns, ones(len(rows))], schema=arrow_schema(schema))
        return lambda _: made

    def _constant(self, text: str) -> pa.Scalar:
        compute, _ = compiled(text, (), self._fold)
        return compute(None)

    def _filter(self, predicate: str, schema: Schema) -> Change:
        test, type_ = compiled(predicate, schema, self._fold)
        if type_ != "boolean":
            raise Unknown(type_)

        def change(rows: pa.RecordBatch) -> pa.RecordBatch:
            found = _column(test, rows)
            if found.true_count == rows.num_rows:
                return rows
            return rows.filter(found) if found.true_count else rows.slice(0, 0)

        return change

    def _map(self, outputs: tuple[Output, ...], read: Schema) -> Change:
        made = [compiled(output.scalar, read, self._fold) for output in outputs]
        for output, (_, type_) in zip(outputs, made, strict=True):
            if output.type != type_:
                raise Unknown(f"{type_} for {output.type}")
        computes = [compute for compute, _ in made]
        schema = pa.schema(
            [
                *(pa.field(output.name, arrow_type(output.type)) for output in outputs),
                pa.field(WEIGHT, pa.int64()),
            ]
        )

        def change(rows: pa.RecordBatch) -> pa.RecordBatch:
            columns = [_column(compute, rows) for compute in computes]
            return pa.record_batch([*columns, weights(rows)], schema=schema)

        return change

    def _add(self, plan: Add) -> Evaluate:
        parts = [self._plan(part) for part in _added(plan)]
        schema = arrow_schema(schema_of(plan))
        return lambda known: pa.concat_batches([picked(part(known), schema) for part in parts])

    def _mapped_join(self, plan: Map, child: Join, outputs: tuple[Output, ...]) -> Evaluate:
        """A join of which only what is read is taken; columns alone are taken as they are named."""
        both = {column.name: column for column in schema_of(child)}
        plain = [both.get(scalar.as_column(output.scalar) or "") for output in outputs]
        kept = tuple(column for column in plain if column is not None)
        if [column.type for column in kept] == [output.type for output in outputs]:
            return self._join(child, kept, schema_of(plan))
        read = frozenset[str]().union(*(scalar.columns(o.scalar) for o in outputs))
        left = tuple(column for column in both.values() if column.name in read)
        return _unless_empty(plan, self._join(child, left, left), self._map(outputs, left))

    def _join(self, plan: Join, wanted: Schema, made: Schema) -> Evaluate:
        """The pairs of a join, of which some columns are wanted, as columns of `made`."""
        left, right = self._side(plan.left), self._side(plan.right)
        both = schema_of(plan)
        ours = len(schema_of(plan.left))
        places = [both.index(column) for column in wanted]
        schema = arrow_schema(made)
        if plan.residual:
            residual = self._filter(plan.residual, both)
            whole = self._join(replace(plan, residual=None), both, both)
            return lambda known: _renamed(residual(whole(known)), places, schema)
        none = nothing(schema)

        def evaluate(known: Known) -> pa.RecordBatch:
            one = left(known)
            other = right(known) if one.num_rows else one
            if not other.num_rows:
                return none
            at, there = _matched(one, other, plan)
            if not len(at):
                return none
            columns = [
                values_at(one.column(place), at)
                if place < ours
                else values_at(other.column(place - ours), there)
                for place in places
            ]
            factors = values_at(weights(one), at), values_at(weights(other), there)
            return pa.record_batch([*columns, pc.multiply_checked(*factors)], schema=schema)

        return evaluate

    def _side(self, plan: Plan) -> Evaluate:
        """One side of a join, computed once as long as what it reads is the same."""
        evaluate = self._plan(plan)
        names = [node.name for node in walk(plan) if isinstance(node, Ref)]
        if isinstance(plan, Ref) or not names:
            return evaluate

        def once(known: Known) -> pa.RecordBatch:
            read = [known[name] for name in names]
            last = self._last.get(plan)
            if last is None or not all(map(is_, read, last[0])):
                last = self._last[plan] = read, evaluate(known)
            return last[1]

        return once

    def _restrict(self, plan: Restrict) -> Evaluate:
        child, to = self._plan(plan.child), self._plan(plan.to)

        def evaluate(known: Known) -> pa.RecordBatch:
            rows = child(known)
            keys = to(known) if rows.num_rows else rows
            if not keys.num_rows:
                return rows.slice(0, 0)
            if not plan.on:
                return rows
            ours = [rows.column(a) for a, _ in plan.on]
            return chosen(rows, occurs(ours, [keys.column(b) for _, b in plan.on]))

        return evaluate


def _renamed(rows: pa.RecordBatch, places: Sequence[int], schema: pa.Schema) -> pa.RecordBatch:
    """Some columns under the names of a schema."""
    columns = [rows.column(place) for place in places]
    return pa.record_batch([*columns, weights(rows)], schema=schema)


def _unless_empty(plan: Plan, first: Evaluate, then: Change) -> Evaluate:
    """A change of rows; of none an operator makes none, but for aggregates without keys."""
    if isinstance(plan, Groups | Partition) and not plan.keys:
        return lambda known: then(first(known))
    none = nothing(arrow_schema(schema_of(plan)))

    def evaluate(known: Known) -> pa.RecordBatch:
        rows = first(known)
        return then(rows) if rows.num_rows else none

    return evaluate


def _added(plan: Plan) -> list[Plan]:
    return [*_added(plan.left), *_added(plan.right)] if isinstance(plan, Add) else [plan]


def _column(compute: Compute, rows: pa.RecordBatch) -> pa.Array:
    value = compute(rows)
    return pa.repeat(value, rows.num_rows) if isinstance(value, pa.Scalar) else value


def _negated(rows: pa.RecordBatch) -> pa.RecordBatch:
    return reweighted(rows, pc.negate(weights(rows)))


def _matched(one: pa.RecordBatch, other: pa.RecordBatch, plan: Join) -> tuple[Any, Any]:
    if not plan.on:
        return every_pair(one.num_rows, other.num_rows)
    ours, theirs = [one.column(a) for a, _ in plan.on], [other.column(b) for _, b in plan.on]
    return pairs(ours, theirs, nulls=plan.nulls)
