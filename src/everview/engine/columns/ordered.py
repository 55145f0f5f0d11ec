"""Numbers that ascend, among which others are found with few looks at memory that is far away."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from everview.engine.columns.numbers import NOWHERE, Places

LINE = 128
"""So many numbers, a power of two, lie together, and are looked at together."""
SHORT = 65_536
"""So few numbers are near: halving them again and again finds a place fastest."""
FEW, DENSE = 8, 100
"""So few keys wait for memory less than all lines cost; where there is a key for each so many
numbers, one finds the numbers of the next near."""
MANY, STEPS = 1_000, 8
"""Of so many keys the next numbers are looked at, so often, before each is searched for again."""


class Ordered:
    """Numbers that ascend, in lines of which the last numbers are known.

    A search that halves many numbers waits for memory at each step, and each step for the one
    before it. Here the lines of all keys are asked for at once.

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
        if count > SHORT and len(keys) >= FEW and len(keys) * DENSE <= count:
            first, sizes = self._in_lines(keys)
            there = sizes > 0
            return first[there], sizes[there]
        first = self._halved(keys) if len(keys) >= MANY else self.values.searchsorted(keys)
        there = self.values.take(first, mode="clip") == keys if count else NOWHERE
        if not there.any():
            return NOWHERE, NOWHERE
        first, keys = first[there], keys[there]
        if len(keys) < MANY:
            return first, self.values.searchsorted(keys, "right") - first
        sizes, more = self._stepped(first, keys)
        if len(more):
            sizes[more] = self.values.searchsorted(keys[more], "right") - first[more]
        return first, sizes

    def _in_lines(self, keys: Places) -> tuple[Places, Places]:
        """Where each key is, or would be, and how many there are of it."""
        at = self._lasts.searchsorted(keys)
        lines, wanted = self._lines.take(at, axis=0, mode="clip"), keys[:, None]
        first: Places = np.count_nonzero(lines < wanted, axis=1) + at * LINE
        sizes: Places = np.count_nonzero(lines == wanted, axis=1)
        # Beyond the last whole line, and where a line ends with the key, there may be more.
        unknown = (at == len(self._lines)) | (first + sizes == (at + 1) * LINE)
        if unknown.any():
            first[unknown] = self.values.searchsorted(keys[unknown])
            after = self.values.searchsorted(keys[unknown], "right")
            sizes[unknown] = after - first[unknown]
        return first, sizes

    def _halved(self, keys: Places) -> Places:
        """Where each of many keys is, or would be: its line, and all lines halved at once."""
        at = self._lasts.searchsorted(keys)
        beyond = at.searchsorted(len(self._lines))
        first: Places = at * LINE
        within, wanted = first[:beyond], keys[:beyond]
        step = LINE
        while step := step // 2:
            within += step * (self.values.take(within + (step - 1)) < wanted)
        first[beyond:] = self.values.searchsorted(keys[beyond:])
        return first

    def _stepped(self, first: Places, keys: Places) -> tuple[Places, Places]:
        """How many there are of each key, and the places of those of which there may be more."""
        sizes, more = np.ones(len(first), np.int64), np.arange(len(first))
        for _ in range(STEPS):
            at = first[more] + sizes[more]
            same = (self.values.take(at, mode="clip") == keys[more]) & (at < len(self.values))
            more = more[same]
            if not len(more):
                break
            sizes[more] += 1
        return sizes, more

    @cached_property
    def _lines(self) -> Places:
        """All numbers but those after the last whole line."""
        count = len(self.values) // LINE
        return self.values[: count * LINE].reshape(count, LINE)

    @cached_property
    def _lasts(self) -> Places:
        return np.ascontiguousarray(self._lines[:, -1])
