"""What was measured before, as far as the next estimate needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """So many rows took so many milliseconds."""

    rows: int
    milliseconds: float

    def at(self, rows: float, each: float) -> float:
        """Milliseconds for another number of rows; beyond the sample at most `each` a row more.

        What a sample of few rows took is the cost of beginning rather than of rows.

        >>> Sample(1000, 10.0).at(500, 1.0), Sample(1000, 10.0).at(2000, 0.002)
        (5.0, 12.0)
        """
        if rows < self.rows:
            return self.milliseconds * rows / self.rows
        rate = self.milliseconds / self.rows if self.rows else each
        return self.milliseconds + (rows - self.rows) * min(rate, each)


@dataclass(frozen=True, slots=True)
class Samples:
    """The newest builds by relation, and the largest recent transaction for each set of tables.

    They are handed on from one manifest to the next, so that the newest is all that is read.
    """

    builds: Mapping[str, Sample] = field(default_factory=dict)
    changes: Mapping[str, Sample] = field(default_factory=dict)

    @classmethod
    def of(cls, note: Any) -> Samples:
        """Those that a manifest's note holds."""
        raw = note.get("samples", {})
        builds, changes = (
            {name: Sample(*each) for name, each in raw.get(part, {}).items()}
            for part in ("builds", "changes")
        )
        return cls(builds, changes)

    def after_building(self, fresh: Mapping[str, Sample]) -> Samples:
        """With newer builds."""
        return Samples({**self.builds, **fresh}, self.changes)

    def after_changing(self, tables: str, fresh: Sample) -> Samples:
        """With a newer transaction, unless it is small beside the one that is known."""
        known = self.changes.get(tables)
        if known is not None and fresh.rows < known.rows / 2:
            return self
        return Samples(self.builds, {**self.changes, tables: fresh})

    def after_not_changing(self, tables: str, expected: Sample) -> Samples:
        """With what maintaining was expected to take where views were built instead, less a tenth.

        An expectation that is never tried again would be believed for ever.
        """
        doubted = Sample(expected.rows, DOUBT * expected.milliseconds)
        return self.after_changing(tables, doubted)

    def kept(self, relations: Mapping[str, object]) -> dict[str, Any]:
        """For the note of a manifest that holds `relations`."""
        return {
            "builds": {n: _short(each) for n, each in self.builds.items() if n in relations},
            "changes": {
                tables: _short(each)
                for tables, each in self.changes.items()
                if all(name in relations for name in tables.split(SEPARATOR))
            },
        }


DOUBT = 0.9
SEPARATOR = "/"
"""No table has it in its name."""


def _short(sample: Sample) -> list[float]:
    return [sample.rows, round(sample.milliseconds, 2)]
