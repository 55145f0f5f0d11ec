"""Numbers that ascend, among which others are found with few looks at memory that is far away."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from everview.engine.columns.numbers import NOWHERE, Places

LINE = 32
"""So many numbers lie together, and are looked at together."""
SHORT = 32_768
"""So few numbers are near: halving them again and again finds a place fastest."""
FEW, DENSE = 64, 100
"""So few keys wait for memory less than all lines cost; where there is a key for each so many
numbers, one finds the lines of the next near."""
MANY, STEPS = 1_000, 8
"""Of so many keys the next numbers are looked at, so often, before each is searched for again."""

Side = Literal["left", "right"]


class Ordered:
    """Numbers that ascend; the last ones of all lines are `Ordered` again, and few of them left.

    A search that halves many numbers waits for memory at each step, and each step for the one
    before it. Here the lines of all keys are asked for at once.

    >>> found = Ordered(np.repeat(np.arange(50_000), 2))
    >>> [each.tolist() for each in found.spans(np.array([-1, 7, 49_999, 50_000]))]
    [[14, 99998], [2, 2]]
    """

    def __init__(self, values: Places) -> None:
        self.values = values

    def spans(self, keys: Places) -> tuple[Places, Places]:
        """Of the keys that are among the numbers, where the first is, and how many there are."""
        apart = len(keys) >= FEW and len(keys) * DENSE <= len(self.values)
        before = self._before if apart else self.values.searchsorted
        first = before(keys, "left")
        there = self.values.take(first, mode="clip") == keys if len(self.values) else NOWHERE
        if not there.any():
            return NOWHERE, NOWHERE
        first, keys = first[there], keys[there]
        if len(keys) < MANY:
            return first, before(keys, "right") - first
        sizes, more = self._stepped(first, keys)
        if len(more):
            sizes[more] = before(keys[more], "right") - first[more]
        return first, sizes

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

    def _before(self, keys: Places, side: Side) -> Places:
        """How many numbers are less than each key, or on its right side not greater."""
        if len(self.values) <= SHORT:
            return self.values.searchsorted(keys, side)
        at = self._lasts._before(keys, side)
        lines, wanted = self._lines.take(at, axis=0, mode="clip"), keys[:, None]
        comes = lines < wanted if side == "left" else lines <= wanted
        found: Places = np.count_nonzero(comes, axis=1) + at * LINE
        beyond = at == len(self._lines)
        if beyond.any():
            count = len(self._lines) * LINE
            found[beyond] = count + self.values[count:].searchsorted(keys[beyond], side)
        return found

    @cached_property
    def _lines(self) -> Places:
        """All numbers but those after the last whole line."""
        count = len(self.values) // LINE
        return self.values[: count * LINE].reshape(count, LINE)

    @cached_property
    def _lasts(self) -> Ordered:
        return Ordered(np.ascontiguousarray(self._lines[:, -1]))
