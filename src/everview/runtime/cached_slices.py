"""Slices from memory: a large relation that is not there yet is loaded in the background."""

from __future__ import annotations

from collections.abc import Sequence

from everview.program.steps import Fetch
from everview.runtime.arrow_types import conform
from everview.runtime.cache.probe_keys import ProbeKeys
from everview.runtime.file_slices import file_slice
from everview.runtime.interpreter import InProcess
from everview.runtime.lookup_keys import key_ranges, key_rows, key_values, skip_if_idle
from everview.runtime.protocol import Snapshot
from everview.runtime.report import DRIVER, MEMORY, RunReport


def fetch_in_process(
    steps: Sequence[Fetch], local: InProcess, snapshot: Snapshot, report: RunReport
) -> None:
    """Name slices: from memory, or from files as long as a relation is not there."""
    workspace = local.workspace
    for step in steps:
        if skip_if_idle(step, workspace, report):
            continue
        if not fetch_cached(step, local, snapshot, report):
            rows = file_slice(step, snapshot, workspace).read()
            workspace.register(step.result, rows)
            report.took(step, DRIVER, rows.num_rows)


def fetch_cached(step: Fetch, local: InProcess, snapshot: Snapshot, report: RunReport) -> bool:
    """Name the slice of a relation that is in memory, or takes little time to load.

    False if it is not: it does not fit, or it has been asked for and is there some time later.
    """
    cache, workspace = local.cache, local.workspace
    admitted = cache.admits(step.relation, snapshot)
    if not (admitted and local.loader.is_at_hand(step.relation, snapshot)):
        return False
    ranges = key_ranges(step, workspace)
    if ranges is not None and step.ranged_by is not None:
        rows = cache.lookup_ranges(step.relation, step.ranged_by, ranges, step.schema, snapshot)
    elif step.by is None:
        rows = conform(cache.rows(step.relation, step.schema, snapshot), step.schema)
    else:
        keys = ProbeKeys(key_values(step, workspace), key_rows(step, workspace))
        rows = cache.lookup(step.relation, step.by, keys, step.schema, snapshot)
    workspace.register(step.result, rows)
    report.took(step, MEMORY, rows.num_rows)
    return True
