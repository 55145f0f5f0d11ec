"""Segments that a run writes: few rows at once, many while it goes on computing."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType

import pyarrow as pa

from everview.engine.outcome import Outcome
from everview.engine.protocol import Snapshot
from everview.store.manifest import Segment

MANY = 2_000
"""To write so many rows takes longer than to hand them to a thread."""


class Writer:
    """What a run wrote is in its outcome when the writer ends; it counts when the epoch commits."""

    def __init__(self, snapshot: Snapshot, epoch: int, outcome: Outcome) -> None:
        self.outcome = outcome
        self._snapshot = snapshot
        self._epoch = epoch
        self._begun: dict[str, Future[Segment]] = {}

    def write(self, name: str, rows: pa.Table) -> None:
        """Weighted rows as a segment of a relation."""
        self.outcome.written[name] = rows
        if rows.num_rows < MANY:
            self.outcome.segments[name] = self._written(name, rows)
            return
        self._begun[name] = _pool().submit(self._written, name, rows)

    def _written(self, name: str, rows: pa.Table) -> Segment:
        sort = self._snapshot.stored[name].sort
        return self._snapshot.store.write_segment(name, self._epoch, rows, sort)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all that was begun; after an error, for nobody to write any more."""
        if kind is None:
            for name, begun in self._begun.items():
                with self.outcome.clock.phase("write"), self.outcome.step(name):
                    self.outcome.segments[name] = begun.result()
            return
        for begun in self._begun.values():
            begun.cancel()
        wait(self._begun.values())


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to begin one takes longer than to write some thousand rows."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-writer")
