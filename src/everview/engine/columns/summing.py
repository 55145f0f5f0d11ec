"""Sums over record batches: consolidation, totals, groups, thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everview.engine.arrow import arrow_schema
from everview.engine.columns import decimals
from everview.engine.columns.batches import Change, chosen, ones, reweighted, weights
from everview.engine.columns.grouping import Grouping, grouping
from everview.engine.columns.numbers import SAFE, Places, as_type, bound, whole
from everview.engine.columns.unknown import Unknown
from everview.plan.nodes import Measure, Totals
from everview.plan.traverse import schema_of
from everview.plan.types import INTEGERS, Schema, decimal_parts, names, type_in


def sums(rows: pa.RecordBatch, keys: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a schema with equal keys made one: what is no key is added up.

    No value sums to zero, and a sum that does not fit raises.
    """
    groups = grouping(rows, keys)
    if groups.order is None and len(keys) + 1 == len(schema):
        return rows
    found = groups.keys(rows, keys)
    columns = [
        found[field.name] if field.name in found else groups.total(rows.column(at), field.type)
        for at, field in enumerate(schema)
    ]
    return pa.record_batch(columns, schema=schema)


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
        if exact and exact not in INTEGERS and not decimal_parts(exact):
            raise Unknown(exact)
    made = arrow_schema(schema_of(plan))
    types = [made.field(measure.name).type for measure in measures]

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        groups = grouping(rows, keys)
        weighted = _Weighted(rows, groups)
        columns = [*groups.keys(rows, keys).values()]
        columns += [weighted.total(*each) for each in zip(measures, types, strict=True)]
        columns.append(groups.total(weights(rows), pa.int64()))
        return pa.record_batch(columns, schema=made)

    return change


class _Weighted:
    """Rows that count as often as their weights say, in groups."""

    def __init__(self, rows: pa.RecordBatch, groups: Grouping) -> None:
        self._rows, self._groups = rows, groups
        self._weights: Places = weights(rows).to_numpy()
        self._factors = decimals.Weights(weights(rows))
        self._most = SAFE // (max(1, bound(self._weights)) * rows.num_rows)

    def total(self, measure: Measure, type_: pa.DataType) -> pa.Array:
        """The sum of a measure for each group."""
        if measure.column is None:
            return self._groups.total(weights(self._rows), type_)
        values = self._rows.column(measure.column)
        if measure.function == "count":
            counted = pc.if_else(pc.is_valid(values), weights(self._rows), 0)
            return self._groups.total(counted, type_)
        units = whole(values)
        if units is None or bound(units) > self._most:
            return self._groups.total(self._factors.times(values), type_)
        summed = self._groups.added(units * self._weights)
        return as_type(summed, getattr(values.type, "scale", 0), type_)


def groups(schema: Schema, keys: tuple[str, ...]) -> Change:
    """The groups with rows; without keys one, whatever there is."""
    rings = tuple(name for name in names(schema) if name not in keys)
    for ring in rings:
        if not decimal_parts(type_in(schema, ring)) and type_in(schema, ring) != "bigint":
            raise Unknown(type_in(schema, ring))
    wanted = arrow_schema(schema)

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = sums(rows, keys, wanted)
        if keys:
            made = chosen(made, weights(made).to_numpy() > 0)
        return reweighted(made, ones(made.num_rows))

    return change


def _is_not_zero(values: pa.Array) -> Places:
    zero = pa.scalar(0, pa.int64()).cast(values.type)
    found: Places = pc.not_equal(values, zero).to_numpy(zero_copy_only=False)
    return found
