"""Operators that sum per key on record batches: consolidation, thresholds, totals and groups."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import INTEGERS, Schema, Type, decimal_parts, names, type_in
from everview.plan.nodes import Measure, Totals
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.vector.batches import (
    Transform,
    filter_rows,
    unit_weights,
    weights,
    with_weights,
)
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.grouping import group_rows
from everview.runtime.vector.int_encoding import Ints, int_column, max_abs, unscaled
from everview.store.sort_order import INT64_SAFE


def sum_by_key(rows: pa.RecordBatch, keys: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """One row per key: the columns of `schema` that are no keys, and the weight, are summed.

    A sum of no values is zero, and one that does not fit raises.
    """
    groups = group_rows(rows, keys)
    if groups.order is None and len(keys) + 1 == len(schema):
        return rows
    columns = groups.key_columns(rows, keys)
    summed = [name for name in schema.names if name not in columns]
    targets = [schema.field(name).type for name in summed]
    columns |= zip(summed, groups.sums([*map(rows.column, summed)], targets), strict=True)
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def consolidate(rows: pa.RecordBatch, schema: Schema, rings: tuple[str, ...]) -> pa.RecordBatch:
    """The sum of weighted rows: weights added for equal rows, and `rings` with them."""
    if rows.num_rows == 0:
        return rows
    keys = [name for name in names(schema) if name not in rings]
    summed = sum_by_key(rows, keys, arrow_schema(schema))
    kept = weights(summed).to_numpy() != 0
    for ring in rings if not kept.all() else ():
        kept |= _is_not_zero(summed.column(ring))
    return filter_rows(summed, kept)


def threshold(schema: Schema, *, once: bool) -> Transform:
    """The rows of positive weight; `once` gives each the weight one."""

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        summed = consolidate(rows, schema, ())
        kept = filter_rows(summed, weights(summed).to_numpy() > 0)
        return with_weights(kept, unit_weights(kept.num_rows)) if once else kept

    return transform


def totals(
    plan: Totals, schema: Schema, keys: tuple[str, ...], measures: tuple[Measure, ...]
) -> Transform:
    """The measures of each group that has rows, even where their weights cancel."""
    for measure in measures:
        summed = measure.function == "sum" and measure.column is not None
        exact = summed and type_in(schema, measure.column or "")
        if exact and exact not in INTEGERS and not _keeps_digits(exact, measure.type):
            raise Unsupported(exact)
    result = arrow_schema(schema_of(plan))
    weighted = [measure for measure in measures if measure.function != "product"]
    products = [measure for measure in measures if measure.function == "product"]
    targets = [*(result.field(measure.name).type for measure in weighted), pa.int64()]

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = group_rows(rows, keys)
        columns = [_summand(measure, rows) for measure in weighted]
        unit = np.ones(rows.num_rows, np.int64)
        *sums, weight = groups.sums([*columns, unit], targets, weights(rows).to_numpy())
        made = dict(zip((measure.name for measure in weighted), sums, strict=True))
        for measure in products:
            units = int_column(_multiplied(measure, rows))
            (made[measure.name],) = groups.sums([units], [result.field(measure.name).type])
        ordered = (made[measure.name] for measure in measures)
        own = groups.key_columns(rows, keys).values()
        return pa.record_batch([*own, *ordered, weight], schema=result)

    return transform


def _keeps_digits(type_: Type, to: Type) -> bool:
    ours, theirs = decimal_parts(type_), decimal_parts(to)
    return bool(ours and theirs and ours[1] == theirs[1])


def _summand(measure: Measure, rows: pa.RecordBatch) -> pa.Array | Ints:
    """What each row adds to a measure, times its weight."""
    if measure.column is None:
        return np.ones(rows.num_rows, np.int64)
    values = rows.column(measure.column)
    if measure.function == "count":
        return values.is_valid().to_numpy(zero_copy_only=False)
    return values


def _multiplied(measure: Measure, rows: pa.RecordBatch) -> Ints:
    """The product of some totals per row, in units of its last digit; Unsupported past 64 bits."""
    units = unscaled([rows.column(name) for name in measure.factors])
    if units is None:
        raise Unsupported("totals beyond 64 bits")
    if prod(max_abs(row) for row in units) > INT64_SAFE:
        raise Unsupported("a product beyond 64 bits")
    product: Ints = units.prod(axis=0)
    return product


def groups(schema: Schema, keys: tuple[str, ...]) -> Transform:
    """Accumulators of equal keys summed: the groups of positive weight; without keys always one."""
    _require_exact(schema, keys)
    wanted = arrow_schema(schema)

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        summed = sum_by_key(rows, keys, wanted)
        if keys:
            summed = filter_rows(summed, weights(summed).to_numpy() > 0)
        return with_weights(summed, unit_weights(summed.num_rows))

    return transform


def _require_exact(schema: Schema, keys: tuple[str, ...]) -> None:
    """Unsupported unless all but the keys are exact numbers."""
    for name in names(schema):
        type_ = type_in(schema, name)
        if name not in keys and not decimal_parts(type_) and type_ != "bigint":
            raise Unsupported(type_)


def _is_not_zero(values: pa.Array) -> Ints:
    zero = pa.scalar(0, pa.int64()).cast(values.type)
    mask: Ints = pc.not_equal(values, zero).to_numpy(zero_copy_only=False)
    return mask
