"""How a run writes segments: small ones in one file at its end, large ones in the background."""

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


class EpochWriter:
    """Puts the segments into the outcome when it ends; they count when the epoch commits."""

    def __init__(self, snapshot: Snapshot, epoch: int, outcome: Outcome) -> None:
        self.outcome = outcome
        self._snapshot = snapshot
        self._epoch = epoch
        self._small: dict[str, tuple[pa.Table, Sequence[str]]] = {}
        self._writing: dict[str, Future[Segment]] = {}

    def write(self, name: str, rows: pa.Table) -> None:
        """Weighted rows as a segment of a relation."""
        stored = self._snapshot.stored[name]
        must_be_in_calendar(rows)
        sort = stored.sort
        if fits_change_file(rows):
            self._small[name] = rows, sort
            return
        self.outcome.written[name] = rows
        write = self._snapshot.store.write_segment
        self._writing[name] = _pool().submit(write, name, self._epoch, rows, sort)

    def __enter__(self) -> EpochWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the small segments and wait for the large ones; after an error, cancel those."""
        try:
            if kind is None:
                self._finish()
        finally:
            for segment in self._writing.values():
                segment.cancel()
            wait(self._writing.values())

    def _finish(self) -> None:
        with self.outcome.clock.phase("write"):
            written = self._snapshot.store.write_changes(self._epoch, self._small)
            self.outcome.segments |= written
        for name, segment in self._writing.items():
            with self.outcome.clock.phase("write"), self.outcome.step(name):
                self.outcome.segments[name] = segment.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to start one takes longer than to write some thousand rows."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-writer")
