"""The keys that a fetch looks up, taken from the relations that ask for them."""

from __future__ import annotations

import pyarrow as pa

from everview.program.steps import Fetch
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.report import UNASKED, RunReport
from everview.runtime.workspace import Workspace


def skip_if_idle(step: Fetch, workspace: Workspace, report: RunReport) -> bool:
    """Whether no row asks for what a fetch would bring; then its slice is empty."""
    idle = bool(step.keys) and not workspace.nonempty(step.keys)
    if idle:
        workspace.register_empty(step.result, step.schema)
        if step.by is not None:
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
