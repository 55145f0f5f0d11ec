"""What a run of a program wrote, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from everview.program.steps import Fetch, fetch_mark
from everview.runtime.workspace import Evaluator
from everview.store.manifest import Segment

MEMORY, DRIVER, JOB, LARGE, UNASKED = "memory", "driver", "job", "large", "unasked"
"""The ways of a fetch: from memory, files read by the driver or by a Spark job, Spark SQL, none."""


SMALL, GENERATED = "small", "generated"
"""The gears of a run in this process: in the second, generated code computed every step."""


@dataclass(slots=True)
class Timed:
    """Adds the milliseconds of a block to those under a name, also when it fails."""

    spent: dict[str, float]
    name: str
    began: float = 0.0

    def __enter__(self) -> None:
        self.began = perf_counter()

    def __exit__(self, *_: object) -> None:
        passed = (perf_counter() - self.began) * 1000
        self.spent[self.name] = self.spent.get(self.name, 0.0) + passed


class Clock:
    """Milliseconds by phase, and since it was made."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._began = perf_counter()

    @property
    def total(self) -> float:
        """Milliseconds since the clock was made."""
        return (perf_counter() - self._began) * 1000

    def phase(self, name: str) -> Timed:
        """Count the time of a block, also when it fails."""
        return Timed(self.phases, name)

    def reattribute(self, name: str, milliseconds: float, within: str) -> None:
        """Count time for a phase of its own, and not for the one it was spent in."""
        if milliseconds:
            self.add(name, milliseconds)
            self.add(within, -milliseconds)

    def add(self, name: str, milliseconds: float) -> None:
        """Count more time for a phase."""
        self.phases[name] = self.phases.get(name, 0.0) + milliseconds


@dataclass(slots=True)
class RunReport:
    """What a run wrote, and what it cost.

    `steps` has the milliseconds of each result that was computed, and of each relation that was
    written from one; `ways` says how each fetch was read. Where Spark SQL fetches, computes and
    writes at once, the time is that of writing, and how many rows were fetched is not known.
    `written` holds the rows of large segments that are in memory, and `iterations` how many
    iterations each loop went through.
    """

    segments: dict[str, Segment] = field(default_factory=dict)
    fetched: dict[str, int] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    iterations: dict[str, int] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)
    gear: str = SMALL
    jobs: int | None = 0
    steps: dict[str, float] = field(default_factory=dict)
    evaluators: set[Evaluator] = field(default_factory=set)
    clock: Clock = field(default_factory=Clock)

    def took(self, step: Fetch, way: str, rows: int | None = None) -> None:
        """Remember how a fetch was taken, and how many rows it brought if that is known."""
        mark = fetch_mark(step.relation, step.reads_by)
        self.ways[mark] = way
        if rows is not None:
            self.fetched[mark] = self.fetched.get(mark, 0) + rows

    def step(self, name: str) -> Timed:
        """Count the time of a block for a result, or for a relation that is written."""
        return Timed(self.steps, name)

    def computed_by(self, evaluator: Evaluator) -> None:
        """Remember who computed a step: each that is left to Spark is a job."""
        if evaluator is not Evaluator.NONE:
            self.evaluators.add(evaluator)
            self.gear = GENERATED if self.evaluators == {Evaluator.GENERATED} else SMALL
        if evaluator is Evaluator.SPARK:
            self.started_job()

    def started_job(self) -> None:
        """Count a job of Spark."""
        self.jobs = (self.jobs or 0) + 1
