"""Where a slice is read: in memory, by the driver, or by one Spark job for the whole round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql import SparkSession

from everview.engines.spark import actions
from everview.engines.spark.fetch import SLICE_ROWS, fetch_by_job
from everview.program.steps import Fetch
from everview.runtime.cached_slices import fetch_cached
from everview.runtime.file_slices import FileSlice, file_slice
from everview.runtime.interpreter import InProcess
from everview.runtime.lookup_keys import skip_if_idle
from everview.runtime.protocol import Snapshot, TooLarge
from everview.runtime.report import DRIVER, JOB, RunReport
from everview.store.reader import TooManyRows

DRIVER_BYTES = 128 << 20
"""A slice for which less is to be read is read by the driver: a job costs more than that."""


class Slices:
    """The slices of one round after the other, for a program that runs in the driver."""

    def __init__(
        self,
        local: InProcess,
        session: Callable[[], SparkSession],
        driver_bytes: int,
    ) -> None:
        self._local, self._session, self._driver_bytes = local, session, driver_bytes

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, report: RunReport) -> None:
        """Name the slices of one round in the workspace.

        More rows than the driver should hold raise `TooLarge`.
        """
        workspace = self._local.workspace
        by_job: list[FileSlice] = []
        room = self._local.budget.fetched
        for step in steps:
            if skip_if_idle(step, workspace, report):
                continue
            if step.reads_by is not None and fetch_cached(step, self._local, snapshot, report):
                continue
            found = file_slice(step, snapshot, workspace)
            if found.parquet and found.bytes > self._driver_bytes:
                by_job.append(found)
            else:
                room -= self._by_driver(found, room, report)
        if by_job:
            self._by_job(by_job, room, report)

    def _by_driver(self, found: FileSlice, room: int, report: RunReport) -> int:
        """Read a slice; how many bytes it takes."""
        try:
            rows = found.read(SLICE_ROWS, room)
        except TooManyRows:
            raise TooLarge(found.step.result) from None
        self._local.workspace.register(found.step.result, rows)
        report.took(found.step, DRIVER, rows.num_rows)
        return int(rows.nbytes)

    def _by_job(self, slices: Sequence[FileSlice], room: int, report: RunReport) -> None:
        tables = fetch_by_job(slices, partial(actions.fetch_slices, self._session()), room)
        report.started_job()
        for found, rows in zip(slices, tables, strict=True):
            self._local.workspace.register(found.step.result, rows)
            report.took(found.step, JOB, rows.num_rows)
