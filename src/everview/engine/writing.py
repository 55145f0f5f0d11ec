"""Segments that a run writes: few rows at once, many while it goes on computing."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import pyarrow as pa

from everview.engine.outcome import Outcome
from everview.engine.protocol import Snapshot
from everview.store.manifest import Segment

MANY = 20_000
"""To write so many rows takes longer than to begin a thread."""


class Writer:
    """What a run wrote is in its outcome when the writer ends; it counts when the epoch commits."""

    def __init__(self, snapshot: Snapshot, epoch: int, outcome: Outcome) -> None:
        self.outcome = outcome
        self._snapshot = snapshot
        self._epoch = epoch
        self._pool: ThreadPoolExecutor | None = None
        self._begun: dict[str, Future[Segment]] = {}

    def write(self, name: str, rows: pa.Table) -> None:
        """Weighted rows as a segment of a relation."""
        self.outcome.written[name] = rows
        if rows.num_rows < MANY:
            self.outcome.segments[name] = self._written(name, rows)
            return
        self._pool = self._pool or ThreadPoolExecutor(os.cpu_count())
        self._begun[name] = self._pool.submit(self._written, name, rows)

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
        try:
            if kind is None:
                self._wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)

    def _wait(self) -> None:
        for name, begun in self._begun.items():
            with self.outcome.clock.phase("write"), self.outcome.step(name):
                self.outcome.segments[name] = begun.result()
