"""The keys that a fetch looks up, taken from the relations that ask for them."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.program.steps import Fetch, KeyRange, Limit
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.report import UNASKED, RunReport
from everview.runtime.workspace import Workspace
from everview.store.ranges import LEAST, MOST, Ints, Ranges, as_integers, moved
from everview.store.sort_order import single_chunk


def skip_if_idle(step: Fetch, workspace: Workspace, report: RunReport) -> bool:
    """Whether no row asks for what a fetch would bring; then its slice is empty."""
    idle = bool(step.keys) and not workspace.nonempty(step.keys)
    if idle:
        workspace.register_empty(step.result, step.schema)
        if step.reads_by is not None:
            report.took(step, UNASKED, 0)
    return idle


def key_values(step: Fetch, workspace: Workspace) -> pa.ChunkedArray:
    """The values that a fetch is looked up by, in the type of the column that it looks at.

    One outside the column's range turns into another: that brings rows too many, never too few.
    """
    assert step.by is not None
    type_ = arrow_schema(step.schema).field(step.by).type
    keys = workspace.nonempty(step.keys)
    columns = [workspace.column_values(key.relation, key.column) for key in keys]
    cast = [each if each.type == type_ else each.cast(type_, safe=False) for each in columns]
    if len(cast) == 1:
        return cast[0]
    return pa.chunked_array([chunk for each in cast for chunk in each.chunks], type_)


def distinct_key_values(step: Fetch, workspace: Workspace) -> pa.ChunkedArray:
    """As `key_values`, each once."""
    return pa.chunked_array([key_values(step, workspace).unique()])


def key_ranges(step: Fetch, workspace: Workspace) -> Ranges | None:
    """The ranges that a fetch is looked up by, None if it is not."""
    if step.ranged_by is None:
        return None
    keys = workspace.nonempty(step.keys)
    ends = [_ends(key.relation, key.range, workspace) for key in keys if key.range is not None]
    low, high = (np.concatenate(each) for each in zip(*ends, strict=True))
    return Ranges(low, high)


def _ends(relation: str, asked: KeyRange, workspace: Workspace) -> tuple[Ints, Ints]:
    """The ends of the range that each row asks for; one with a NULL asks for none.

    Of rows that are not at hand one by one, a range around those of all of them.
    """
    limits = [each for each in (asked.low, asked.high) if each is not None]
    names = [each.column for each in limits]
    columns = workspace.arrow_columns(relation, names)
    if columns is None:
        ends = [_outermost(workspace, relation, each, each is asked.high) for each in limits]
    else:
        chunks = [
            pa.chunked_array([each]) if isinstance(each, pa.Array) else each for each in columns
        ]
        there = reduce(pc.and_, (each.is_valid() for each in chunks))
        ends = [
            moved(as_integers(single_chunk(each.filter(there))), limit.plus)
            for each, limit in zip(chunks, limits, strict=True)
        ]
    low = ends[0] if asked.low is not None else np.full_like(ends[0], LEAST)
    high = ends[-1] if asked.high is not None else np.full_like(ends[0], MOST)
    return low, high


def _outermost(workspace: Workspace, relation: str, limit: Limit, is_high: bool) -> Ints:
    values = workspace.column_values(relation, limit.column).drop_null()
    known = moved(as_integers(single_chunk(values)), limit.plus)
    if not len(known):  # none of them asks for anything
        return np.array([LEAST if is_high else MOST])
    return np.array([known.max() if is_high else known.min()])


def key_rows(step: Fetch, workspace: Workspace) -> pa.Table | None:
    """The keys by all their columns, None if a fetch is looked up by one column alone.

    Where several relations ask, all of them have to ask by the same columns.
    """
    keys = workspace.nonempty(step.keys)
    others = {tuple(name for name, _ in key.also) for key in keys}
    if step.by is None or len(others) != 1 or others == {()}:
        return None
    names = (step.by, *others.pop())
    asking = [(key.column, *(name for _, name in key.also)) for key in keys]
    parts = list(map(workspace.arrow_columns, (key.relation for key in keys), asking))
    tables = [pa.table(part, names=names) for part in parts if part is not None]
    same = len(tables) == len(parts) and all(each.schema == tables[0].schema for each in tables)
    return pa.concat_tables(tables) if same else None
