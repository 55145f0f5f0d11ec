"""Evaluates plans over a handful of rows by Python that is generated from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from everview.expr.types import Column, Schema
from everview.plan.nodes import Plan
from everview.runtime.generated.codegen import Generated, generate
from everview.runtime.generated.values import WEIGHT_COLUMN, column_values, to_batch
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.scalars import Fold

MAX_GENERATED_PLANS = 4096
"""Of how many plans the functions are kept."""
GENERATE_AFTER = 3
"""A plan that is evaluated so often is generated: to generate it costs as much as a few of its
evaluations by vector operators, and many are evaluated once."""
_MOST = 2**63 - 1
"""A larger weight does not fit."""
_FAILURES = (Unsupported, ArithmeticError, ValueError, pa.ArrowException)
"""What says that a value is not computed exactly here."""


@dataclass(slots=True)
class _Entry:
    """How often a plan was evaluated, its function once there is one, and whether it has one."""

    used: int = 0
    function: Generated | None = None
    is_known: bool = True


@lru_cache(maxsize=MAX_GENERATED_PLANS)
def _entry(_plan: Plan, _consolidated: bool) -> _Entry:
    """What is known of a plan in this process: a function depends on nothing else."""
    return _Entry()


class PythonColumns:
    """Columns as generated code reads and writes them, by relation.

    Those of relations in Arrow are made when they are first read, from `batches`. The relations in
    `made` are here whole, and maybe in no other form.
    """

    def __init__(self, batches: Mapping[str, pa.RecordBatch]) -> None:
        self.made: dict[str, Schema] = {}
        self._batches = batches
        self._columns: dict[str, dict[Column, list[Any]]] = {}

    def add(self, name: str, schema: Schema, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows that generated code has made, at least one."""
        columns = map(list, zip(*rows, strict=True))
        self.made[name] = schema
        self._columns[name] = dict(zip((*schema, WEIGHT_COLUMN), columns, strict=True))

    def read(self, name: str, column: Column) -> list[Any]:
        """The values of a column."""
        known = self._columns.setdefault(name, {})
        if column not in known:
            known[column] = column_values(self._batches[name], column)
        return known[column]

    def batch(self, name: str) -> pa.RecordBatch:
        """A relation that was made here, as Arrow."""
        return to_batch(self._columns[name], self.made[name])

    def forget(self, name: str) -> None:
        """Drop a relation."""
        self.made.pop(name, None)
        self._columns.pop(name, None)

    def clear(self) -> None:
        """Drop all relations."""
        self.made.clear()
        self._columns.clear()


class GeneratedEvaluator:
    """Evaluates plans over relations, given as `batches`; `fold` computes constants."""

    def __init__(self, fold: Fold, batches: Mapping[str, pa.RecordBatch]) -> None:
        self.values = PythonColumns(batches)
        self._fold = fold

    def evaluate(self, plan: Plan, *, consolidated: bool) -> list[tuple[Any, ...]] | None:
        """The rows of a plan, the weight of each last.

        None where vector operators have to be asked: for a plan that is not known here or not yet
        worth it, and for a value that is not computed exactly.
        """
        function = self._function(plan, _entry(plan, consolidated), consolidated=consolidated)
        if function is None:
            return None
        try:
            rows = function(self.values.read)
        except _FAILURES:
            return None
        return rows if all(-_MOST <= row[-1] <= _MOST for row in rows) else None

    def _function(self, plan: Plan, entry: _Entry, *, consolidated: bool) -> Generated | None:
        entry.used += 1
        if entry.function is None and entry.is_known and entry.used >= GENERATE_AFTER:
            try:
                entry.function = generate(plan, self._fold, consolidated=consolidated)
            except (Unsupported, SyntaxError, pa.ArrowException):
                entry.is_known = False
        return entry.function
