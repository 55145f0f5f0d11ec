"""Plans over Arrow record batches: each operator as a function of what it reads.

A batch has the columns of its plan's schema, in order, and the weight last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from operator import is_
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr import scalar
from everview.expr.types import WEIGHT, Schema, Type, names
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
from everview.runtime.arrow_types import arrow_schema, arrow_type
from everview.runtime.vector.aggregate import consolidate, groups, regrouped, threshold, totals
from everview.runtime.vector.batches import (
    Change,
    chosen,
    nothing,
    ones,
    picked,
    reweighted,
    taken,
    weights,
)
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.group_join import every_pair, occurs, pairs
from everview.runtime.vector.scalars import Compute, Fold, compiled
from everview.runtime.vector.window import partition, window

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
        self._last: dict[object, tuple[list[pa.RecordBatch], pa.RecordBatch]] = {}

    def forget(self) -> None:
        """Let go of what was computed."""
        self._last.clear()

    def evaluate(self, plan: Plan, known: Known, *, consolidated: bool) -> pa.RecordBatch:
        """The weighted rows of a plan; Unsupported or an Arrow error if the database must answer."""
        ready = self._ready(plan)
        if ready is None:
            raise Unsupported(type(plan).__name__)
        rows = ready(known)
        if not consolidated or isinstance(plan, _SUMMED):
            return rows
        return consolidate(rows, schema_of(plan), ())

    def _prepared(self, plan: Plan) -> Evaluate | None:
        """What evaluates a plan, None if it is not known here."""
        try:
            return self._plan(plan)
        except (Unsupported, pa.ArrowException):
            return None

    def _plan(self, plan: Plan) -> Evaluate:
        """What evaluates a plan, all its columns."""
        match plan:
            case Empty(schema):
                none = nothing(arrow_schema(schema))
                return lambda _: none
            case Values(schema, rows):
                return self._values(schema, rows)
            case Ref() | Filter() | Add() | Negate() | Join() | Restrict():
                return self._part(plan, frozenset(names(schema_of(plan))))[0]
            case Map(child, outputs):
                read = frozenset[str]().union(*(scalar.columns(o.scalar) for o in outputs))
                first, schema = self._part(child, read)
                return _then(first, self._map(outputs, schema), schema_of(plan))
            case Totals(child, keys, measures):
                read = frozenset((*keys, *(m.column for m in measures if m.column)))
                first, schema = self._part(child, read)
                return _then(first, totals(plan, schema, keys, measures), schema_of(plan))
            case Distinct(child):
                return self._after(plan, child, threshold(schema_of(child), once=True))
            case Positive(child):
                return self._after(plan, child, threshold(schema_of(child), once=False))
            case Groups(child, keys):
                return self._after(plan, child, groups(schema_of(child), keys))
            case Partition(child):
                return self._after(plan, child, partition(plan))
            case Window(child):
                return self._after(plan, child, window(plan))
            case _:
                raise Unsupported(type(plan).__name__)

    def _after(self, plan: Plan, child: Plan, then: Change) -> Evaluate:
        first = self._plan(child)
        if not isinstance(plan, Groups | Partition) or plan.keys:
            return _then(first, then, schema_of(plan))
        none = nothing(arrow_schema(schema_of(child)))
        group = cache(lambda: then(none))  # the one group of no rows

        def evaluate(known: Known) -> pa.RecordBatch:
            rows = first(known)
            return then(rows) if rows.num_rows else group()

        return evaluate

    def _part(self, plan: Plan, read: frozenset[str]) -> tuple[Evaluate, Schema]:
        """What evaluates the columns of a plan that are read, perhaps others too, and which."""
        kept = tuple(column for column in schema_of(plan) if column.name in read)
        match plan:
            case Ref(name):
                wanted = arrow_schema(kept)
                return (lambda known: picked(known[name], wanted)), kept
            case Filter(child, predicate):
                first, schema = self._part(child, read | scalar.columns(predicate))
                return _then(first, self._filter(predicate, schema, kept), kept), kept
            case Add():
                return self._add(plan, kept), kept
            case Negate(child):
                first, schema = self._part(child, read)
                return _then(first, _negated, schema), schema
            case Join():
                return self._join(plan, kept), kept
            case Restrict():
                return self._once(plan, kept, self._restrict(plan, kept)), kept
            case _:
                return self._plan(plan), schema_of(plan)

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

    def _filter(self, predicate: str, schema: Schema, kept: Schema) -> Change:
        """The rows that satisfy a predicate, of which some columns are kept."""
        test, type_ = compiled(predicate, schema, self._fold)
        if type_ != "boolean":
            raise Unsupported(type_)
        pick = _picking(schema, names(kept))

        def change(rows: pa.RecordBatch) -> pa.RecordBatch:
            found = _column(test, rows)
            count = found.true_count
            if count == rows.num_rows:
                return pick(rows)
            return pick(rows).filter(found) if count else pick(rows).slice(0, 0)

        return change

    def _map(self, outputs: tuple[Output, ...], read: Schema) -> Change:
        plain = [scalar.as_column(output.scalar) or "" for output in outputs]
        if [output.type for output in outputs] == [_type(read, name) for name in plain]:
            return _renaming(read, plain, [output.name for output in outputs])
        made = [compiled(output.scalar, read, self._fold) for output in outputs]
        for output, (_, type_) in zip(outputs, made, strict=True):
            if output.type != type_:
                raise Unsupported(f"{type_} for {output.type}")
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

    def _add(self, plan: Add, kept: Schema) -> Evaluate:
        wanted = arrow_schema(kept)
        match plan:
            case Add(Groups(after, keys), Negate(Groups(before, same))) if keys and keys == same:
                whole = self._regrouped(after, before, keys)
                return lambda known: picked(whole(known), wanted)
            case Add(
                Restrict(Groups(after, ()), to, ()), Negate(Restrict(Groups(before, ()), same, ()))
            ) if to == same:
                all_rows = self._regrouped(after, before, ())
                asked, none = self._part(to, frozenset())[0], nothing(wanted)
                return lambda known: (
                    picked(all_rows(known), wanted) if asked(known).num_rows else none
                )
        none = nothing(wanted)
        parts = [self._part(part, frozenset(names(kept)))[0] for part in _added(plan)]

        def evaluate(known: Known) -> pa.RecordBatch:
            every = (part(known) for part in parts)
            found = [picked(rows, wanted) for rows in every if rows.num_rows]
            return pa.concat_batches(found) if len(found) > 1 else [*found, none][0]

        return evaluate

    def _regrouped(self, after: Plan, before: Plan, keys: tuple[str, ...]) -> Evaluate:
        """The groups of some rows minus those of others, in one go."""
        sides, change = (self._plan(after), self._plan(before)), regrouped(schema_of(after), keys)
        return lambda known: change(*(rows(known) for rows in sides))

    def _join(self, plan: Join, wanted: Schema) -> Evaluate:
        """The pairs of a join, of which some columns are wanted."""
        if plan.residual:
            read = {*names(wanted), *scalar.columns(plan.residual)}
            both = tuple(column for column in schema_of(plan) if column.name in read)
            pairs_of = self._join(replace(plan, residual=None), both)
            return _then(pairs_of, self._filter(plan.residual, both, wanted), wanted)
        left = self._side(plan.left, [a for a, _ in plan.on], names(wanted))
        right = self._side(plan.right, [b for _, b in plan.on], names(wanted))
        schema = arrow_schema(wanted)
        none = nothing(schema)

        def evaluate(known: Known) -> pa.RecordBatch:
            one = left.rows(known)
            other = right.rows(known) if one.num_rows else one
            if not other.num_rows:
                return none
            if plan.on:
                at, there = pairs(left.keys(one), right.keys(other), nulls=plan.nulls)
            else:
                at, there = every_pair(one.num_rows, other.num_rows)
            if not len(at):
                return none
            *columns, weight = taken(left.pick(one), at).columns
            *more, factor = taken(right.pick(other), there).columns
            product = pc.multiply_checked(weight, factor)
            return pa.record_batch([*columns, *more, product], schema=schema)

        return evaluate

    def _restrict(self, plan: Restrict, wanted: Schema) -> Evaluate:
        child = self._side(plan.child, [a for a, _ in plan.on], names(wanted))
        to = self._side(plan.to, [b for _, b in plan.on], ())

        def evaluate(known: Known) -> pa.RecordBatch:
            rows = child.rows(known)
            keys = to.rows(known) if rows.num_rows else rows
            if not keys.num_rows:
                return child.pick(rows).slice(0, 0)
            if not plan.on:
                return child.pick(rows)
            return chosen(child.pick(rows), occurs(child.keys(rows), to.keys(keys)))

        return evaluate

    def _side(self, plan: Plan, keys: Sequence[str], wanted: Sequence[str]) -> _Side:
        """One side of a join by keys, of which some columns are wanted."""
        rows, schema = self._part(plan, frozenset((*keys, *wanted)))
        kept = [name for name in names(schema) if name in wanted]
        places = [names(schema).index(key) for key in keys]
        once = self._once(plan, schema, rows)
        return _Side(once, lambda found: [*map(found.column, places)], _picking(schema, kept))

    def _once(self, plan: Plan, kept: Schema, evaluate: Evaluate) -> Evaluate:
        """Some columns of a plan, computed once as long as what it reads is the same."""
        mark, read = (plan, kept), [node.name for node in walk(plan) if isinstance(node, Ref)]
        if isinstance(plan, Ref) or not read:
            return evaluate

        def once(known: Known) -> pa.RecordBatch:
            now = [known[name] for name in read]
            last = self._last.get(mark)
            if last is None or not all(map(is_, now, last[0])):
                last = self._last[mark] = now, evaluate(known)
            return last[1]

        return once


@dataclass(frozen=True, slots=True)
class _Side:
    """What evaluates the rows of one side of a join; their keys; and what is wanted of them."""

    rows: Evaluate
    keys: Callable[[pa.RecordBatch], list[pa.Array]]
    pick: Change


def _picking(schema: Schema, kept: Sequence[str]) -> Change:
    """Some columns of a schema, and the weight."""
    if [*kept] == [*names(schema)]:
        return lambda rows: rows
    places = [*map(names(schema).index, kept), len(schema)]
    return lambda rows: rows.select(places)


def _renaming(schema: Schema, kept: Sequence[str], fresh: Sequence[str]) -> Change:
    """Some columns of a schema under other names, and the weight."""
    pick = _picking(schema, kept)
    if [*kept] == [*fresh]:
        return pick
    renamed = [*fresh, WEIGHT]
    return lambda rows: pick(rows).rename_columns(renamed)


def _type(schema: Schema, name: str) -> Type | None:
    return next((column.type for column in schema if column.name == name), None)


def _then(first: Evaluate, then: Change, schema: Schema) -> Evaluate:
    """A change of rows that makes none of none."""
    none = nothing(arrow_schema(schema))

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
