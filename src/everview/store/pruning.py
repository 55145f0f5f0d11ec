"""File pruning: which files may hold a key, decided from the bounds in the manifest.

A file is left out only when no wanted key can be in it: too much is slow, too little is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.store.bounds import decode, ordered, tag_of
from everview.store.manifest import DataFile, Relation


def files_for(
    relation: Relation, key: str | None, keys: pa.Array | pa.ChunkedArray | None
) -> tuple[DataFile, ...]:
    """The files of `relation` that may hold rows whose column `key` is among `keys`.

    Only segments sorted by `key` first have bounds for it; the others keep all their files.
    """
    probe = None if keys is None or key is None else _Probe(keys)
    return tuple(
        file
        for segment in relation.segments
        for file in segment.files
        if probe is None or segment.sort_by[:1] != (key,) or probe.may_be_in(file)
    )


def may_hold_null(relation: Relation, key: str, files: Iterable[DataFile]) -> bool:
    """Whether the column `key` may be null in some of the files, as far as the manifest tells."""
    sorted_by_key = all(segment.sort_by[:1] == (key,) for segment in relation.segments)
    return not sorted_by_key or any(file.has_null for file in files)


class _Probe:
    """The wanted keys, sorted once, so that a file costs one binary search."""

    def __init__(self, keys: pa.Array | pa.ChunkedArray) -> None:
        self.has_null = keys.null_count > 0
        self.any_value = len(keys) > keys.null_count
        self.tag = tag_of(keys.type)
        self.values = _sorted(keys) if self.tag else None

    def may_be_in(self, file: DataFile) -> bool:
        if file.rows == 0:
            return False
        return (self.has_null and file.has_null) or (self.any_value and self._in_range(file))

    def _in_range(self, file: DataFile) -> bool:
        """Whether some value lies between the bounds; it is the first one not below `low`."""
        tags = {bound[0] for bound in (file.low, file.high) if bound}
        if self.values is None or not tags <= {self.tag}:
            return True
        first = 0 if file.low is None else bisect_left(self.values, decode(file.low))
        if first == len(self.values):
            return False
        return file.high is None or self.values[first] <= decode(file.high)


def _sorted(keys: pa.Array | pa.ChunkedArray) -> list[Any] | None:
    """The keys in order, None when one is no UTF-8 and so cannot be compared here."""
    values = pc.unique(keys.drop_null())
    try:
        return ordered(values.take(pc.sort_indices(values)))
    except ValueError:
        return None
