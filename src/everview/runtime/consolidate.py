"""Consolidates weighted rows of a stored relation, without work where no two rows can be equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everview.expr.types import WEIGHT
from everview.runtime.arrow_types import conform
from everview.runtime.constraints.primary_key import all_differ
from everview.runtime.protocol import Stored
from everview.runtime.workspace import Workspace
from everview.store.sort_order import ascends, in_order, orderable


def consolidate(rows: pa.Table, stored: Stored, workspace: Workspace) -> pa.Table:
    """Equal rows added up, and those that cancel left out.

    Rows whose keys ascend strictly, or differ once they are sorted, are consolidated as they are.
    They come out in the sort order of the relation where sorting proved it.
    """
    by = orderable(rows.schema, stored.sort)
    if ascends(rows, by):
        return conform(rows, stored.schema)
    if not stored.rings:
        ordered = conform(in_order(rows, [*by, WEIGHT]), stored.schema)
        if all_differ(ordered, by):
            return ordered
    return workspace.consolidate(rows, stored.schema, stored.rings)


def repeated(rows: pa.Table) -> pa.Table:
    """Consolidated rows, each as often as its weight says, without the weight."""
    plain, weights = rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()
    if (weights == 1).all():
        return plain
    return plain.take(pa.array(np.repeat(np.arange(len(weights)), np.maximum(weights, 0))))
