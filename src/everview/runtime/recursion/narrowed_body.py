"""Evaluates the bodies of a loop over few rows, by vector operators and hash indexes.

Plans are narrowed and compiled once per loop. Indexes only grow, so an iteration costs by the rows
it reads and adds, not by the rows that were reached before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from everview.expr.types import names
from everview.plan.nodes import Plan
from everview.plan.traverse import referred, schema_of
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.recursion.key_index import KeyIndex
from everview.runtime.recursion.narrowing import Narrowing, NarrowingError, Slice
from everview.runtime.vector.batches import select_columns
from everview.runtime.vector.chunks import RowChunks
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.operators import Relations

INDEXED_MAX_ROWS = 4_000_000
"""A relation of more rows is not indexed: an entry takes some hundred bytes."""


class VectorRows(Protocol):
    """Vector operators over batches, and relations in memory."""

    def vector_rows(
        self, plan: Plan, relations: Relations, *, consolidated: bool
    ) -> pa.RecordBatch | None:
        """The rows of a plan; None where vector operators do not know it, or a value."""

    def batch(self, name: str) -> pa.RecordBatch:
        """A relation as one batch."""

    def count_rows(self, names: Iterable[str]) -> int:
        """How many rows some relations have together."""


@dataclass(slots=True)
class _Indexed:
    """An index over the rows of a plan, and how many rows of a growing relation it has taken in."""

    plan: Plan
    grows: str | None
    index: KeyIndex
    taken: int = 0
    is_full: bool = False


class NarrowedBodies:
    """Plans over small relations, relations that grow, and others that stay the same.

    `small` are given with each evaluation, `growing` once, as rows that others add to.
    """

    def __init__(
        self, vector: VectorRows, small: Iterable[str], growing: Mapping[str, RowChunks]
    ) -> None:
        self._vector, self._growing = vector, growing
        self._small = frozenset(small)
        self._indexes: dict[tuple[Plan, tuple[str, ...]], _Indexed] = {}
        self._narrowed: dict[Plan, tuple[Plan, list[Slice]]] = {}

    def prepare(self, plan: Plan) -> bool:
        """Narrow a plan; whether it can be evaluated here."""
        narrowing = Narrowing(self._small, frozenset(self._growing))
        try:
            narrow = narrowing.narrow(plan)
            for each in narrowing.slices:
                self._index(each)
        except NarrowingError:
            return False
        self._narrowed[plan] = narrow, narrowing.slices
        return True

    def rows(self, plan: Plan, small: Relations, *, consolidated: bool) -> pa.RecordBatch | None:
        """The rows of a prepared plan; None where SQL has to compute them."""
        narrow, slices = self._narrowed[plan]
        relations = {**small}
        try:
            for each in slices:
                relations[each.name] = self._fill(each, relations)
        except Unsupported:
            return None
        return self._vector.vector_rows(narrow, relations, consolidated=consolidated)

    @property
    def backlog(self) -> int:
        """How many rows the indexes have to take in before the next evaluation."""
        return sum(map(self._missing, self._indexes.values()))

    def _missing(self, each: _Indexed) -> int:
        if each.grows is not None:
            return len(self._growing[each.grows]) - each.taken
        if each.is_full:
            return 0
        return self._vector.count_rows({ref.name for ref in referred(each.plan)})

    def _index(self, each: Slice) -> _Indexed:
        mark = each.plan, each.keys
        if mark not in self._indexes:
            grows = [ref.name for ref in referred(each.plan) if ref.name in self._growing]
            index = KeyIndex(arrow_schema(each.schema), each.keys)
            made = _Indexed(each.plan, grows[0] if grows else None, index)
            if not grows and self._missing(made) > INDEXED_MAX_ROWS:
                raise NarrowingError("too many rows for an index")
            self._indexes[mark] = made
        return self._indexes[mark]

    def _fill(self, each: Slice, relations: Relations) -> pa.RecordBatch:
        """The rows of a slice at this iteration."""
        indexed = self._index(each)
        if indexed.grows is not None:
            if len(self._growing[indexed.grows]) > INDEXED_MAX_ROWS:
                raise Unsupported("too many rows for an index")
            for rows in self._growing[indexed.grows].since(indexed.taken):
                indexed.index.append(self._computed(each.plan, {indexed.grows: rows}))
                indexed.taken += rows.num_rows
        elif not indexed.is_full:
            read = {ref.name: self._vector.batch(ref.name) for ref in referred(each.plan)}
            indexed.index.append(self._computed(each.plan, read))
            indexed.is_full = True
        probe = self._computed(each.probe, relations)
        places = list(map(names(schema_of(each.probe)).index, each.probe_keys))
        return indexed.index.find(probe, places)

    def _computed(self, plan: Plan, relations: Relations) -> pa.RecordBatch:
        rows = self._vector.vector_rows(plan, relations, consolidated=False)
        if rows is None:
            raise Unsupported(type(plan).__name__)
        return select_columns(rows, arrow_schema(schema_of(plan)))
