"""The changed rows of a table in memory, found by hash indexes that grow with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import pyarrow as pa

SCANNED_SHARE = 4
"""From one key in so many rows on, all rows are given: a scan is cheaper than Python objects."""


class PendingRows:
    """Weighted rows in parts: to add some, and to find some, costs in proportion to those.

    Each row is put into an index once, when the first search by these columns comes after it.
    """

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        self.parts = list(parts)
        self._size = sum(part.num_rows for part in self.parts)
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def add(self, part: pa.Table) -> None:
        """Rows that are found from now on."""
        self.parts.append(part)
        self._size += part.num_rows

    def with_keys(self, columns: Sequence[str], keys: pa.Table) -> list[pa.Table]:
        """All rows that have one of the keys in some columns, and perhaps others."""
        if keys.num_rows * SCANNED_SHARE >= self._size:
            return self.parts
        index = self._indexes.setdefault(tuple(columns), _Index(tuple(columns)))
        index.extend(self.parts)
        return index.find(self.parts, keys)


class _Index:
    """By the values of some columns, in which parts rows with them are, and where."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._places: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        self._seen = 0

    def extend(self, parts: Sequence[pa.Table]) -> None:
        for number in range(self._seen, len(parts)):
            for place, values in enumerate(self._values(parts[number])):
                self._places.setdefault(values, []).append((number, place))
        self._seen = len(parts)

    def find(self, parts: Sequence[pa.Table], keys: pa.Table) -> list[pa.Table]:
        found: dict[int, list[int]] = defaultdict(list)
        for values in set(self._values(keys)):
            for number, place in self._places.get(values, ()):
                found[number].append(place)
        return [parts[number].take(places) for number, places in found.items()]

    def _values(self, rows: pa.Table) -> Iterable[tuple[object, ...]]:
        return zip(*(rows.column(name).to_pylist() for name in self._columns), strict=True)
