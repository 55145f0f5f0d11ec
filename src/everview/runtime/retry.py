"""When an error is the user's: only if the row it comes from is really there."""

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
        found = CalculationError(self.code, f"{self.problem}, in {where}", remedy=self.remedy)
        found.where = where
        return found


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


def twice(compute: Callable[[bool], Answer]) -> Answer:
    """What `compute` answers; where a value cannot be computed, it is asked again to be careful.

    Changes and slices hold rows that cancel: a row deleted since, or the pair of a row that came
    and one that went. Computing them too is cheaper than taking them out, and harmless but for
    errors. So an error is only believed when nothing was computed of rows that cancel.
    """
    try:
        return compute(False)
    except CalculationError:
        return compute(True)
