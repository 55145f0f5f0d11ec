"""A slice through the iterations of a loop holds what every iteration asks for, each row once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.types import Column
from everview.program.steps import Fetch, KeySet
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.recursion import slice_cache
from everview.runtime.recursion.slice_cache import SliceCache
from everview.runtime.report import RunReport
from everview.runtime.workspace import Workspace

VALUES: dict[str, tuple[Any, ...]] = {
    "int": (None, 0, 1, 2, 3),
    "string": (None, "", "a", "b"),
    "double": (None, 0.5, 1.5),
}
WIDER = {"int": "bigint"}
TURNED = 2**32
"""What is added to a number leaves the same int."""


class Stored:
    """Fetches rows of one relation, and knows the keys that it was asked for."""

    def __init__(self, workspace: Workspace, rows: list[tuple[Any, int]]) -> None:
        self.workspace, self.rows = workspace, rows
        self.asked: list[set[Any]] = []

    def fetch(self, steps: Any, snapshot: Any, outcome: Any) -> None:
        for step in steps:
            keys = self.workspace.nonempty(step.keys)
            columns = [
                self.workspace.column_values(key.relation, key.column) for key in keys if step.by
            ]
            self.asked.append({_turned(v) for column in columns for v in column.to_pylist()})
            whole = step.by is None and keys
            found = [row for row in self.rows if whole or row[0] in self.asked[-1]]
            schema = arrow_schema(step.schema)
            listed = ([k for k, _ in found], [n for _, n in found], [1] * len(found))
            made = [pa.array(each, field.type) for each, field in zip(listed, schema, strict=True)]
            self.workspace.register(step.result, pa.record_batch(made, schema=schema))


def _turned(value: Any) -> Any:
    return value % TURNED if isinstance(value, int) else value


def _relation(type_: str, values: list[Any]) -> pa.RecordBatch:
    schema = arrow_schema((Column("x", type_),))
    return pa.record_batch([pa.array(values, schema.field("x").type), [1] * len(values)], schema)


def _found(workspace: Workspace, fetch: Fetch) -> Counter[tuple[Any, int]]:
    rows = workspace.batch(fetch.result, fetch.schema)
    return Counter(zip(rows.column("k").to_pylist(), rows.column("n").to_pylist(), strict=True))


@pytest.mark.parametrize("kept", [0, 3, 1_000])
@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_every_key_that_is_asked_for_is_there_with_each_of_its_rows_once(type_, kept, data):
    values = st.sampled_from(VALUES[type_])
    fetch = Fetch(
        "slice",
        "t",
        (Column("k", type_), Column("n", "bigint")),
        "k",
        (KeySet("one", "x"), KeySet("other", "x")),
    )
    workspace = duckdb_workspace()
    stored = Stored(workspace, [(v, n) for n, v in enumerate(data.draw(st.lists(values)))])
    slice_ = SliceCache(fetch, workspace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slice_cache, "SLICE_MAX_ROWS", kept)
        for _ in range(data.draw(st.integers(1, 6))):
            one, other = (data.draw(st.lists(values, max_size=3)) for _ in range(2))
            turned = data.draw(st.booleans()) and type_ in WIDER
            far = [v if v is None or not turned else v + TURNED for v in other]
            workspace.register("one", _relation(type_, one))
            workspace.register("other", _relation(WIDER[type_] if turned else type_, far))
            slice_.fetch(stored, None, RunReport())  # type: ignore[arg-type]
            found = _found(workspace, fetch)
            assert not found - Counter(stored.rows)
            assert not Counter(row for row in stored.rows if row[0] in one + other) - found
    if kept == 1_000 and type_ != "double":
        assert max(Counter(key for keys in stored.asked for key in keys).values(), default=1) == 1
    workspace.sql.close()


def test_a_slice_that_has_become_large_is_fetched_again(monkeypatch):
    monkeypatch.setattr(slice_cache, "SLICE_MAX_ROWS", 2)
    fetch = Fetch(
        "slice", "t", (Column("k", "int"), Column("n", "bigint")), "k", (KeySet("one", "x"),)
    )
    workspace = duckdb_workspace()
    stored = Stored(workspace, [(n % 3, n) for n in range(6)])
    slice_ = SliceCache(fetch, workspace)
    found = []
    for key in (0, 1, 2, 1, 0, 0):
        workspace.register("one", _relation("int", [key]))
        slice_.fetch(stored, None, RunReport())  # type: ignore[arg-type]
        found.append({k for k, _ in _found(workspace, fetch)})
    assert found == [{0}, {0, 1}, {2}, {1, 2}, {0}, {0}]
    assert stored.asked == [{0}, {1}, {2}, {1}, {0}]
    workspace.sql.close()


def test_a_whole_relation_is_brought_once_it_is_asked_for_and_only_once():
    fetch = Fetch("slice", "t", (Column("k", "int"), Column("n", "bigint")), None, (KeySet("one"),))
    workspace = duckdb_workspace()
    stored = Stored(workspace, [(1, 0), (1, 1)])
    slice_ = SliceCache(fetch, workspace)
    sizes = []
    for values in ([], [7], [], [8]):
        workspace.register("one", _relation("int", values))
        slice_.fetch(stored, None, RunReport())  # type: ignore[arg-type]
        sizes.append(_found(workspace, fetch).total())
    assert sizes == [0, 2, 2, 2]
    assert len(stored.asked) == 2
    workspace.sql.close()
