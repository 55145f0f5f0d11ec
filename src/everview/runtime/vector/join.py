"""Finds the rows of two relations with equal keys, by a sort-merge join on int64 codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.int_encoding import Ints, expand_ranges, key_codes

MAX_PAIRS = 1_000_000
"""A join of more pairs is left to the database."""
SORT_PROBES_MIN_KEYS = 1_000
"""From so many probes on, a binary search is faster if they are sorted first."""


def matching_pairs(
    left: Sequence[pa.Array], right: Sequence[pa.Array], *, nulls: bool
) -> tuple[Ints, Ints]:
    """The positions of the pairs of rows with equal keys; with `nulls`, null equals null."""
    if not nulls and any(key.null_count for key in (*left, *right)):
        return _matching_without_nulls(left, right)
    ours, theirs = _codes_of_sides(left, right)
    order = theirs.argsort()
    ordered = theirs[order]
    first = _search(ordered, ours, "left")
    sizes = _search(ordered, ours, "right") - first
    if int(sizes.sum()) > MAX_PAIRS:
        raise Unsupported("too many pairs")
    return np.arange(len(ours)).repeat(sizes), order[expand_ranges(first, sizes)]


def _matching_without_nulls(
    left: Sequence[pa.Array], right: Sequence[pa.Array]
) -> tuple[Ints, Ints]:
    """The pairs where null equals nothing: of the rows without a null among their keys."""
    present = [_without_nulls(side) for side in (left, right)]
    kept = [
        [key.take(pa.array(positions)) for key in side]
        for side, positions in zip((left, right), present, strict=True)
    ]
    at, to = matching_pairs(kept[0], kept[1], nulls=False)
    return present[0][at], present[1][to]


def _without_nulls(keys: Sequence[pa.Array]) -> Ints:
    valid = [key.is_valid().to_numpy(zero_copy_only=False) for key in keys]
    return np.flatnonzero(np.logical_and.reduce(valid))


def all_pairs(left: int, right: int) -> tuple[Ints, Ints]:
    """The positions of the product of two relations with so many rows."""
    if left * right > MAX_PAIRS:
        raise Unsupported("too many pairs")
    return np.repeat(np.arange(left), right), np.tile(np.arange(right), left)


def semi_join_mask(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Ints:
    """Which rows on the left have keys that occur on the right; null equals null.

    The right side must have rows.
    """
    ours, theirs = _codes_of_sides(left, right)
    ordered = np.sort(theirs)
    mask: Ints = ordered[_search(ordered, ours, "left") % len(ordered)] == ours
    return mask


def _search(ordered: Ints, probes: Ints, side: Literal["left", "right"]) -> Ints:
    if len(probes) < SORT_PROBES_MIN_KEYS:
        return ordered.searchsorted(probes, side)
    order = probes.argsort()
    positions = np.empty(len(probes), np.int64)
    positions[order] = ordered.searchsorted(probes[order], side)
    return positions


def _codes_of_sides(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[Ints, Ints]:
    """A code per row of two relations, equal where all keys are equal."""
    codes, count = key_codes(list(zip(left, right, strict=True))), len(left[0])
    return codes[:count], codes[count:]
