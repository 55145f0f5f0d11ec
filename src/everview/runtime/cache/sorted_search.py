"""Numbers that ascend, among which others are found with few looks at memory that is far away."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from everview.runtime.vector.int_encoding import NOWHERE, Places

LINE = 128
"""So many numbers, a power of two, lie together: who has looked at one has all of them near."""
SHORT = 65_536
"""So few numbers are near: halving them again and again finds a place fastest."""
FEW = 8
"""So few keys wait for memory less than steps for all of them cost."""


class Ordered:
    """Numbers that ascend, in lines of which the last numbers are known.

    A search that halves many numbers waits for memory at each step, and each step for the one
    before it. Here each step is made for all keys, whose memory is asked for at once.

    >>> found = Ordered(np.repeat(np.arange(50_000), 2))
    >>> [each.tolist() for each in found.spans(np.array([-1, 7, 49_999, 50_000]))]
    [[14, 99998], [2, 2]]
    """

    def __init__(self, values: Places) -> None:
        self.values = values

    def spans(self, keys: Places) -> tuple[Places, Places]:
        """Of the keys that are among the numbers, where the first is, and how many there are.

        Keys ascend.
        """
        count = len(self.values)
        if count > SHORT and len(keys) >= FEW and keys[-1] < np.iinfo(keys.dtype).max:
            return self._in_lines(keys)
        first = self.values.searchsorted(keys)
        there = self.values.take(first, mode="clip") == keys if count else NOWHERE
        if not there.any():
            return NOWHERE, NOWHERE
        first, keys = first[there], keys[there]
        return first, self.values.searchsorted(keys, "right") - first

    def _in_lines(self, keys: Places) -> tuple[Places, Places]:
        """A key ends where the next whole number is, or would be."""
        wanted = keys.repeat(2)
        wanted[1::2] += 1
        ends = self._halved(wanted)
        first, sizes = ends[::2], ends[1::2] - ends[::2]
        there = sizes > 0
        return first[there], sizes[there]

    def _halved(self, keys: Places) -> Places:
        """Where each key is, or would be: its line is found, and all lines are halved at once."""
        at = self._lasts.searchsorted(keys)
        beyond = int(at.searchsorted(len(self._lasts)))
        places: Places = at * LINE
        within, wanted = places[:beyond], keys[:beyond]
        step = LINE
        while step := step // 2:
            within += step * (self.values.take(within + (step - 1)) < wanted)
        if beyond < len(keys):
            places[beyond:] = self.values.searchsorted(keys[beyond:])
        return places

    @cached_property
    def _lasts(self) -> Places:
        """The last number of each whole line."""
        return np.ascontiguousarray(self.values[LINE - 1 :: LINE])
