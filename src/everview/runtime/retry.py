"""Re-runs a failed step over consolidated inputs, so that only rows that survive can raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from everview.errors import UserError

Answer = TypeVar("Answer")


class CalculationError(UserError):
    """A value that an engine cannot compute; `step` is that of a program in which it failed."""

    step: str | None = None
    where: str = ""

    def located(self, where: str) -> CalculationError:
        """The same error, with the expressions that it can come from."""
        error = CalculationError(self.code, f"{self.problem}, in {where}", remedy=self.remedy)
        error.where = where
        return error


def not_computed(why: str) -> CalculationError:
    """The error for a value that cannot be computed."""
    return CalculationError(
        "E010",
        f"a value cannot be computed: {why}",
        remedy="change the data, or guard the expression with CASE or a try_ function",
    )


@contextmanager
def in_step(name: str) -> Iterator[None]:
    """Remember the step of a program in which a value cannot be computed."""
    try:
        yield
    except CalculationError as problem:
        problem.step = name
        raise


def retry_consolidated(compute: Callable[[bool], Answer]) -> Answer:
    """What `compute(False)` gives; after an error, what it gives over consolidated inputs.

    Changes and slices hold rows that cancel: a row that was deleted since, or a joined pair of a
    row that came and one that went. To compute them too is cheaper than to consolidate first, and
    changes nothing but errors. So an error counts only if it comes again when `compute(True)` has
    taken out the rows that cancel.
    """
    try:
        return compute(False)
    except CalculationError:
        return compute(True)
