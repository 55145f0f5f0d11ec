"""The order in which rows lie in a segment: by their keys, nulls first."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types


def in_order(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows ascending, nulls first; columns that Arrow cannot order do not take part."""
    by = orderable(table.schema, keys)
    if not by or ascends(table, by, ties=True):
        return table
    parts = [part for key in by for part in _parts(table[key])]
    ordered = pa.table(parts, names=[str(at) for at in range(len(parts))])
    return table.take(
        pc.sort_indices(ordered, sort_keys=[(name, "ascending") for name in ordered.column_names])
    )


def orderable(schema: pa.Schema, keys: Sequence[str]) -> list[str]:
    """Those keys that Arrow can order."""
    return [key for key in keys if _sortable(schema.field(key).type)]


def ascends(table: pa.Table, keys: Sequence[str], *, ties: bool = False) -> bool:
    """Whether the keys of each row are above those of the row before it, and none is null.

    Then no two rows have the same keys; with `ties` they may be the same. Doubt, as about a NaN,
    is answered with no.
    """
    above: pa.ChunkedArray | None = None
    for key in reversed(keys):
        before, after = table[key][:-1], table[key][1:]
        less = pc.less_equal(before, after) if ties and above is None else pc.less(before, after)
        tied = None if above is None else pc.and_(pc.equal(before, after), above)
        above = less if tied is None else pc.or_(less, tied)
    whole = all(table[key].null_count == 0 for key in keys)
    return whole and above is not None and pc.all(above).as_py() is not False


def _parts(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """What a column is sorted by: false comes before true, so its validity puts nulls first."""
    return [pc.is_valid(column), column] if column.null_count else [column]


def _sortable(type_: pa.DataType) -> bool:
    flat = types.is_primitive(type_) and not types.is_interval(type_)
    texts = types.is_string(type_) or types.is_large_string(type_) or types.is_binary(type_)
    return bool(flat or texts or types.is_decimal(type_))
