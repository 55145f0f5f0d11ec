"""Functions of groups that are no sums: MIN, MAX and ROW_NUMBER on record batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import names
from everview.plan.nodes import Aggregate, Over, Partition, Window
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema, arrow_type
from everview.runtime.vector.aggregate import consolidate
from everview.runtime.vector.batches import (
    Transform,
    empty_batch,
    repeat_by_weight,
    unit_weights,
    weights,
)
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.grouping import group_rows
from everview.runtime.vector.int_encoding import (
    Ints,
    int_column,
    key_codes,
    rank_codes,
    require_canonical,
)


def partition(plan: Partition) -> Transform:
    """The least and the greatest values of groups; other aggregates are Unsupported."""
    for aggregate in plan.aggregates:
        if aggregate.function not in ("min", "max"):
            raise Unsupported(aggregate.function)
    read, result = schema_of(plan.child), arrow_schema(schema_of(plan))

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = consolidate(rows, read, ())
        if plan.keys and not rows.num_rows:
            return empty_batch(result)
        for name in (*plan.keys, *(str(each.column) for each in plan.aggregates)):
            require_canonical(rows.column(name))
        if rows.num_rows and not any(
            rows.column(str(a.column)).null_count for a in plan.aggregates
        ):
            return pa.record_batch(_extremes(rows, plan), schema=result)
        table = pa.Table.from_batches([rows])
        calls = list({(str(each.column), each.function): 0 for each in plan.aggregates})
        grouped = table.group_by(list(plan.keys), use_threads=False).aggregate(calls)
        columns = [grouped.column(key) for key in plan.keys]
        columns += [grouped.column(_arrow_name(each)) for each in plan.aggregates]
        arrays = [column.combine_chunks() for column in columns]
        return pa.record_batch([*arrays, unit_weights(grouped.num_rows)], schema=result)

    return transform


def _extremes(rows: pa.RecordBatch, plan: Partition) -> list[pa.Array]:
    """The columns of a partition whose aggregated values have no null."""
    groups = group_rows(rows, plan.keys)
    columns = [*groups.key_columns(rows, plan.keys).values()]
    for each in plan.aggregates:
        values = rows.column(str(each.column))
        ranks = rank_codes(values)
        positions = groups.argmax(ranks if each.function == "max" else ~ranks)
        columns.append(values.take(int_column(positions)))
    return [*columns, unit_weights(len(groups.begins))]


def _arrow_name(aggregate: Aggregate) -> str:
    return f"{aggregate.column}_{aggregate.function}"


def window(plan: Window) -> Transform:
    """ROW_NUMBER; other functions are Unsupported."""
    for over in plan.columns:
        if over.function != "row_number" or over.frame or not over.order:
            raise Unsupported(over.function)
    read, result = schema_of(plan.child), arrow_schema(schema_of(plan))

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = repeat_by_weight(consolidate(rows, read, ()))
        numbers = [_row_number_column(over, rows, plan.keys) for over in plan.columns]
        columns = rows.columns[: len(names(read))]
        return pa.record_batch([*columns, *numbers, weights(rows)], schema=result)

    return transform


def _row_number_column(over: Over, rows: pa.RecordBatch, keys: tuple[str, ...]) -> pa.Array:
    order = [(each.column, each.descending) for each in over.order]
    return pc.cast(pa.array(row_numbers(rows, keys, order)), arrow_type(over.type))


def row_numbers(
    rows: pa.RecordBatch, keys: Sequence[str], order: Sequence[tuple[str, bool]]
) -> Ints:
    """ROW_NUMBER of each row within its keys, by columns that are ascending or descending.

    Columns are added to the sort only until they order all rows; the rest cannot matter then.
    """
    count = rows.num_rows
    group = key_codes([[rows.column(key)] for key in keys]) if keys else np.zeros(count, np.int64)
    parts = [group]
    for name, descending in order:
        codes = rank_codes(rows.column(name))
        parts.append(~codes if descending else codes)
        positions = np.lexsort(parts[::-1])
        if _all_differ([part[positions] for part in parts]):
            break
    group = group[positions]
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[:count])
    lengths = np.diff(first, append=count)
    result = np.empty(count, np.int64)
    result[positions] = np.arange(count) - np.repeat(first, lengths) + 1
    return result


def _all_differ(parts: Sequence[Ints]) -> bool:
    """Whether neighbours differ in one part at least."""
    return bool(np.logical_or.reduce([part[1:] != part[:-1] for part in parts]).all())
