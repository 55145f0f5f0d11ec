"""Shreds nested rows: the rows of the flat relation and of each dictionary (nested-collections §5).

Labels are given by occurrence, never by value: two equal collections are changed each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.errors import UserError
from everview.expr.types import WEIGHT, names
from everview.runtime.arrow_types import arrow_schema

FreshLabels = Callable[[int], pa.Array]
"""So many labels that no collection has, or has had."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(slots=True)
class Shredding:
    """Weighted rows to be inserted, by relation."""

    fresh: FreshLabels
    rows: dict[str, pa.Table] = field(default_factory=dict)

    def table(self, given: pa.Table, table: TableDefinition) -> None:
        """Rows of a table, with the columns that it is declared with and their weight."""
        self.rows[table.name] = given.select([*names(table.columns), WEIGHT])
        for each in table.dictionaries:
            labels = [_single(given[name]) for name in each.above]
            self.collections(each, _single(given[each.column]), labels)

    def collections(self, into: Dictionary, lists: pa.Array, labels: Sequence[pa.Array]) -> None:
        """The elements of lists, each list under its label."""
        if lists.null_count:
            raise UserError(
                "T012",
                f"a collection {into.path} of {into.table} is NULL",
                remedy="give [] for a collection without elements",
            )
        owners = pc.list_parent_indices(lists)
        self.elements(into, pc.list_flatten(lists), [each.take(owners) for each in labels])

    def elements(self, into: Dictionary, elements: pa.Array, labels: Sequence[pa.Array]) -> None:
        """Elements, each with the label of its collection."""
        fields = _fields(into, elements)
        fresh = {each.column: self.fresh(len(elements)) for each in into.inner}
        columns = [*labels, *(fresh.get(name, fields[name]) for name in names(into.fields))]
        columns += [digests([*labels, *(fields[name] for name in names(into.plain))])]
        columns += [pa.repeat(pa.scalar(1, pa.int64()), len(elements))]
        rows = pa.table(columns, arrow_schema(into.columns))
        before = self.rows.get(into.relation)
        self.rows[into.relation] = rows if before is None else pa.concat_tables([before, rows])
        for each in into.inner:
            self.collections(each, fields[each.column], [fresh[each.column]])


def _fields(into: Dictionary, elements: pa.Array) -> dict[str, pa.Array]:
    """The parts of elements, by name."""
    if not into.is_record:
        return {into.fields[0].name: elements}
    if elements.null_count:
        raise UserError(
            "T012",
            f"an element of {into.relation} is NULL",
            remedy=f"give its parts: {', '.join(names(into.fields))}",
        )
    return dict(zip(names(into.fields), elements.flatten(), strict=True))


def digests(columns: Sequence[pa.Array]) -> pa.Array:
    """A number for each row: equal rows have equal numbers, and others hardly ever."""
    found: NDArray[np.uint64] = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found + _hashed(column)) * _MIX
        found ^= found >> _SHIFT
    return pa.array(found.view(np.int64))


def _hashed(column: pa.Array) -> NDArray[np.uint64]:
    """The hash of each value, computed once for equal ones."""
    if pa.types.is_nested(column.type):
        return np.array([_hash(each) for each in column.to_pylist()], np.uint64)
    encoded = column.dictionary_encode(null_encoding="encode")
    hashes = np.array([_hash(each) for each in encoded.dictionary.to_pylist()], np.uint64)
    return hashes[encoded.indices.to_numpy()] if len(column) else hashes


def _hash(value: Any) -> int:
    digest = blake2b(value_text(value).encode("utf-8", "surrogateescape"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def value_text(value: Any) -> str:
    """A text that equal values share, and no others; -0.0 equals 0.0.

    >>> value_text(-0.0) == value_text(0.0), value_text("1") == value_text(1)
    (True, False)
    """
    match value:
        case float():
            return repr(value + 0.0)
        case list():
            return f"[{','.join(map(value_text, value))}]"
        case tuple():
            return f"({','.join(map(value_text, value))})"
        case dict():
            return f"{{{','.join(f'{k!r}:{value_text(v)}' for k, v in value.items())}}}"
        case _:
            return repr(value)


def _single(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
