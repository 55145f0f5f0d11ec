"""One store in which sets of views take turns, each over the same tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.ours import Cost, Ours, copied
from bench.prepared import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MUCH = 0.05
"""Tables of which a larger part was changed are not put back, but loaded anew."""


@dataclass
class Turn:
    """A set of views in the store, and the transactions it has gone through."""

    ours: Ours
    plan: Plan
    applied: list[int] = field(default_factory=list)
    rows_changed: int = 0

    def apply(self, *numbers: int) -> list[Cost]:
        """Commit some of the transactions, one right after the other, and tell their costs.

        They are in memory before the first begins, and nothing is looked at until the last ends.
        """
        refreshes = [self.plan.load(number) for number in numbers]
        costs = [*map(self.ours.cost, [*map(self.ours.commit, refreshes)])]
        self.applied += numbers
        self.rows_changed += sum(cost.rows_changed for cost in costs)
        return costs


class Turns:
    """A copy of a store with all tables, open from the first turn on."""

    def __init__(
        self, template: Path, folder: Path, engine: str, session: SparkSession | None, plan: Plan
    ) -> None:
        self._template, self._folder, self._plan = template, folder, plan
        self._engine, self._session = engine, session
        self._ours: Ours | None = None

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """The tables without views, which are put back afterwards."""
        if self._ours is None:
            copied(self._template, self._folder)
            self._ours = Ours(self._folder, self._engine, self._session)
        turn = Turn(self._ours, self._plan)
        try:
            yield turn
        finally:
            self._put_back(turn)

    def close(self) -> None:
        """Remove the copy."""
        if self._ours is not None:
            self._ours.close()
            shutil.rmtree(self._folder)
            self._ours = None

    def _put_back(self, turn: Turn) -> None:
        if turn.rows_changed > MUCH * turn.ours.rows:
            self.close()
        else:
            turn.ours.put_back(self._plan.load(number) for number in reversed(turn.applied))
