"""Compiles plans to functions over Arrow record batches: vectorized operators for small inputs.

A batch has the columns of its plan's schema, in order, and the weight last. Condition of
correctness: an operator gives the database's answer to the bit, or it is Unsupported.
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
from everview.runtime.vector.aggregate import consolidate, groups, threshold, totals
from everview.runtime.vector.batches import (
    Transform,
    empty_batch,
    filter_rows,
    select_columns,
    take_rows,
    unit_weights,
    weights,
    with_weights,
)
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.join import all_pairs, matching_pairs, semi_join_mask
from everview.runtime.vector.scalars import Compute, Fold, compile_scalar
from everview.runtime.vector.window import partition, window

Relations: TypeAlias = Mapping[str, pa.RecordBatch]
Evaluate: TypeAlias = Callable[[Relations], pa.RecordBatch]

MAX_COMPILED_PLANS = 4096
"""How many compiled plans are kept."""
_CONSOLIDATED = Distinct | Positive | Groups | Totals | Partition
"""Operators whose rows are always consolidated."""


def unless_unknown(compute: Callable[[], pa.RecordBatch]) -> pa.RecordBatch | None:
    """What vector operators compute, None where they do not know the plan or one of its values."""
    try:
        return compute()
    except (Unsupported, pa.ArrowException):
        return None


class VectorEvaluator:
    """Evaluates plans on record batches; `fold` gives the value of an expression without columns.

    What a side of a join or restriction computed is kept while its inputs are the same objects.
    """

    def __init__(self, fold: Fold) -> None:
        self.fold = lru_cache(maxsize=MAX_COMPILED_PLANS)(fold)
        self._compiled = lru_cache(maxsize=MAX_COMPILED_PLANS)(self._compile_or_none)
        self._last: dict[object, tuple[list[pa.RecordBatch], pa.RecordBatch]] = {}

    def clear(self) -> None:
        """Forget what was computed."""
        self._last.clear()

    def evaluate(self, plan: Plan, relations: Relations, *, consolidated: bool) -> pa.RecordBatch:
        """The weighted rows of a plan.

        Unsupported, or an Arrow error, says that the database must answer.
        """
        compiled = self._compiled(plan)
        if compiled is None:
            raise Unsupported(type(plan).__name__)
        rows = compiled(relations)
        if not consolidated or isinstance(plan, _CONSOLIDATED):
            return rows
        return consolidate(rows, schema_of(plan), ())

    def consolidate(
        self, rows: pa.RecordBatch, schema: Schema, rings: tuple[str, ...]
    ) -> pa.RecordBatch | None:
        """Weighted rows with the weights of equal rows added, None where the database must do it.

        `rings` are the columns that are added up with the weights.
        """
        wanted = select_columns(rows, arrow_schema(schema))
        return unless_unknown(lambda: consolidate(wanted, schema, rings))

    def _compile_or_none(self, plan: Plan) -> Evaluate | None:
        try:
            return self._compile(plan)
        except (Unsupported, pa.ArrowException):
            return None

    def _compile(self, plan: Plan) -> Evaluate:
        """A function that evaluates all columns of a plan."""
        match plan:
            case Empty(schema):
                none = empty_batch(arrow_schema(schema))
                return lambda _: none
            case Values(schema, rows):
                return self._values(schema, rows)
            case Ref() | Filter() | Add() | Negate() | Join() | Restrict():
                return self._compile_columns(plan, frozenset(names(schema_of(plan))))[0]
            case Map(child, outputs):
                read = frozenset[str]().union(*(scalar.columns(o.scalar) for o in outputs))
                first, schema = self._compile_columns(child, read)
                return _pipe(first, self._map(outputs, schema), schema_of(plan))
            case Totals(child, keys, measures):
                read = frozenset((*keys, *(name for m in measures for name in m.reads)))
                first, schema = self._compile_columns(child, read)
                return _pipe(first, totals(plan, schema, keys, measures), schema_of(plan))
            case Distinct(child):
                return self._compile_unary(plan, child, threshold(schema_of(child), once=True))
            case Positive(child):
                return self._compile_unary(plan, child, threshold(schema_of(child), once=False))
            case Groups(child, keys):
                return self._compile_unary(plan, child, groups(schema_of(child), keys))
            case Partition(child):
                return self._compile_unary(plan, child, partition(plan))
            case Window(child):
                return self._compile_unary(plan, child, window(plan))
            case _:
                raise Unsupported(type(plan).__name__)

    def _compile_unary(self, plan: Plan, child: Plan, then: Transform) -> Evaluate:
        first = self._compile(child)
        if not isinstance(plan, Groups | Partition) or plan.keys:
            return _pipe(first, then, schema_of(plan))
        none = empty_batch(arrow_schema(schema_of(child)))
        group = cache(lambda: then(none))  # the one group of no rows

        def evaluate(relations: Relations) -> pa.RecordBatch:
            rows = first(relations)
            return then(rows) if rows.num_rows else group()

        return evaluate

    def _compile_columns(self, plan: Plan, read: frozenset[str]) -> tuple[Evaluate, Schema]:
        """A function that evaluates at least the columns that are read, and which it returns."""
        kept = tuple(column for column in schema_of(plan) if column.name in read)
        match plan:
            case Ref(name):
                wanted = arrow_schema(kept)
                return (lambda relations: select_columns(relations[name], wanted)), kept
            case Filter(child, predicate):
                first, schema = self._compile_columns(child, read | scalar.columns(predicate))
                return _pipe(first, self._filter(predicate, schema, kept), kept), kept
            case Add():
                return self._add(plan, kept), kept
            case Negate(child):
                first, schema = self._compile_columns(child, read)
                return _pipe(first, _negated, schema), schema
            case Join():
                return self._join(plan, kept), kept
            case Restrict():
                return self._memoized(plan, kept, self._restrict(plan, kept)), kept
            case _:
                return self._compile(plan), schema_of(plan)

    def _values(self, schema: Schema, rows: tuple[tuple[str, ...], ...]) -> Evaluate:
        texts = [tuple(self._constant(text) for text in row) for row in rows]
        columns = [
            pa.array([row[place].as_py() for row in texts], arrow_type(column.type))
            for place, column in enumerate(schema)
        ]
        values = pa.record_batch([*columns, unit_weights(len(rows))], schema=arrow_schema(schema))
        return lambda _: values

    def _constant(self, text: str) -> pa.Scalar:
        compute, _ = compile_scalar(text, (), self.fold)
        return compute(None)

    def _filter(self, predicate: str, schema: Schema, kept: Schema) -> Transform:
        """The rows that satisfy a predicate, of which some columns are kept."""
        test, type_ = compile_scalar(predicate, schema, self.fold)
        if type_ != "boolean":
            raise Unsupported(type_)
        pick = _projection(schema, names(kept))

        def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
            mask = _column(test, rows)
            count = mask.true_count
            if count == rows.num_rows:
                return pick(rows)
            return pick(rows).filter(mask) if count else pick(rows).slice(0, 0)

        return transform

    def _map(self, outputs: tuple[Output, ...], read: Schema) -> Transform:
        plain = [scalar.as_column(output.scalar) or "" for output in outputs]
        if [output.type for output in outputs] == [_type_of(read, name) for name in plain]:
            return _renamed_projection(read, plain, [output.name for output in outputs])
        compiled = [compile_scalar(output.scalar, read, self.fold) for output in outputs]
        for output, (_, type_) in zip(outputs, compiled, strict=True):
            if output.type != type_:
                raise Unsupported(f"{type_} for {output.type}")
        computes = [compute for compute, _ in compiled]
        schema = pa.schema(
            [
                *(pa.field(output.name, arrow_type(output.type)) for output in outputs),
                pa.field(WEIGHT, pa.int64()),
            ]
        )

        def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
            columns = [_column(compute, rows) for compute in computes]
            return pa.record_batch([*columns, weights(rows)], schema=schema)

        return transform

    def _add(self, plan: Add, kept: Schema) -> Evaluate:
        wanted = arrow_schema(kept)
        none = empty_batch(wanted)
        parts = [self._compile_columns(part, frozenset(names(kept)))[0] for part in _summands(plan)]

        def evaluate(relations: Relations) -> pa.RecordBatch:
            batches = (part(relations) for part in parts)
            present = [select_columns(rows, wanted) for rows in batches if rows.num_rows]
            return pa.concat_batches(present) if len(present) > 1 else [*present, none][0]

        return evaluate

    def _join(self, plan: Join, wanted: Schema) -> Evaluate:
        """The pairs of a join, of which some columns are wanted."""
        if plan.residual:
            read = {*names(wanted), *scalar.columns(plan.residual)}
            both = tuple(column for column in schema_of(plan) if column.name in read)
            pairs_of = self._join(replace(plan, residual=None), both)
            return _pipe(pairs_of, self._filter(plan.residual, both, wanted), wanted)
        left = self._side(plan.left, [a for a, _ in plan.on], names(wanted))
        right = self._side(plan.right, [b for _, b in plan.on], names(wanted))
        schema = arrow_schema(wanted)
        none = empty_batch(schema)

        def evaluate(relations: Relations) -> pa.RecordBatch:
            one = left.rows(relations)
            other = right.rows(relations) if one.num_rows else one
            if not other.num_rows:
                return none
            if plan.on:
                at, there = matching_pairs(left.keys(one), right.keys(other), nulls=plan.nulls)
            else:
                at, there = all_pairs(one.num_rows, other.num_rows)
            if not len(at):
                return none
            *columns, weight = take_rows(left.pick(one), at).columns
            *more, factor = take_rows(right.pick(other), there).columns
            product = pc.multiply_checked(weight, factor)
            return pa.record_batch([*columns, *more, product], schema=schema)

        return evaluate

    def _restrict(self, plan: Restrict, wanted: Schema) -> Evaluate:
        child = self._side(plan.child, [a for a, _ in plan.on], names(wanted))
        to = self._side(plan.to, [b for _, b in plan.on], ())

        def evaluate(relations: Relations) -> pa.RecordBatch:
            rows = child.rows(relations)
            keys = to.rows(relations) if rows.num_rows else rows
            if not keys.num_rows:
                return child.pick(rows).slice(0, 0)
            if not plan.on:
                return child.pick(rows)
            return filter_rows(child.pick(rows), semi_join_mask(child.keys(rows), to.keys(keys)))

        return evaluate

    def _side(self, plan: Plan, keys: Sequence[str], wanted: Sequence[str]) -> _Side:
        """One side of a join by keys, of which some columns are wanted."""
        rows, schema = self._compile_columns(plan, frozenset((*keys, *wanted)))
        kept = [name for name in names(schema) if name in wanted]
        places = [names(schema).index(key) for key in keys]
        once = self._memoized(plan, schema, rows)
        return _Side(once, lambda batch: [*map(batch.column, places)], _projection(schema, kept))

    def _memoized(self, plan: Plan, kept: Schema, evaluate: Evaluate) -> Evaluate:
        """Some columns of a plan, computed again only if it reads other batches than last time."""
        mark, read = (plan, kept), [node.name for node in walk(plan) if isinstance(node, Ref)]
        if isinstance(plan, Ref) or not read:
            return evaluate

        def once(relations: Relations) -> pa.RecordBatch:
            now = [relations[name] for name in read]
            last = self._last.get(mark)
            if last is None or not all(map(is_, now, last[0])):
                last = self._last[mark] = now, evaluate(relations)
            return last[1]

        return once


@dataclass(frozen=True, slots=True)
class _Side:
    """How one side of a join is evaluated, its keys taken, and its wanted columns selected."""

    rows: Evaluate
    keys: Callable[[pa.RecordBatch], list[pa.Array]]
    pick: Transform


def _projection(schema: Schema, kept: Sequence[str]) -> Transform:
    """Some columns of a schema, and the weight."""
    if [*kept] == [*names(schema)]:
        return lambda rows: rows
    places = [*map(names(schema).index, kept), len(schema)]
    return lambda rows: rows.select(places)


def _renamed_projection(schema: Schema, kept: Sequence[str], fresh: Sequence[str]) -> Transform:
    """Some columns of a schema under other names, and the weight."""
    pick = _projection(schema, kept)
    if [*kept] == [*fresh]:
        return pick
    renamed = [*fresh, WEIGHT]
    return lambda rows: pick(rows).rename_columns(renamed)


def _type_of(schema: Schema, name: str) -> Type | None:
    return next((column.type for column in schema if column.name == name), None)


def _pipe(first: Evaluate, then: Transform, schema: Schema) -> Evaluate:
    """`then` of the rows of `first`; it must make no rows of no rows."""
    none = empty_batch(arrow_schema(schema))

    def evaluate(relations: Relations) -> pa.RecordBatch:
        rows = first(relations)
        return then(rows) if rows.num_rows else none

    return evaluate


def _summands(plan: Plan) -> list[Plan]:
    return [*_summands(plan.left), *_summands(plan.right)] if isinstance(plan, Add) else [plan]


def _column(compute: Compute, rows: pa.RecordBatch) -> pa.Array:
    value = compute(rows)
    return pa.repeat(value, rows.num_rows) if isinstance(value, pa.Scalar) else value


def _negated(rows: pa.RecordBatch) -> pa.RecordBatch:
    return with_weights(rows, pc.negate(weights(rows)))
