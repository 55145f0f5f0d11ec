"""Sort keys that give nested values Spark's order on DuckDB, where NULL is the least of all."""

from __future__ import annotations

from everview.expr.types import Type, element_of, entries_of, entry_of, fields_of, is_nested
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import struct_field


def sorted_list(sql: str, element: Type, *, descending: bool, nulls_first: bool) -> str:
    """A list in Spark's order of its elements."""
    order = f"'{'DESC' if descending else 'ASC'}', 'NULLS {'FIRST' if nulls_first else 'LAST'}'"
    if not is_nested(element):
        return f"list_sort({sql}, {order})"
    if "map<" in element:
        raise NotAtParity(f"the order of {element}")
    pairs = f"list_transform({sql}, lambda _e: {{'_k': {sort_key('_e', element)}, '_v': _e}})"
    keyed = f"list_sort(list_filter({pairs}, lambda _p: _p._v IS NOT NULL), {order})"
    found = f"list_transform({keyed}, lambda _p: _p._v)"
    nulls = f"list_filter({sql}, lambda _e: _e IS NULL)"
    parts = ", ".join((nulls, found) if nulls_first else (found, nulls))
    return f"CASE WHEN {sql} IS NOT NULL THEN list_concat({parts}) END"


def sort_key(sql: str, type_: Type) -> str:
    """A value that DuckDB orders as Spark orders the one given, both not null.

    DuckDB orders a NULL inside a nested value as the greatest. So each part becomes a pair that
    begins with "is not NULL", which is false for a NULL and thus the least.
    """
    if entry := entry_of(type_):
        return sort_key(f"map_entries({sql})", entries_of(*entry))
    if element := element_of(type_):
        return f"list_transform({sql}, lambda _i: {_null_first('_i', element)})"
    fields = (
        f"'{name}': {_null_first(struct_field(sql, name), inner)}"
        for name, inner in fields_of(type_)
    )
    return f"{{{', '.join(fields)}}}"


def _null_first(sql: str, type_: Type) -> str:
    inner = sort_key(sql, type_) if is_nested(type_) else sql
    return f"{{'_k': {sql} IS NOT NULL, '_v': {inner}}}"
