"""Sums over record batches: consolidation, totals, groups, thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everview.engine.arrow import arrow_schema
from everview.engine.columns import decimals
from everview.engine.columns.batches import Change, batch, ones, reweighted, weights
from everview.engine.columns.grouping import sums
from everview.engine.columns.unknown import Unknown
from everview.plan.nodes import Measure, Totals
from everview.plan.traverse import schema_of
from everview.plan.types import INTEGERS, WEIGHT, Schema, decimal_parts, names, type_in


def consolidate(rows: pa.RecordBatch, schema: Schema, rings: tuple[str, ...]) -> pa.RecordBatch:
    """The sum of weighted rows: weights added for equal rows, and `rings` with them."""
    if rows.num_rows == 0:
        return rows
    keys = [name for name in names(schema) if name not in rings]
    found = sums(_widened(rows, rings), keys, [*rings, WEIGHT])
    made = _finished(found, keys, schema)
    kept = pc.not_equal(weights(made), 0)
    for ring in rings:
        kept = pc.or_(kept, pc.not_equal(made.column(ring), _zero(made.column(ring).type)))
    return made.filter(kept)


def threshold(schema: Schema, *, once: bool) -> Change:
    """The rows of positive weight."""

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        summed = consolidate(rows, schema, ())
        kept = summed.filter(pc.greater(weights(summed), 0))
        return reweighted(kept, ones(kept.num_rows)) if once else kept

    return change


def totals(
    plan: Totals, schema: Schema, keys: tuple[str, ...], measures: tuple[Measure, ...]
) -> Change:
    """Sums for each group that has rows in the change, even where they cancel."""
    for measure in measures:
        summed = measure.function == "sum" and measure.column is not None
        exact = summed and type_in(schema, measure.column or "")
        if exact and exact not in INTEGERS and not decimal_parts(exact):
            raise Unknown(exact)
    made = schema_of(plan)

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        if rows.num_rows == 0:
            return batch(arrow_schema(made).empty_table())
        own = weights(rows)
        factors = decimals.Weights(own)
        columns = [rows.column(key) for key in keys]
        columns += [_measured(measure, rows, own, factors) for measure in measures]
        added = [*(measure.name for measure in measures), WEIGHT]
        wide = pa.record_batch([*columns, own], names=[*keys, *added])
        return _finished(sums(wide, keys, added), keys, made)

    return change


def _measured(
    measure: Measure, rows: pa.RecordBatch, own: pa.Array, factors: decimals.Weights
) -> pa.Array:
    """What a row adds to a measure."""
    if measure.column is None:
        return own
    values = rows.column(measure.column)
    if measure.function == "count":
        return pc.if_else(pc.is_valid(values), own, 0)
    if pa.types.is_integer(values.type):
        values = pc.cast(pc.cast(values, pa.int64()), pa.decimal128(19, 0))
    return factors.times(values)


def groups(schema: Schema, keys: tuple[str, ...]) -> Change:
    """The groups with rows; without keys one, whatever there is."""
    rings = tuple(name for name in names(schema) if name not in keys)
    for ring in rings:
        if not decimal_parts(type_in(schema, ring)) and type_in(schema, ring) != "bigint":
            raise Unknown(type_in(schema, ring))

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        if keys and rows.num_rows == 0:
            return rows
        found = sums(_widened(rows, rings), keys, [*rings, WEIGHT])
        made = _finished(found, keys, schema)
        if keys:
            made = made.filter(pc.greater(weights(made), 0))
        return reweighted(made, ones(made.num_rows))

    return change


def _widened(rows: pa.RecordBatch, rings: Sequence[str]) -> pa.RecordBatch:
    """The rows with decimals that are added up in a type that holds every sum."""
    for ring in rings:
        place = rows.schema.get_field_index(ring)
        type_ = rows.column(place).type
        if pa.types.is_decimal128(type_):
            wide = rows.column(place).cast(pa.decimal256(type_.precision, type_.scale))
            rows = rows.set_column(place, ring, wide)
    return rows


def _finished(found: pa.Table, keys: Sequence[str], schema: Schema) -> pa.RecordBatch:
    """Sums as columns of the schema: no value sums to zero, and one that does not fit raises."""
    wanted = arrow_schema(schema)
    columns = []
    for name in wanted.names:
        if name in keys:
            columns.append(_one(found.column(name)))
            continue
        summed = _one(found.column(f"{name}_sum"))
        total = pc.fill_null(summed, _zero(summed.type)) if summed.null_count else summed
        type_ = wanted.field(name).type
        columns.append(total if total.type == type_ else total.cast(type_))
    return pa.record_batch(columns, schema=wanted)


def _zero(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, pa.int64()).cast(type_) if type_ != pa.int64() else pa.scalar(0, type_)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
