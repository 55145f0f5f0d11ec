"""Worklist of a recursive relation: which rows to re-evaluate at which iteration.

Rows are numbered, and what is known of them are arrays by number. The history of a row is what
every iteration adds to its sum. A row is in the relation from the iteration on at which its sum
becomes positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from everview.expr.types import ITERATION, WEIGHT, Column, Schema, names
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.vector.batches import unit_weights
from everview.runtime.vector.chunks import AppendOnlyRows
from everview.runtime.vector.int_encoding import Ints, expand_ranges, grow, int_column, take_values
from everview.runtime.vector.row_ids import RowIds

Weighted: TypeAlias = tuple[Ints, Ints]
"""Numbers of rows, and a weight for each."""

_SAFE = 1 << 62
_OLD, _NEW = range(2)
_BEGUN, _FIRST, _LAST, _KEY, _FACTS = range(5)


@dataclass(slots=True)
class _Due:
    """What one iteration brings: changes of sums, and entries of the old histories."""

    changes: list[Weighted] = field(default_factory=list)
    came: list[Weighted] = field(default_factory=list)


class Worklist:
    """The changes of a relation's sum, by iteration; of a set, with the old history of its rows.

    By number, `_sums` has the sum of a row up to the iteration evaluated last, old and new, and
    `_facts` whether it was evaluated, from where to where the entries of its old history are, and
    the number of its key. Histories are fetched by a key, of all rows that have it.
    """

    def __init__(self, schema: Schema, by: str | None = None) -> None:
        self._lifted = arrow_schema((*schema, Column(ITERATION, "int")))
        self._width = len(schema)
        self._numbers = RowIds()
        self._rows = AppendOnlyRows(arrow_schema(schema))
        self._due: dict[int, _Due] = {}
        self._order: list[int] = []
        self._sums = np.zeros((2, 0), np.int64)
        self._facts = np.zeros((_FACTS, 0), np.int64)
        self._key = [] if by is None else [names(schema).index(by)]
        self._key_columns = [WEIGHT] if by is None else [by, WEIGHT]
        self._keys = RowIds()
        self._fetched = np.zeros(0, bool)
        self._when, self._weights = np.zeros((2, 0), np.int64)
        self._learned = 0
        self._received: list[tuple[Ints, Ints, Ints]] = []
        self._most = 0

    @property
    def next(self) -> int | None:
        """The first iteration at which a row has to be re-evaluated."""
        return self._order[0] if self._order else None

    def receive(self, rows: pa.RecordBatch) -> None:
        """Add changes of the sum to the worklist."""
        if not rows.num_rows:
            return
        numbers, when, weights = self._read(rows)
        self._received.append((numbers, when, weights))
        for iteration, places in _by_iteration(when):
            self._at(iteration).changes.append((numbers[places], weights[places]))

    def learn(self, rows: pa.RecordBatch) -> None:
        """Add old histories, each row's all at once; also of rows that have not changed yet."""
        if not rows.num_rows:
            return
        codes, weights = _not_zero(*_add_equal(*_coded(*self._read(rows))))
        numbers, when = _decoded(codes)
        first, known = _starts(numbers), self._learned
        owners = numbers[first]
        self._facts[_FIRST, owners] = first + known
        self._facts[_LAST, owners[:-1]] = first[1:] + known
        self._facts[_LAST, owners[-1:]] = len(numbers) + known
        self._learned += len(numbers)
        self._when = grow(self._when, self._learned)
        self._weights = grow(self._weights, self._learned)
        self._when[known : self._learned] = when
        self._weights[known : self._learned] = weights

    def changes(self, iteration: int) -> Weighted:
        """How the sum changes at an iteration: rows in order, each once, with weights not zero."""
        due = self._due.get(iteration)
        return _consolidate(due.changes) if due else _consolidate([])

    def unseen(self, numbers: Ints) -> Ints:
        """Those rows that were not evaluated yet."""
        unseen: Ints = numbers[self._facts[_BEGUN][numbers] == 0]
        return unseen

    def unfetched(self, numbers: Ints) -> pa.RecordBatch | None:
        """The keys of these rows that were not fetched yet; they count as fetched from now on."""
        if not len(numbers):
            return None
        missing = ~self._fetched[self._facts[_KEY][numbers]]
        if not missing.any():
            return None
        wanted = numbers[missing]
        self._fetched[self._facts[_KEY][wanted]] = True
        columns = self._rows.take(wanted)
        keys = [columns[place] for place in self._key]
        return pa.record_batch([*keys, unit_weights(len(wanted))], self._key_columns)

    def begin(self, numbers: Ints, iteration: int) -> None:
        """Evaluate rows for the first time, with the old histories that were learned."""
        if not len(numbers):
            return
        self._facts[_BEGUN, numbers] = 1
        first = self._facts[_FIRST][numbers]
        sizes = self._facts[_LAST][numbers] - first
        places = expand_ranges(first, sizes)
        if not len(places):
            return
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
        """How an iteration changes the set of rows, minus how it did before the transaction."""
        due = self._done(iteration)
        touched, change = changes
        came: Any = 0
        if due.came:
            entries, came = _consolidate(due.came)
            if not np.array_equal(entries, touched):
                both = np.zeros((2, len(touched) + len(entries)), self._sums.dtype)
                both[0, : len(touched)], both[1, len(touched) :] = change, came
                touched, (change, came) = _add_equal(np.concatenate((touched, entries)), both)
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
        made = [*self._rows.take(numbers), int_column(when), _weights(weights)]
        return pa.record_batch(made, schema=self._lifted)

    def received(self) -> pa.Table:
        """All changes of the sum that were received, consolidated."""
        if not self._received:
            return self._lifted.empty_table()
        numbers, when, weights = map(np.concatenate, zip(*self._received, strict=True))
        codes, summed = _not_zero(*_add_equal(*_coded(numbers, when, weights)))
        numbers, when = _decoded(codes)
        columns = self._rows.take_any(numbers)
        made = [*columns, int_column(when.astype(np.int32)), _weights(summed)]
        return pa.table(made, schema=self._lifted)

    def _at(self, iteration: int) -> _Due:
        due = self._due.get(iteration)
        if due is None:
            due = self._due[iteration] = _Due()
            heappush(self._order, iteration)
        return due

    def _done(self, iteration: int) -> _Due:
        """What an iteration brings, which is the first on the worklist if it is there."""
        due = self._due.pop(iteration, None)
        if due is None:
            return _Due()
        heappop(self._order)
        return due

    def _read(self, rows: pa.RecordBatch) -> tuple[Ints, Ints, Ints]:
        """The numbers of rows, their iterations and weights, which are the last two columns."""
        known = len(self._numbers)
        columns = [rows.column(place) for place in range(self._width)]
        numbers = self._numbers.of(columns, rows.num_rows)
        if len(self._numbers) > known:
            self._append(columns, numbers, known)
        when = rows.column(self._width).to_numpy().astype(np.int64)
        return numbers, when, self._wide(rows.column(self._width + 1).to_numpy())

    def _append(self, columns: Sequence[pa.Array], numbers: Ints, known: int) -> None:
        """Take in the rows that have just been numbered, the first of them with `known`."""
        end = len(self._numbers)
        if end - known < len(numbers):
            places = (numbers >= known).nonzero()[0]
            if len(places) > end - known:
                places = places[np.unique(numbers[places], return_index=True)[1]]
            columns = [take_values(column, places) for column in columns]
        self._rows.append(columns, end - known)
        self._sums, self._facts = grow(self._sums, end), grow(self._facts, end)
        keys = self._keys.of([columns[place] for place in self._key], end - known)
        self._facts[_KEY, known:end] = keys
        self._fetched = grow(self._fetched, len(self._keys))

    def _wide(self, weights: Ints) -> Ints:
        """Weights whose sums cannot go wrong: numbers of Python's where 64 bits may not do."""
        self._most += max(abs(int(weights.max())), abs(int(weights.min()))) * len(weights)
        if self._most < _SAFE:
            return weights
        self._sums, self._weights = self._sums.astype(object), self._weights.astype(object)
        return weights.astype(object)


