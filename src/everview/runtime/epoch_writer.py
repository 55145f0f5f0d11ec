"""Segments that a run writes: few rows together when it ends, many while it goes on computing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType

import pyarrow as pa

from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.protocol import Snapshot
from everview.runtime.report import Outcome
from everview.store.change_file import fits_change_file
from everview.store.manifest import Segment


class Writer:
    """What a run wrote is in its outcome when the writer ends; it counts when the epoch commits."""

    def __init__(self, snapshot: Snapshot, epoch: int, outcome: Outcome) -> None:
        self.outcome = outcome
        self._snapshot = snapshot
        self._epoch = epoch
        self._few: dict[str, tuple[pa.Table, Sequence[str]]] = {}
        self._begun: dict[str, Future[Segment]] = {}

    def write(self, name: str, rows: pa.Table) -> None:
        """Weighted rows as a segment of a relation."""
        stored = self._snapshot.stored[name]
        must_be_in_calendar(rows)
        sort = stored.sort
        if fits_change_file(rows):
            self._few[name] = rows, sort
            return
        self.outcome.written[name] = rows
        write = self._snapshot.store.write_segment
        self._begun[name] = _pool().submit(write, name, self._epoch, rows, sort)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is few, and wait for what was begun; after an error, for nobody to write."""
        try:
            if kind is None:
                self._finish()
        finally:
            for begun in self._begun.values():
                begun.cancel()
            wait(self._begun.values())

    def _finish(self) -> None:
        with self.outcome.clock.phase("write"):
            written = self._snapshot.store.write_changes(self._epoch, self._few)
            self.outcome.segments |= written
        for name, begun in self._begun.items():
            with self.outcome.clock.phase("write"), self.outcome.step(name):
                self.outcome.segments[name] = begun.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to begin one takes longer than to write some thousand rows."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-writer")
