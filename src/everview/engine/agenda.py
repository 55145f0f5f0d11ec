"""What has to be looked at of one relation of a loop, iteration by iteration.

Every row has a number, and what is known of rows are arrays by number. The history of a row is what
every iteration adds to its sum. A row is there from the iteration on at which its sum becomes
positive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from everview.engine.arrow import arrow_schema
from everview.engine.columns.batches import FEW, batch
from everview.engine.identity import Numbers, Places
from everview.plan.types import ITERATION, Column, Schema, names

Weighted: TypeAlias = tuple[Places, Places]
"""Numbers of rows, and a weight for each."""

PIECES = 32
"""To take rows from so many pieces costs less than to make them fewer."""
_SAFE = 1 << 62
_OLD, _NEW = range(2)
_BEGUN, _FIRST, _LAST, _KEY, _FACTS = range(5)


class Pieces:
    """Batches one after the other: few, however many come, and no row is moved often."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows at the end."""
        self._rows += rows.num_rows
        if len(self._batches) >= PIECES:
            while self._batches and self._batches[-1].num_rows <= 2 * rows.num_rows:
                rows = pa.concat_batches([self._batches.pop(), rows])
        self._batches.append(rows)

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self._batches, self._schema)

    def take(self, places: Places) -> pa.RecordBatch:
        """The rows at some places, which ascend."""
        first = self._rows - self._batches[-1].num_rows
        if places[0] < first:
            if self._rows > FEW:
                return batch(self.table().take(pa.array(places)))
            self._batches, first = [pa.concat_batches(self._batches)], 0
        last = self._batches[-1]
        if places[-1] - places[0] == len(places) - 1:
            return last.slice(int(places[0]) - first, len(places))
        return last.take(pa.array(places - first))


@dataclass(slots=True)
class _Due:
    """What one iteration brings: changes of sums, and entries of the old histories."""

    changes: list[Weighted] = field(default_factory=list)
    came: list[Weighted] = field(default_factory=list)


