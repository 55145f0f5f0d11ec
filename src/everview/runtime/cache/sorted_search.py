"""A sorted integer array with a batched, cache-friendly binary search."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from everview.runtime.vector.int_encoding import NO_INTS, Ints

BLOCK = 128
"""Values per block, a power of two: after the first access to a block the rest is in the cache."""
PLAIN_MAX_VALUES = 65_536
"""An array of up to so many values is in the cache: a plain binary search is fastest."""
BATCH_MIN_KEYS = 8
"""For fewer keys the overhead of a batch is more than the cache misses that it hides."""


class SortedInts:
    """Ascending integers, searched for many keys at once.

    A plain binary search in a large array has a cache miss at each step, and each step waits for
    the one before it. Here the block of a key is found by the last value of each block, which stay
    in the cache; then one step is made for all keys at a time, so that their cache misses overlap.

    >>> values = SortedInts(np.repeat(np.arange(50_000), 2))
    >>> [each.tolist() for each in values.find(np.array([-1, 7, 49_999, 50_000]))]
    [[14, 99998], [2, 2]]
    """

    def __init__(self, values: Ints) -> None:
        self.values = values

    def find(self, keys: Ints) -> tuple[Ints, Ints]:
        """The first position and the number of occurrences of each key that occurs.

        Keys must ascend strictly.
        """
        count = len(self.values)
        batched = count > PLAIN_MAX_VALUES and len(keys) >= BATCH_MIN_KEYS
        if batched and keys[-1] < np.iinfo(keys.dtype).max:
            return self._find_batched(keys)
        first = self.values.searchsorted(keys)
        occurs = self.values.take(first, mode="clip") == keys if count else NO_INTS
        if not occurs.any():
            return NO_INTS, NO_INTS
        first, keys = first[occurs], keys[occurs]
        return first, self.values.searchsorted(keys, "right") - first

    def _find_batched(self, keys: Ints) -> tuple[Ints, Ints]:
        """A key's range ends where that of the next integer would begin: key + 1 must not wrap."""
        bounds = keys.repeat(2)
        bounds[1::2] += 1
        ends = self._search_batched(bounds)
        first, sizes = ends[::2], ends[1::2] - ends[::2]
        occurs = sizes > 0
        return first[occurs], sizes[occurs]

    def _search_batched(self, keys: Ints) -> Ints:
        """The first position of each key, or where it would be: `searchsorted` of all keys."""
        at = self._block_ends.searchsorted(keys)
        beyond = int(at.searchsorted(len(self._block_ends)))
        positions: Ints = at * BLOCK
        within, wanted = positions[:beyond], keys[:beyond]
        step = BLOCK
        while step := step // 2:
            within += step * (self.values.take(within + (step - 1)) < wanted)
        if beyond < len(keys):
            positions[beyond:] = self.values.searchsorted(keys[beyond:])
        return positions

    @cached_property
    def _block_ends(self) -> Ints:
        """The last value of each full block."""
        return np.ascontiguousarray(self.values[BLOCK - 1 :: BLOCK])
