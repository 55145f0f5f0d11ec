"""Weighted rows in memory, sorted by a column: those with some of its values are found at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import groupby
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from everview.expr.types import WEIGHT
from everview.runtime.cache.buffers import in_file, in_memory
from everview.runtime.cache.key_set import Keys, ends
from everview.runtime.cache.row_layout import Layout, Packed, rows_at
from everview.runtime.cache.sorted_search import Ordered
from everview.runtime.parallel import PARALLEL_ROWS, map_parallel
from everview.runtime.vector.int_encoding import NOWHERE, Places, is_whole, of_numbers, spread
from everview.store.sort_order import both, counts, in_one, in_order, numbers

WIDE = 32 << 20
"""Rows that take less memory than this are found as fast in pages of the usual size."""
NARROWED, WORTH = 100, 2
"""To take fewer rows, or fewer times as many as are asked for, costs less than to find out which of
them are wanted."""
PIECES = 8
"""Rows that come in more pieces are copied to lie together."""
SEARCHED = 2_000
"""To look for a text costs as much as to pass over so many rows."""


class Run:
    """Rows in the order of one column, nulls first; they may be known to be `ordered`.

    Many rows that are larger than the `room` there is lie in a file that is mapped into memory, so
    that they can leave it again; others stay, and are that much `resident`.
    """

    def __init__(
        self, rows: pa.Table, by: str | None, *, ordered: bool = False, room: float = inf
    ) -> None:
        self.by = by if _has_order(rows.schema, by) else None
        # In as few pieces as can be, which are taken from fastest.
        self.rows = (rows if ordered else _ranged(rows, by)).combine_chunks()
        self._picked: dict[tuple[str, ...], pa.Table] = {}
        self.resident = 0
        self._settle(room)

    def _settle(self, room: float) -> None:
        """Let many rows lie where they are to stay."""
        if len(self) <= PARALLEL_ROWS:
            return
        size = self.rows.nbytes
        if size > room and (mapped := in_file(self.rows)) is not None:
            self.rows = mapped
            return
        self.resident = size
        if size > WIDE:
            self.rows = in_memory(self.rows)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def at(self, places: Places, columns: Sequence[str]) -> pa.Table:
        """The rows at some places."""
        return taken(self._columns(tuple(columns)), of_numbers(places))

    def _columns(self, names: tuple[str, ...]) -> pa.Table:
        """Some columns of all rows; they are asked for again and again."""
        if names not in self._picked:
            self._picked[names] = self.rows.select(names)
        return self._picked[names]

    def every(self, columns: Sequence[str]) -> pa.Table:
        """All rows."""
        return self.rows.select(list(columns))

    @property
    def comes_and_goes(self) -> bool:
        """Whether rows with one key have weights of both signs."""
        goes = self.rows[WEIGHT].to_numpy() < 0
        if not goes.any() or goes.all():
            return False
        if self.by is None:
            return True
        column = in_one(self.rows[self.by])
        turns = np.flatnonzero(goes[1:] != goes[:-1])
        before, after = (column.take(of_numbers(at)) for at in (turns, turns + 1))
        return bool(pc.any(pc.fill_null(pc.equal(before, after), True)).as_py())

    def places(self, by: str, keys: Keys) -> Places | None:
        """Where the rows with these keys are; None if looking at all rows is cheaper."""
        found = self._places(keys) if by == self.by else None
        if found is not None and keys.null and self._nulls:
            found = np.concatenate((np.arange(self._nulls), found))
        return found

    def tells(self, rows: pa.Table) -> bool:
        """Whether numbers tell which of its rows agree with some."""
        columns = ((self._type_of(name), rows[name]) for name in rows.column_names)
        return all(ours is not None and _alike(ours, theirs) for ours, theirs in columns)

    def agreeing(self, places: Places, rows: pa.Table) -> Places:
        """Of some places those that agree with one of some rows."""
        found = reduce(
            both,
            (
                np.concatenate(
                    (
                        self._numbers_at(name, places),
                        numbers(in_one(rows[name])),
                    )
                )
                for name in rows.column_names
            ),
        )
        ours, theirs = found[: len(places)], np.sort(found[len(places) :])
        kept: Places = places[theirs.take(theirs.searchsorted(ours), mode="clip") == ours]
        return kept

    def _type_of(self, name: str) -> pa.DataType | None:
        """The type of a column of numbers without a null, in one piece; None of any other."""
        column = self.rows[name]
        plain = column.num_chunks == 1 and not column.null_count and counts(column.type)
        return column.type if plain else None

    def _numbers_at(self, name: str, places: Places) -> Places:
        found: Places = numbers(self.rows[name].chunk(0))[places]
        return found

    def _places(self, keys: Keys) -> Places | None:
        if self._numbers is not None:
            ours, theirs = self._ends, keys.ends
            if ours is None or theirs is None or ours[0] > theirs[1] or ours[1] < theirs[0]:
                return NOWHERE
            found = spread(*self._numbers.spans(keys.between(*ours)))
            return found + self._nulls if self._nulls else found
        if len(keys.distinct) * SEARCHED > len(self):
            return None
        column = self.rows[self.by]
        try:
            ends = [_range(column, key, self._nulls) for key in keys.distinct.to_pylist()]
        except UnicodeDecodeError:  # a Spark string may hold bytes that are not UTF-8
            return None
        first, last = np.array(ends, np.int64).reshape(-1, 2).T
        return spread(first, last - first)

    @cached_property
    def whole(self) -> dict[str, Places] | None:
        """Its columns as numbers, where all of them are whole numbers without a null."""
        columns = {name: self.rows[name] for name in self.rows.column_names}
        if not all(is_whole(each) and each.num_chunks == 1 for each in columns.values()):
            return None
        return {name: each.chunk(0).to_numpy() for name, each in columns.items()}

    @cached_property
    def _ends(self) -> tuple[int, int] | None:
        return None if self._numbers is None else ends(self._numbers.values)

    @cached_property
    def _nulls(self) -> int:
        return int(self.rows[self.by].null_count)

    @cached_property
    def _numbers(self) -> Ordered | None:
        """The values of the column after its nulls, where they are whole numbers."""
        column = self.rows[self.by]
        if not counts(column.type):
            return None
        return Ordered(numbers(in_one(column[self._nulls :])))


def in_pieces(rows: pa.Table, by: str | None, room: float) -> list[Run]:
    """Many rows as runs of which each begins where the one before it ends.

    They are not copied where they come in few pieces.
    """
    ranged = _ranged(rows, by)
    batches = [pa.Table.from_batches([each]) for each in ranged.to_batches() if each.num_rows]
    if len(batches) > PIECES:
        return [Run(ranged, by, ordered=True, room=room)]
    runs = []
    for each in batches:
        runs.append(Run(each, by, ordered=True, room=room))
        room -= runs[-1].resident
    return runs


class Tight(Run):
    """Many rows in little memory; what looks at all of them takes longer.

    The column that they are in the order of, and what cannot be packed, are `rows`.
    """

    def __init__(self, packed: Packed, by: str) -> None:
        self.packed = packed
        super().__init__(packed.rest, by, ordered=True)

    @classmethod
    def of(cls, rows: pa.Table, by: str, like: Layout | None = None, each: float = 0) -> Tight:
        """Rows in any order, packed like others if they fit."""
        return cls(Packed(_ranged(rows, by), by, like, each), by)

    def _settle(self, room: float) -> None:
        self.resident = self.packed.nbytes

    def goes_on(self, after: Run) -> bool:
        """Whether the run and one before it can be one."""
        if not isinstance(after, Tight) or self.packed.layout is not after.packed.layout:
            return False
        alone = self.rows.column_names == [self.by] == [after.by]
        if not alone or self._nulls or after._nulls or self._ends is None or after._ends is None:
            return False
        return after._ends[1] <= self._ends[0]

    def at(self, places: Places, columns: Sequence[str]) -> pa.Table:
        """The rows at some places."""
        return rows_at([(self.packed, places)], columns)

    def every(self, columns: Sequence[str]) -> pa.Table:
        """All rows."""
        return pa.table({name: self.packed.column(name) for name in columns})

    def places(self, by: str, keys: Keys) -> Places | None:
        """Where the rows with these keys are."""
        found = super().places(by, keys)
        if found is not None:
            return found
        return np.flatnonzero(_are_wanted(self.packed.column(by), keys).to_numpy())

    @property
    def whole(self) -> None:
        """Not all at once."""

    def _type_of(self, name: str) -> pa.DataType | None:
        return self.packed.type_of(name)

    def _numbers_at(self, name: str, places: Places) -> Places:
        return self.packed.numbers(name, places)


def joined(runs: list[Run]) -> list[Run]:
    """The same rows in fewer runs; those given are let go of one by one, as memory may be short."""
    made: list[Run] = []
    while runs:
        last: list[Run] = [runs.pop()]
        while runs and isinstance(last[-1], Tight) and last[-1].goes_on(runs[-1]):
            last.append(runs.pop())
        parts = [run.packed for run in reversed(last) if isinstance(run, Tight)]
        by = last[0].by
        if len(parts) > 1 and by is not None:
            last.clear()
            made.append(Tight(Packed.joined(parts), by))
        else:
            made += last
    return made[::-1]


def among(runs: Sequence[Run], by: str, keys: Keys, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """The rows of some runs whose column `by` is one of the keys."""
    found = zip(runs, _places(runs, by, keys), strict=True)
    there = [(run, at) for run, at in found if at is None or len(at)]
    if keys.rows is not None:
        there = _narrowed(there, keys.rows)
    if there and (numbers := _numbers_at(there, schema.names)) is not None:
        return pa.record_batch(list(map(of_numbers, numbers)), schema=schema)
    parts: list[pa.Table] = []
    for layout, group in groupby(there, _layout):
        if layout == _SCANNED:
            parts.append(_scanned([run for run, _ in group], by, keys, schema.names))
            continue
        known = [(run, at) for run, at in group if at is not None]
        tight = [(run.packed, at) for run, at in known if isinstance(run, Tight)]
        if tight:
            parts.append(rows_at(tight, schema.names))
        else:
            parts += (run.at(at, schema.names) for run, at in known)
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _places(runs: Sequence[Run], by: str, keys: Keys) -> list[Places | None]:
    """Where the rows with these keys are in each run; of many keys, by all cores."""
    if len(keys.values) < PARALLEL_ROWS:
        return [run.places(by, keys) for run in runs]
    if counts(keys.values.type):
        _ = keys.numbers  # put in order once, not by each that looks for them
    return map_parallel(lambda run: run.places(by, keys), runs)


_SCANNED = "scanned"


def _layout(found: tuple[Run, Places | None]) -> object:
    """What neighbours have in common that are looked at together."""
    run, at = found
    if at is None:
        return _SCANNED
    return run.packed.layout if isinstance(run, Tight) else None


def _scanned(runs: Sequence[Run], by: str, keys: Keys, columns: Sequence[str]) -> pa.Table:
    """The rows whose column `by` is one of the keys, by a look at all rows of some runs at once."""
    rows = pa.concat_tables([run.rows for run in runs])
    wanted, found = _are_wanted(rows[by], keys), rows.select(list(columns))
    if len(rows) < SEARCHED:  # to copy them costs less than to look at each piece
        wanted, found = in_one(wanted), found.combine_chunks()
    return found.filter(wanted)


def _are_wanted(column: pa.ChunkedArray, keys: Keys) -> pa.ChunkedArray:
    """Whether each value of a column is one of the keys."""
    found = pc.is_in(column, value_set=in_one(keys.values))
    return pc.or_(found, pc.is_null(column)) if keys.null else found


def _narrowed(
    there: list[tuple[Run, Places | None]], rows: pa.Table
) -> list[tuple[Run, Places | None]]:
    """Only the places that agree with one of some rows, where that is told of all of them.

    What came in one run goes in another: of a row all runs have to be brought, or none.
    """
    known = [(run, at) for run, at in there if at is not None and run.tells(rows)]
    least = max(NARROWED, WORTH * rows.num_rows)
    if len(known) < len(there) or sum(len(at) for _, at in known) < least:
        return there
    narrow = ((run, run.agreeing(at, rows)) for run, at in known)
    return [(run, at) for run, at in narrow if len(at)]


def _numbers_at(
    there: Sequence[tuple[Run, Places | None]], names: Sequence[str]
) -> list[Places] | None:
    """The columns of few rows that are whole numbers, None if they are many, or not."""
    parts = [(run.whole, at) for run, at in there]
    if sum(PARALLEL_ROWS if at is None else len(at) for _, at in parts) >= PARALLEL_ROWS:
        return None
    known = [(whole, at) for whole, at in parts if whole is not None]
    if len(known) < len(parts):
        return None
    return [np.concatenate([whole[name][at] for whole, at in known]) for name in names]


def taken(rows: pa.Table, places: pa.Array) -> pa.Table:
    """The rows at some places; of many, the columns side by side."""
    if len(places) < PARALLEL_ROWS:
        return rows.take(places)
    columns = map_parallel(lambda column: column.take(places), rows.columns)
    return pa.table(columns, rows.schema)


def _alike(type_: pa.DataType, other: pa.ChunkedArray) -> bool:
    """Whether numbers of a type are the same as others if and only if the values are."""
    whole = types.is_integer(type_) and types.is_integer(other.type)
    return not other.null_count and bool(whole or type_ == other.type)


def _range(column: pa.ChunkedArray, key: Any, nulls: int) -> tuple[int, int]:
    def value(at: int) -> Any:
        return column[at].as_py()

    places = range(nulls, len(column))
    first = bisect_left(places, key, key=value)
    return nulls + first, nulls + bisect_right(places, key, lo=first, key=value)


def _ranged(rows: pa.Table, by: str | None) -> pa.Table:
    """The rows in the order of a column, where it has one."""
    return in_order(rows, [by]) if by is not None and _has_order(rows.schema, by) else rows


def _has_order(schema: pa.Schema, by: str | None) -> bool:
    if by is None:
        return False
    type_ = schema.field(by).type
    return counts(type_) or bool(types.is_string(type_) or types.is_decimal(type_))
