"""Rows of sorted files in the order of their key, in chunks of bounded size.

No two chunks have rows of one key, unless that key has more rows than may be held. Whatever the
files hold, each row comes out once: files that are not sorted only make worse chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class SortedFile:
    """Rows sorted by a key, nulls first, and how to read them in batches.

    No key is below `low`; None is no bound, as where there is a NULL.
    """

    rows: int
    low: pa.Scalar | None
    batches: Callable[[], Iterator[pa.Table]]


def merge_sorted(files: Sequence[SortedFile], key: str, max_rows: int) -> Iterator[pa.Table]:
    """The rows of files, chunk by chunk; a file is opened when its keys are reached.

    `files` come in the order of their bounds. Of one key at most `max_rows` are held, and of the
    others a batch per file that is open.
    """
    waiting, cursors = list(files), list[_Cursor]()
    while waiting or cursors:
        while waiting and (not cursors or waiting[0].low is None):
            cursors.append(_Cursor(waiting.pop(0), key))
        for cursor in cursors:
            cursor.fill_if_empty()
        ends = [cursor.last for cursor in cursors if cursor.has_more]
        ends += [file.low for file in waiting[:1]]
        cut = _least(ends)
        taken = [part for cursor in cursors for part in cursor.take(cut)]
        if not taken and cut is not None:
            # Rows with the key `cut` may follow in any file that has come to it.
            if sum(cursor.count_up_to(cut) for cursor in cursors) > max_rows:
                taken = [part for cursor in cursors for part in cursor.take(cut, inclusive=True)]
            else:
                for cursor in cursors:
                    cursor.fill_if_at(cut)
                while waiting and not _is_above(waiting[0].low, cut):
                    cursors.append(_Cursor(waiting.pop(0), key))
        cursors = [cursor for cursor in cursors if cursor.has_more or cursor.held]
        if taken:
            yield pa.concat_tables(taken)


class _Cursor:
    """What has been read of a file and not been taken yet."""

    def __init__(self, file: SortedFile, key: str) -> None:
        self._batches, self._key = file.batches(), key
        self._unread = file.rows
        self._parts: list[pa.Table] = []

    @property
    def has_more(self) -> bool:
        """Whether the file has rows that are not read yet."""
        return self._unread > 0

    @property
    def held(self) -> int:
        """How many rows are held."""
        return sum(part.num_rows for part in self._parts)

    @property
    def last(self) -> pa.Scalar:
        """The key of the last row held."""
        return self._parts[-1][self._key][-1]

    def count_up_to(self, cut: pa.Scalar) -> int:
        """How many of the rows held have a key or one below it."""
        return sum(_count_below(part[self._key], cut, inclusive=True) for part in self._parts)

    def fill_if_empty(self) -> None:
        """Read a batch if no rows are held."""
        if not self._parts:
            self._fill()

    def fill_if_at(self, cut: pa.Scalar) -> None:
        """Read a batch if the last row has a key that others wait for."""
        if self.has_more and not _is_above(self.last, cut):
            self._fill()

    def take(self, cut: pa.Scalar | None, *, inclusive: bool = False) -> list[pa.Table]:
        """Take the rows below a key, or with `inclusive` those with it too; None takes all."""
        if cut is None:
            taken, self._parts = self._parts, []
            return taken
        taken = []
        while self._parts:
            part = self._parts[0]
            count = _count_below(part[self._key], cut, inclusive=inclusive)
            if count:
                taken.append(part.slice(0, count))
            if count < part.num_rows:
                self._parts[0] = part.slice(count)
                break
            del self._parts[0]
        return taken

    def _fill(self) -> None:
        while self.has_more:
            batch = next(self._batches)
            self._unread -= batch.num_rows
            if batch.num_rows:
                self._parts.append(batch)
                return


def _count_below(column: pa.ChunkedArray, cut: pa.Scalar, *, inclusive: bool) -> int:
    """How many keys are below a key; NULL is below all others."""
    nulls = column.null_count
    if not cut.is_valid:
        return int(nulls) if inclusive else 0
    compare: Any = pc.less_equal if inclusive else pc.less
    found: int = pc.sum(compare(column, cut)).as_py() or 0
    return int(nulls) + found


def _least(ends: Sequence[pa.Scalar]) -> pa.Scalar | None:
    """The least of some keys, NULL before all others; None where there are none."""
    least: pa.Scalar | None = None
    for end in ends:
        if least is None or _is_above(least, end):
            least = end
    return least


def _is_above(one: pa.Scalar, other: pa.Scalar) -> bool:
    """Whether a key comes after another."""
    if not (one.is_valid and other.is_valid):
        return bool(one.is_valid) and not other.is_valid
    return bool(pc.greater(one, other).as_py())
