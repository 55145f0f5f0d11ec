"""Minimizes a change: what it deletes is there, and what it inserts is not.

With m equal rows in the table, of which d are to be deleted and i inserted, there are
max(m ∸ d, i) afterwards. For sets this is (R − ∇R) ∪ ΔR (minimal-changes, Prop. 2): inserts win,
and to delete what is absent or insert what is present changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from everview.database.catalog.definitions import TableDefinition
from everview.expr.types import WEIGHT, Column, names, searchable
from everview.runtime.protocol import Engine, Part, Snapshot, Stored, TooLarge, in_memory

_COUNTS = (Column("__deleted", "bigint"), Column("__inserted", "bigint"))


def minimized(
    engine: Engine,
    table: TableDefinition,
    change: Part,
    snapshot: Snapshot,
    pending: Sequence[Part],
) -> Part:
    """The part of a change that has an effect, after pending ones; of a set table, a set."""
    given, before = in_memory([change]), in_memory(pending)
    if given is not None and before is not None:
        with suppress(TooLarge):
            return _minimized_here(engine, table, given[0], snapshot, before)
    return engine.frames.minimized(table.name, change, snapshot, pending, once=table.is_set)


def _minimized_here(
    engine: Engine,
    table: TableDefinition,
    given: pa.Table,
    snapshot: Snapshot,
    before: Sequence[pa.Table],
) -> pa.Table:
    """The same for changes in memory, over the rows that are looked up for them."""
    columns = names(table.columns)
    by = searchable(table.columns, columns)[:1] or columns
    stored = engine.lookup(table.name, by, given, snapshot)
    zero = pa.scalar(0, pa.int64())
    weights = given.column(WEIGHT)
    counts = [pc.max_element_wise(pc.negate(weights), zero), pc.max_element_wise(weights, zero)]
    present = [
        _counted(each, [pc.multiply(each.column(WEIGHT), zero)] * 2) for each in (stored, *before)
    ]
    changed = _counted(given, counts).set_column(
        len(table.columns) + 2, WEIGHT, pc.multiply(weights, zero)
    )
    schema, sort = (*table.columns, *_COUNTS), (table.columns[0].name,)
    accumulators = Stored(schema, sort, tuple(c.name for c in _COUNTS))
    total = engine.local.consolidate(pa.concat_tables([*present, changed]), accumulators)
    return _effect(total, columns, once=table.is_set)


def _counted(rows: pa.Table, counts: Sequence[pa.ChunkedArray]) -> pa.Table:
    """Rows with how many of each are deleted and inserted, before the weight."""
    plain = rows.drop_columns([WEIGHT])
    for column, count in zip(_COUNTS, counts, strict=True):
        plain = plain.append_column(column.name, count)
    return plain.append_column(WEIGHT, rows.column(WEIGHT))


def _effect(total: pa.Table, columns: Sequence[str], *, once: bool) -> pa.Table:
    """What the counts of rows make of their weights: max(m ∸ d, i) − m."""
    there = total.column(WEIGHT)
    deleted, inserted = (total.column(column.name) for column in _COUNTS)
    wanted = pc.min_element_wise(inserted, 1) if once else inserted
    after = pc.max_element_wise(pc.subtract(there, deleted), 0, wanted)
    given = pc.or_(pc.greater(deleted, 0), pc.greater(inserted, 0))
    effect = pc.cast(pc.subtract(after, there), pa.int64())
    rows = total.select(columns).append_column(WEIGHT, effect)
    return rows.filter(pc.and_(given, pc.not_equal(effect, 0)))