def _weights(weights: Ints) -> pa.Array:
    return int_column(weights) if weights.dtype == np.int64 else pa.array(weights, pa.int64())


def _by_iteration(when: Ints) -> list[tuple[int, Any]]:
    """The iterations there are, and the places of each."""
    if not len(when):
        return []
    if (when == when[0]).all():
        return [(int(when[0]), slice(None))]
    order = np.argsort(when, kind="stable")
    found, first = np.unique(when[order], return_index=True)
    parts = np.split(order, first[1:])
    return list(zip(found.tolist(), parts, strict=True))


def _coded(numbers: Ints, when: Ints, weights: Ints) -> Weighted:
    """One number for each row at an iteration."""
    return (numbers << 32) | when, weights


def _decoded(codes: Ints) -> tuple[Ints, Ints]:
    return codes >> 32, codes & 0xFFFFFFFF


def _consolidate(parts: list[Weighted]) -> Weighted:
    """The sum of weighted rows: in order, each once, without those that cancel."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers, weights = map(np.concatenate, zip(*parts, strict=True))
    return _not_zero(*_add_equal(numbers, weights))


def _add_equal(numbers: Ints, weights: Ints) -> Weighted:
    """Numbers in order, each once, and the sums of what has the same number."""
    if not (numbers[1:] > numbers[:-1]).all():
        order = numbers.argsort(kind="stable")
        numbers, weights = numbers[order], weights[..., order]
        first = _starts(numbers)
        numbers, weights = numbers[first], np.add.reduceat(weights, first, axis=-1)
    return numbers, weights


def _starts(numbers: Ints) -> Ints:
    """Where each number begins, of numbers in order."""
    begins = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=begins[1:])
    return begins.nonzero()[0]


def _not_zero(numbers: Ints, weights: Ints) -> Weighted:
    kept = weights != 0
    return (numbers, weights) if kept.all() else (numbers[kept], weights[kept])
