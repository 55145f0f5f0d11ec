"""Evaluates plans over a handful of rows by Python that is generated from them."""

from __future__ import annotations

from collections.abc import Callable
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
_FAILURES = (Unsupported, ArithmeticError, ValueError, pa.ArrowException)
"""What says that a value is not computed exactly here."""


@dataclass(slots=True)
class _Entry:
    """How often a plan was evaluated, and its function once there is one."""

    used: int = 0
    function: Generated | None = None


class GeneratedEvaluator:
    """Evaluates plans over the columns that `read` gives; `fold` computes constants."""

    def __init__(self, fold: Fold, read: ReadColumn) -> None:
        self._fold = fold
        self._read = read
        entry: Callable[[Plan, bool], _Entry] = lambda _plan, _consolidated: _Entry()
        self._entry = lru_cache(maxsize=MAX_GENERATED_PLANS)(entry)

    def evaluate(self, plan: Plan, *, consolidated: bool) -> list[tuple[Any, ...]] | None:
        """The rows of a plan, the weight of each last.

        None where vector operators have to be asked: for a plan that is not known here or not yet
        worth it, and for a value that is not computed exactly.
        """
        entry = self._entry(plan, consolidated)
        entry.used += 1
        if entry.function is None:
            if entry.used != GENERATE_AFTER:
                return None
            try:
                entry.function = generate(plan, self._fold, consolidated=consolidated)
            except (Unsupported, SyntaxError, pa.ArrowException):
                return None
        try:
            return entry.function(self._read)
        except _FAILURES:
            return None
