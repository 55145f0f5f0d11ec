"""Sums over record batches: consolidation, totals, groups, thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import INTEGERS, Schema, Type, decimal_parts, names, type_in
from everview.plan.nodes import Measure, Totals
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.vector.batches import Change, chosen, ones, picked, reweighted, weights
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.group_join import Grouping, grouping
from everview.runtime.vector.int_encoding import Ints, int_column


def sums(rows: pa.RecordBatch, keys: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a schema with equal keys made one: what is no key is added up.

    No value sums to zero, and a sum that does not fit raises.
    """
    groups = grouping(rows, keys)
    if groups.order is None and len(keys) + 1 == len(schema):
        return rows
    return _summed(groups, rows, keys, schema)


def _summed(
    groups: Grouping, rows: pa.RecordBatch, keys: Sequence[str], schema: pa.Schema
) -> pa.RecordBatch:
    found = groups.keys(rows, keys)
    added = [name for name in schema.names if name not in found]
    targets = [schema.field(name).type for name in added]
    found |= zip(added, groups.totals([*map(rows.column, added)], targets), strict=True)
    return pa.record_batch([found[name] for name in schema.names], schema=schema)


def consolidate(rows: pa.RecordBatch, schema: Schema, rings: tuple[str, ...]) -> pa.RecordBatch:
    """The sum of weighted rows: weights added for equal rows, and `rings` with them."""
    if rows.num_rows == 0:
        return rows
    keys = [name for name in names(schema) if name not in rings]
    made = sums(rows, keys, arrow_schema(schema))
    kept = weights(made).to_numpy() != 0
    for ring in rings if not kept.all() else ():
        kept |= _is_not_zero(made.column(ring))
    return chosen(made, kept)


def threshold(schema: Schema, *, once: bool) -> Change:
    """The rows of positive weight."""

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        summed = consolidate(rows, schema, ())
        kept = chosen(summed, weights(summed).to_numpy() > 0)
        return reweighted(kept, ones(kept.num_rows)) if once else kept

    return change


def totals(
    plan: Totals, schema: Schema, keys: tuple[str, ...], measures: tuple[Measure, ...]
) -> Change:
    """Sums for each group that has rows in the change, even where they cancel."""
    for measure in measures:
        summed = measure.function == "sum" and measure.column is not None
        exact = summed and type_in(schema, measure.column or "")
        if exact and exact not in INTEGERS and not _keeps_digits(exact, measure.type):
            raise Unsupported(exact)
    made = arrow_schema(schema_of(plan))
    targets = [*(made.field(measure.name).type for measure in measures), pa.int64()]

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = grouping(rows, keys)
        columns = [_counted(measure, rows) for measure in measures]
        once = np.ones(rows.num_rows, np.int64)
        found = groups.totals([*columns, once], targets, weights(rows).to_numpy())
        return pa.record_batch([*groups.keys(rows, keys).values(), *found], schema=made)

    return change


def _keeps_digits(type_: Type, to: Type) -> bool:
    ours, theirs = decimal_parts(type_), decimal_parts(to)
    return bool(ours and theirs and ours[1] == theirs[1])


def _counted(measure: Measure, rows: pa.RecordBatch) -> pa.Array | Ints:
    """What a row adds to a measure."""
    if measure.column is None:
        return np.ones(rows.num_rows, np.int64)
    values = rows.column(measure.column)
    if measure.function == "count":
        return values.is_valid().to_numpy(zero_copy_only=False)
    return values


def groups(schema: Schema, keys: tuple[str, ...]) -> Change:
    """The groups with rows; without keys one, whatever there is."""
    _must_add_up(schema, keys)
    wanted = arrow_schema(schema)

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = sums(rows, keys, wanted)
        if keys:
            made = chosen(made, weights(made).to_numpy() > 0)
        return reweighted(made, ones(made.num_rows))

    return change


def regrouped(
    schema: Schema, keys: tuple[str, ...]
) -> Callable[[pa.RecordBatch, pa.RecordBatch], pa.RecordBatch]:
    """The groups that some rows make, by keys, minus those that others make.

    Without keys one is there on either side, whatever there is.
    """
    _must_add_up(schema, keys)
    wanted = arrow_schema(schema)
    alone = groups(schema, keys)

    def change(after: pa.RecordBatch, before: pa.RecordBatch) -> pa.RecordBatch:
        if not (keys or (after.num_rows and before.num_rows)):
            gone = alone(before)
            return pa.concat_batches([alone(after), reweighted(gone, pc.negate(weights(gone)))])
        rows = pa.concat_batches([picked(after, wanted), picked(before, wanted)])
        signs = np.ones(rows.num_rows, np.int64)
        signs[after.num_rows :] = -1
        found = grouping(rows, keys, signs) if keys else _sides(after.num_rows, rows.num_rows)
        made = _summed(found, rows, keys, wanted)
        there = weights(made).to_numpy() > 0 if keys else np.ones(2, bool)
        return reweighted(chosen(made, there), int_column(found.first(signs)[there]))

    return change


def _sides(first: int, all_: int) -> Grouping:
    """So many rows as one group, and those after them as another; both have some."""
    return Grouping(np.arange(all_), np.array([0, first]))


def _must_add_up(schema: Schema, keys: tuple[str, ...]) -> None:
    """Unsupported unless all but the keys are exact numbers."""
    for name in names(schema):
        type_ = type_in(schema, name)
        if name not in keys and not decimal_parts(type_) and type_ != "bigint":
            raise Unsupported(type_)


def _is_not_zero(values: pa.Array) -> Ints:
    zero = pa.scalar(0, pa.int64()).cast(values.type)
    found: Ints = pc.not_equal(values, zero).to_numpy(zero_copy_only=False)
    return found