class Agenda:
    """The changes of a relation's sum, by iteration; of a set, with the old history of its rows.

    By number, `_sums` has the sum of a row up to the iteration last looked at, old and new, and
    `_facts` whether it was looked at, from where to where the entries of its old history are, and
    the number of its key. Histories are brought by a key, of all rows that have it.
    """

    def __init__(self, schema: Schema, by: str | None = None) -> None:
        self._lifted = arrow_schema((*schema, Column(ITERATION, "int")))
        self._width = len(schema)
        self._numbers = Numbers()
        self._rows = Pieces(arrow_schema(schema))
        self._due: dict[int, _Due] = {}
        self._order: list[int] = []
        self._sums = np.zeros((2, 0), np.int64)
        self._facts = np.zeros((_FACTS, 0), np.int64)
        self._key = [] if by is None else [names(schema).index(by)]
        self._keys = Numbers()
        self._brought = np.zeros(0, bool)
        self._when, self._weights = np.zeros((2, 0), np.int64)
        self._received: list[tuple[Places, Places, Places]] = []
        self._most = 0

    @property
    def next(self) -> int | None:
        """The first iteration at which something has to be looked at."""
        return self._order[0] if self._order else None

    def receive(self, rows: pa.RecordBatch) -> None:
        """Put changes of the sum on the agenda."""
        if not rows.num_rows:
            return
        numbers, when, weights = self._read(rows)
        self._received.append((numbers, when, weights))
        for iteration, places in _by_iteration(when):
            self._at(iteration).changes.append((numbers[places], weights[places]))

    def learn(self, rows: pa.RecordBatch) -> None:
        """Take in old histories, of each row all at once; also of rows not asked for yet."""
        if not rows.num_rows:
            return
        codes, weights = _not_zero(*_summed(*_coded(*self._read(rows))))
        numbers, when = _decoded(codes)
        first, known = _starts(numbers), len(self._when)
        owners = numbers[first]
        self._facts[_FIRST, owners] = first + known
        self._facts[_LAST, owners[:-1]] = first[1:] + known
        self._facts[_LAST, owners[-1:]] = len(numbers) + known
        self._when = np.concatenate((self._when, when))
        self._weights = np.concatenate((self._weights, weights))

    def changes(self, iteration: int) -> Weighted:
        """How the sum changes at an iteration: rows in order, each once, with weights not zero."""
        due = self._due.get(iteration)
        return _all_summed(due.changes) if due else _all_summed([])

    def unseen(self, numbers: Places) -> Places:
        """Those rows that were not looked at yet."""
        unseen: Places = numbers[self._facts[_BEGUN, numbers] == 0]
        return unseen

    def unbrought(self, numbers: Places) -> pa.RecordBatch | None:
        """The rows of these whose keys nobody asked for yet; they count as brought from now on."""
        if not len(numbers):
            return None
        missing = ~self._brought[self._facts[_KEY, numbers]]
        if not missing.any():
            return None
        asked = numbers[missing]
        self._brought[self._facts[_KEY, asked]] = True
        return self._rows.take(asked)

    def begin(self, numbers: Places, iteration: int) -> None:
        """Look at rows for the first time, with the old histories that were learned."""
        if not len(numbers):
            return
        self._facts[_BEGUN, numbers] = 1
        first = self._facts[_FIRST][numbers]
        sizes = self._facts[_LAST][numbers] - first
        if not sizes.any():
            return
        ends = sizes.cumsum()
        places = (first - ends + sizes).repeat(sizes) + np.arange(ends[-1])
        when, weights, owners = self._when[places], self._weights[places], numbers.repeat(sizes)
        # Old and new are still equal, so what came at this very iteration makes no difference yet.
        early = when <= iteration
        if early.any():
            for sums in self._sums:
                np.add.at(sums, owners[early], weights[early])
            when, weights, owners = when[~early], weights[~early], owners[~early]
        for at, places in _by_iteration(when):
            self._at(at).came.append((owners[places], weights[places]))

    def advance(self, iteration: int, changes: Weighted) -> Weighted:
        """What an iteration adds to whether rows are there, minus what it added before."""
        due = self._done(iteration)
        touched, change = changes
        came: Any = 0
        if due.came:
            entries, came = _all_summed(due.came)
            if not np.array_equal(entries, touched):
                both = np.zeros((2, len(touched) + len(entries)), self._sums.dtype)
                both[0, : len(touched)], both[1, len(touched) :] = change, came
                touched, (change, came) = _summed(np.concatenate((touched, entries)), both)
        old, new = self._sums[_OLD][touched], self._sums[_NEW][touched]
        before = (new > 0).astype(np.int64) - (old > 0)
        old = self._sums[_OLD][touched] = old + came
        new = self._sums[_NEW][touched] = new + came + change
        return _not_zero(touched, (new > 0).astype(np.int64) - (old > 0) - before)

    def pass_on(self, iteration: int, changes: Weighted) -> Weighted:
        """What an iteration adds to a bag: its sum."""
        self._done(iteration)
        return changes

    def at(self, iteration: int, rows: Weighted) -> pa.RecordBatch:
        """Rows that come or go at an iteration."""
        numbers, weights = rows
        when = np.full(len(numbers), iteration, np.int32)
        taken = self._rows.take(numbers)
        columns = [taken.column(place) for place in range(self._width)]
        made = [*columns, pa.array(when), pa.array(weights, pa.int64())]
        return pa.record_batch(made, schema=self._lifted)

    def received(self) -> pa.Table:
        """All changes of the sum that were received, added up."""
        if not self._received:
            return self._lifted.empty_table()
        numbers, when, weights = map(np.concatenate, zip(*self._received, strict=True))
        codes, summed = _not_zero(*_summed(*_coded(numbers, when, weights)))
        numbers, when = _decoded(codes)
        columns = self._rows.table().take(pa.array(numbers)).columns[:-1]
        made = [*columns, pa.array(when.astype(np.int32)), pa.array(summed, pa.int64())]
        return pa.table(made, schema=self._lifted)

    def _at(self, iteration: int) -> _Due:
        due = self._due.get(iteration)
        if due is None:
            due = self._due[iteration] = _Due()
            heappush(self._order, iteration)
        return due

    def _done(self, iteration: int) -> _Due:
        """What an iteration brings, which is the first on the agenda if it is there."""
        due = self._due.pop(iteration, None)
        if due is None:
            return _Due()
        heappop(self._order)
        return due

    def _read(self, rows: pa.RecordBatch) -> tuple[Places, Places, Places]:
        """The numbers of rows, their iterations and weights, which are the last two columns."""
        known = len(self._numbers)
        columns = [rows.column(place) for place in range(self._width)]
        numbers = self._numbers.of(columns, rows.num_rows)
        fresh = len(self._numbers) - known
        if fresh:
            plain = rows.remove_column(self._width)
            if fresh < rows.num_rows:
                places = (numbers >= known).nonzero()[0]
                if len(places) > fresh:
                    places = places[np.unique(numbers[places], return_index=True)[1]]
                plain = plain.take(pa.array(places))
            self._append(plain, known)
        when = rows.column(self._width).to_numpy().astype(np.int64)
        return numbers, when, self._wide(rows.column(self._width + 1).to_numpy())

    def _append(self, fresh: pa.RecordBatch, known: int) -> None:
        """Take in rows that have just been numbered, the first of them with the number `known`."""
        self._rows.append(fresh)
        end = known + fresh.num_rows
        self._sums, self._facts = _with_room(self._sums, end), _with_room(self._facts, end)
        keys = self._keys.of([fresh.column(place) for place in self._key], fresh.num_rows)
        self._facts[_KEY, known:end] = keys
        self._brought = _with_room(self._brought, len(self._keys))

    def _wide(self, weights: Places) -> Places:
        """Weights whose sums cannot go wrong: numbers of Python's where 64 bits may not do."""
        self._most += max(abs(int(weights.max())), abs(int(weights.min()))) * len(weights)
        if self._most < _SAFE:
            return weights
        self._sums, self._weights = self._sums.astype(object), self._weights.astype(object)
        return weights.astype(object)


