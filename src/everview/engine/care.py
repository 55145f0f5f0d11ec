"""When an error is the user's: only if the row it comes from is really there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from everview.errors import UserError

Answer = TypeVar("Answer")


class CalculationError(UserError):
    """A value that an engine cannot compute: why, and where, once that is known.

    `step` is the step of a program in which it failed, if it was in one.
    """

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(
            "E010",
            f"a value cannot be computed: {why}" + (f", in {where}" if where else ""),
            remedy="change the data, or guard the expression with CASE or a try_ function",
        )
        self.why = why
        self.where = where
        self.step: str | None = None


def not_computed(why: str) -> CalculationError:
    """The error for a value that cannot be computed."""
    return CalculationError(why)


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
