"""The measured costs that the next estimate is made from, as manifests keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Measurement(NamedTuple):
    """How many milliseconds how many rows took."""

    rows: int
    milliseconds: float

    def estimate(self, rows: float, row_ms: float) -> float:
        """Milliseconds for another number of rows: in proportion for fewer.

        Each further row costs at most `row_ms`, because what few rows took is mostly a fixed cost.

        >>> Measurement(1000, 10.0).estimate(500, 1.0)
        5.0
        >>> Measurement(1000, 10.0).estimate(2000, 0.002)
        12.0
        """
        if rows < self.rows:
            return self.milliseconds * rows / self.rows
        rate = self.milliseconds / self.rows if self.rows else row_ms
        return self.milliseconds + (rows - self.rows) * min(rate, row_ms)


@dataclass(frozen=True, slots=True)
class Measurements:
    """The newest build of each relation, and the largest recent change of each set of tables.

    Each manifest carries them on to the next, so that only the newest manifest is read.
    """

    builds: Mapping[str, Measurement] = field(default_factory=dict)
    changes: Mapping[str, Measurement] = field(default_factory=dict)

    @classmethod
    def of(cls, note: Any) -> Measurements:
        """Those in a manifest's note."""
        raw = note.get("samples", {})
        builds, changes = (
            {name: Measurement(*each) for name, each in raw.get(part, {}).items()}
            for part in ("builds", "changes")
        )
        return cls(builds, changes)

    def after_builds(self, newer: Mapping[str, Measurement]) -> Measurements:
        """With newer builds."""
        return Measurements({**self.builds, **newer}, self.changes)

    def after_change(self, tables: str, newer: Measurement) -> Measurements:
        """With a newer change, unless it has less than half the rows of the one measured before."""
        before = self.changes.get(tables)
        if before is not None and newer.rows < before.rows / 2:
            return self
        return Measurements(self.builds, {**self.changes, tables: newer})

    def after_recompute(self, tables: str, expected: Measurement) -> Measurements:
        """With what maintaining was expected to take, made a little smaller.

        An expectation that keeps maintaining from being tried would never be corrected; one that
        decays is tried again some day.
        """
        decayed = Measurement(expected.rows, EXPECTATION_DECAY * expected.milliseconds)
        return self.after_change(tables, decayed)

    def to_note(self, relations: Mapping[str, object]) -> dict[str, Any]:
        """For the note of a manifest that holds `relations`."""
        return {
            "builds": {n: _rounded(each) for n, each in self.builds.items() if n in relations},
            "changes": {
                tables: _rounded(each)
                for tables, each in self.changes.items()
                if all(name in relations for name in tables.split(SEPARATOR))
            },
        }


EXPECTATION_DECAY = 0.9
SAMPLES = ("samples",)
"""The entry of a note that has measurements."""
SEPARATOR = "/"
"""Between the names of tables; no table has it in its name."""


def _rounded(measurement: Measurement) -> list[float]:
    return [measurement.rows, round(measurement.milliseconds, 2)]