def _with_room(known: Places, wanted: int) -> Places:
    """An array with room for so many, at its end; at least doubled if it has to grow."""
    room = known.shape[-1]
    if wanted <= room:
        return known
    more = np.zeros((*known.shape[:-1], max(room, wanted - room)), known.dtype)
    return np.concatenate((known, more), axis=-1)


def _by_iteration(when: Places) -> list[tuple[int, Any]]:
    """The iterations there are, and the places of each."""
    if not len(when):
        return []
    low, high = int(when.min()), int(when.max())
    if low == high:
        return [(low, slice(None))]
    order = np.argsort(when, kind="stable")
    found, first = np.unique(when[order], return_index=True)
    parts = np.split(order, first[1:])
    return list(zip(found.tolist(), parts, strict=True))


def _coded(numbers: Places, when: Places, weights: Places) -> Weighted:
    """One number for each row at an iteration."""
    return (numbers << 32) | when, weights


def _decoded(codes: Places) -> tuple[Places, Places]:
    return codes >> 32, codes & 0xFFFFFFFF


def _all_summed(parts: list[Weighted]) -> Weighted:
    """The sum of weighted rows: in order, each once, without those that cancel."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers, weights = map(np.concatenate, zip(*parts, strict=True))
    return _not_zero(*_summed(numbers, weights))


def _summed(numbers: Places, weights: Places) -> Weighted:
    """Numbers in order, each once, and the sums of what has the same number."""
    if not (numbers[1:] > numbers[:-1]).all():
        order = numbers.argsort(kind="stable")
        numbers, weights = numbers[order], weights[..., order]
        first = _starts(numbers)
        numbers, weights = numbers[first], np.add.reduceat(weights, first, axis=-1)
    return numbers, weights


def _starts(numbers: Places) -> Places:
    """Where each number begins, of numbers in order."""
    begins = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
    return begins.nonzero()[0]


def _not_zero(numbers: Places, weights: Places) -> Weighted:
    kept = weights != 0
    return (numbers, weights) if kept.all() else (numbers[kept], weights[kept])
