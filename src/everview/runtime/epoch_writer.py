"""How a run writes segments: small ones in one file at its end, large ones in the background."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType

import pyarrow as pa

from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.protocol import Part, Snapshot, Staged
from everview.runtime.report import RunReport
from everview.store.change_file import fits_change_file
from everview.store.manifest import Segment, joined

ADOPTED_MIN_ROWS_PER_FILE = 10_000
"""Files of fewer rows on average are written again, as fewer."""


class RowCollector:
    """Keeps the rows of some relations instead of writing them: for a run that only looks."""

    def __init__(self, wanted: Collection[str], report: RunReport) -> None:
        self.report = report
        self.rows: dict[str, pa.Table] = {}
        self._wanted = wanted

    def write(self, name: str, rows: pa.Table) -> None:
        """Weighted rows of a relation; what could not be written is refused."""
        must_be_in_calendar(rows)
        if name in self._wanted:
            self.rows[name] = rows

    def write_change(self, name: str, rows: pa.Table, _parts: Sequence[Part]) -> None:
        """The consolidated rows of a table's change."""
        self.write(name, rows)


class EpochWriter:
    """Puts the segments into the report when it ends; they count when the epoch commits."""

    def __init__(self, snapshot: Snapshot, epoch: int, report: RunReport) -> None:
        self.report = report
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
        self.report.written[name] = rows
        write = self._snapshot.store.write_segment
        self._writing[name] = _pool().submit(write, name, self._epoch, rows, sort)

    def write_change(self, name: str, rows: pa.Table, parts: Sequence[Part]) -> None:
        """The consolidated rows of a table's change; what executors wrote of it is not repeated.

        As many rows as they wrote means that no two were equal and none cancelled.
        """
        written = [part.segment for part in parts if isinstance(part, Staged)]
        count, files = sum(each.rows for each in written), sum(len(each.files) for each in written)
        adopted = len(written) == len(parts) and count == rows.num_rows
        if adopted and count >= ADOPTED_MIN_ROWS_PER_FILE * files and not fits_change_file(rows):
            self.report.segments[name] = joined(written)
            self.report.written[name] = rows
        else:
            self.write(name, rows)

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
        with self.report.clock.phase("write"):
            written = self._snapshot.store.write_changes(self._epoch, self._small)
            self.report.segments |= written
        for name, segment in self._writing.items():
            with self.report.clock.phase("write"), self.report.step(name):
                self.report.segments[name] = segment.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads are kept: to start one takes longer than to write some thousand rows."""
    return ThreadPoolExecutor(os.cpu_count(), "everview-writer")
