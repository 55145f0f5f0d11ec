"""Evaluates plans over a handful of rows by Python that is generated from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from everview.plan.nodes import Plan
from everview.runtime.generated.codegen import Generated, ReadColumn, generate
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


class GeneratedEvaluator:
    """Evaluates plans over the columns that `read` gives; `fold` computes constants."""

    def __init__(self, fold: Fold, read: ReadColumn) -> None:
        self._fold = fold
        self._read = read

    def evaluate(self, plan: Plan, *, consolidated: bool) -> list[tuple[Any, ...]] | None:
        """The rows of a plan, the weight of each last.

        None where vector operators have to be asked: for a plan that is not known here or not yet
        worth it, and for a value that is not computed exactly.
        """
        function = self._function(plan, _entry(plan, consolidated), consolidated=consolidated)
        if function is None:
            return None
        try:
            rows = function(self._read)
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
