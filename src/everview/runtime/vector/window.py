"""Functions of whole groups over record batches: the simple aggregates, and numbers in order."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import names
from everview.plan.nodes import Aggregate, Over, Partition, Window
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema, arrow_type
from everview.runtime.vector.aggregate import consolidate
from everview.runtime.vector.batches import Change, copies, nothing, ones, weights
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.group_join import grouping, numbers_in_order
from everview.runtime.vector.int_encoding import int_column, rank_codes, require_canonical


def partition(plan: Partition) -> Change:
    """The least and the greatest values of groups; other aggregates are the database's."""
    for aggregate in plan.aggregates:
        if aggregate.function not in ("min", "max"):
            raise Unsupported(aggregate.function)
    read, made = schema_of(plan.child), arrow_schema(schema_of(plan))

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = consolidate(rows, read, ())
        if plan.keys and not rows.num_rows:
            return nothing(made)
        for name in (*plan.keys, *(str(each.column) for each in plan.aggregates)):
            require_canonical(rows.column(name))
        if rows.num_rows and not any(
            rows.column(str(a.column)).null_count for a in plan.aggregates
        ):
            return pa.record_batch(_extremes(rows, plan), schema=made)
        table = pa.Table.from_batches([rows])
        asked = list({(str(each.column), each.function): 0 for each in plan.aggregates})
        found = table.group_by(list(plan.keys), use_threads=False).aggregate(asked)
        columns = [found.column(key) for key in plan.keys]
        columns += [found.column(_found(each)) for each in plan.aggregates]
        arrays = [column.combine_chunks() for column in columns]
        return pa.record_batch([*arrays, ones(found.num_rows)], schema=made)

    return change


def _extremes(rows: pa.RecordBatch, plan: Partition) -> list[pa.Array]:
    """The columns of a partition of rows without a null among the values."""
    groups = grouping(rows, plan.keys)
    columns = [*groups.keys(rows, plan.keys).values()]
    for each in plan.aggregates:
        values = rows.column(str(each.column))
        ranks = rank_codes(values)
        places = groups.extreme(ranks if each.function == "max" else ~ranks)
        columns.append(values.take(int_column(places)))
    return [*columns, ones(len(groups.begins))]


def _found(aggregate: Aggregate) -> str:
    return f"{aggregate.column}_{aggregate.function}"


def window(plan: Window) -> Change:
    """ROW_NUMBER; other functions are the database's."""
    for over in plan.columns:
        if over.function != "row_number" or over.frame or not over.order:
            raise Unsupported(over.function)
    read, made = schema_of(plan.child), arrow_schema(schema_of(plan))

    def change(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = copies(consolidate(rows, read, ()))
        numbers = [_numbered(over, rows, plan.keys) for over in plan.columns]
        columns = rows.columns[: len(names(read))]
        return pa.record_batch([*columns, *numbers, weights(rows)], schema=made)

    return change


def _numbered(over: Over, rows: pa.RecordBatch, keys: tuple[str, ...]) -> pa.Array:
    order = [(each.column, each.descending) for each in over.order]
    numbers = pa.array(numbers_in_order(rows, keys, order))
    return pc.cast(numbers, arrow_type(over.type))
