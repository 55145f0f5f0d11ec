"""What reading cost before, as it is told to a user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from everview.program.steps import fetch_mark
from everview.runtime.report import DRIVER, JOB, LARGE, MEMORY, UNASKED

WAYS = {
    MEMORY: "from memory",
    DRIVER: "in the driver",
    JOB: "by a Spark job",
    LARGE: "by Spark SQL",
    UNASKED: "not asked for",
}
"""How a fetch was taken, in words."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a fetch brought when a transaction changed so many rows of tables, and how.

    Where Spark SQL fetches and computes at once, it is not known how many rows came.
    """

    rows: int | None
    changed: int
    way: str = ""

    @property
    def each(self) -> float | None:
        """Rows read for each changed row."""
        return None if self.rows is None else self.rows / max(self.changed, 1)

    @property
    def told(self) -> str:
        """The way it was taken, after a comma."""
        return f", {WAYS[self.way]}" if self.way in WAYS else ""


@dataclass(frozen=True, slots=True)
class Known:
    """What a store knows of its past: the last cost of each fetch, and the sizes of relations."""

    measured: Mapping[str, Measured] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    iterations: Mapping[str, int] = field(default_factory=dict)
    rows_at: Callable[[str], Mapping[int, int]] = lambda _: {}
    """How many rows a state of a loop holds of each iteration, counted when it is asked."""

    def of_reading(self, relation: str, by: str | None, kept: bool, key: tuple[str, ...]) -> str:
        """What one reading of a relation, or of a state that is `kept`, costs."""
        rows = self.sizes.get(relation)
        size = "" if rows is None else f" ({rows} rows stored)"
        what = f"state {relation}{size}" if kept else f"{relation}{size}"
        if by is None:
            return f"reads {what} whole, or not at all"
        found = self.measured.get(fetch_mark(relation, by))
        if found is not None and found.each is not None:
            return (
                f"reads {what} by {by}: {found.each:.1f} rows a changed row, last time{found.told}"
            )
        if found is not None:
            return (
                f"reads {what} by {by}: last time{found.told.removeprefix(',')}, rows not counted"
            )
        if key == (by,):
            return f"reads {what} by {by}: at most one row a key"
        return f"reads {what} by {by}: not measured yet"

    def of_all(self, reads: Collection[tuple[str, str | None]]) -> str:
        """The price of a view: what all its fetches brought, for each changed row."""
        if not reads:
            return "reads nothing but the change"
        found = [self.measured.get(fetch_mark(*each)) for each in reads]
        each = [one.each for one in found if one is not None and one.each is not None]
        if not each:
            return "what it reads has not been measured yet"
        return f"{sum(each):.1f} rows read a changed row, last time"

    def brought(self) -> dict[str, str]:
        """What each fetch brought the last time, in words."""
        return {
            mark: f"{'uncounted' if each.rows is None else each.rows} rows last time{each.told}"
            for mark, each in self.measured.items()
        }
