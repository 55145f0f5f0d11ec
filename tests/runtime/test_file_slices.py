"""Slices from files: the driver and the tasks of a job read the same rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.engines.spark import fetch
from everview.engines.spark.fetch import fetch_by_job, slice_reader, tasks
from everview.expr.types import Column
from everview.program.steps import Fetch, KeySet
from everview.runtime.file_slices import FileSlice, file_slice
from everview.runtime.protocol import Snapshot, Stored, TooLarge
from everview.store import change_file, group_reader, layouts, segments
from everview.store.reader import TooManyRows
from everview.store.store import Store

SCHEMA = (Column("k", "bigint"), Column("g", "int"), Column("s", "string"), Column("f", "double"))
COUNT = 400


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """A relation with a base of several files, a change with its own, and a small change."""
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 9)
    monkeypatch.setattr(group_reader, "CHUNK_ROWS", 30)
    store, chance = Store.create_or_open(tmp_path / "shop"), Random(2)
    base = store.write_segment("t", 1, rows(COUNT, chance, 1), ("k", "g"), kind="base")
    store.commit(store.latest().advance(epoch=1, created="", bases={"t": base}))
    change = store.write_segment("t", 2, rows(50, chance, -1), ("k", "g"))
    store.commit(store.latest().advance(epoch=2, created="", changes={"t": change}))
    few = store.write_changes(3, {"t": (rows(20, chance, 1), ("k", "g"))})
    store.commit(store.latest().advance(epoch=3, created="", changes=few))
    assert change_file.is_piece(store.latest().relations["t"].segments[-1])
    return Snapshot(store, store.latest(), {"t": Stored(SCHEMA, ("k", "g"))})


def rows(count: int, chance: Random, weight: int) -> pa.Table:
    def some(values: list[Any]) -> list[Any]:
        return [chance.choice([None, *values]) for _ in range(count)]

    return pa.table(
        {
            "k": pa.array(some(list(range(-30, 90))), pa.int64()),
            "g": pa.array(some([1, 2, 3]), pa.int32()),
            "s": some(["a", "b", "ü"]),
            "f": some([0.0, -0.0, float("nan"), 1.5]),
            "_w": [weight] * count,
        }
    )


def asked(snapshot: Snapshot, by: str | None, keys: pa.Table, also: tuple[Any, ...]) -> FileSlice:
    workspace = duckdb_workspace()
    workspace.register("keys", keys)
    key_set = KeySet("keys", keys.column_names[0], also)
    return file_slice(Fetch("slice", "t", SCHEMA, by, (key_set,)), snapshot, workspace)


def every(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    relation = snapshot.relation("t")
    table = snapshot.store.read_files(relation.files)
    return [tuple(row.values()) for row in table.to_pylist()]


def in_any_order(found: Any) -> list[str]:
    return sorted(map(repr, found))


KEYS = {
    "one column": (pa.table({"x": [3, 3, -29, 1000]}), ()),
    "null": (pa.table({"x": pa.array([None, 5], pa.int64())}), ()),
    "another type": (pa.table({"x": pa.array([3, 7], pa.int16())}), ()),
    "two columns": (
        pa.table({"x": [3, 4, None, 7], "y": pa.array([1, None, None, 2], pa.int64())}),
        (("g", "y"),),
    ),
    "three columns": (
        pa.table({"x": [3, 4, 5, None], "y": [1, 2, 3, None], "z": ["a", "ü", None, "b"]}),
        (("g", "y"), ("s", "z")),
    ),
    "a float": (pa.table({"x": [3, 4], "y": [0.0, 1.5]}), (("f", "y"),)),
    "none of them": (pa.table({"x": [91, 92, 1000]}), ()),
}


@pytest.mark.parametrize("name", KEYS)
def test_driver_and_tasks_read_the_rows_that_are_asked_for(
    snapshot: Snapshot, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, also = KEYS[name]
    found = asked(snapshot, "k", keys, also)
    columns = [0, *({"g": 1, "s": 2}[stored] for stored, _ in also if stored != "f")]
    wanted = {tuple(row.values())[: len(columns)] for row in keys.to_pylist()}
    expected = [row for row in every(snapshot) if tuple(row[at] for at in columns) in wanted]
    monkeypatch.setattr(fetch, "TASK_BYTES", 300)
    for table in (found.read(), *fetch_by_job([found, found], run_here, 1 << 20)):
        assert in_any_order(tuple(r.values()) for r in table.to_pylist()) == in_any_order(expected)


def run_here(count: int, read: Any, _: int) -> pa.Table:
    answer = pa.schema([("slice", pa.int32()), ("rows", pa.binary())])
    batches = [
        batch
        for number in range(count)
        for batch in read(iter([pa.record_batch({"id": [number]})]))
    ]
    return pa.Table.from_batches(batches, answer)


def test_a_float_and_the_whole_relation_are_not_searched(snapshot: Snapshot) -> None:
    whole = asked(snapshot, None, pa.table({"x": [1]}), ())
    assert whole.read().num_rows == COUNT + 70
    by_float = asked(snapshot, "f", pa.table({"x": [0.0]}), ())
    assert by_float.read().num_rows == COUNT + 70


def test_tasks_have_about_the_same_to_read_and_leave_nothing_out(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = asked(snapshot, None, pa.table({"x": [1]}), ())
    few = asked(snapshot, "k", pa.table({"x": [1]}), ())
    monkeypatch.setattr(fetch, "TASK_BYTES", whole.bytes // 5)
    planned = tasks([whole, few])
    assert 4 <= len(planned) <= 7
    told = [
        (number, path, group) for task in planned for number, path, _, gs in task for group in gs
    ]
    wanted = [
        (number, snapshot.store.absolute(found.file.path), group)
        for number, each in enumerate((whole, few))
        for found in each.parquet
        for group in found.groups
    ]
    assert sorted(told) == sorted(wanted)
    monkeypatch.setattr(fetch, "TASK_BYTES", 1 << 30)
    assert len(tasks([whole, few])) == 1


def test_too_many_rows_for_the_driver_are_told(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = asked(snapshot, None, pa.table({"x": [1]}), ())
    for task_bytes in (300, 1 << 30):
        monkeypatch.setattr(fetch, "TASK_BYTES", task_bytes)
        monkeypatch.setattr(fetch, "SLICE_ROWS", COUNT + 50)
        assert fetch_by_job([whole], run_here, 1 << 20)[0].num_rows == COUNT + 70
        monkeypatch.setattr(fetch, "SLICE_ROWS", COUNT + 49)
        with pytest.raises(TooLarge):
            fetch_by_job([whole], run_here, 1 << 20)
        monkeypatch.setattr(fetch, "SLICE_ROWS", COUNT + 50)
        with pytest.raises(TooLarge):
            fetch_by_job([whole, whole], run_here, whole.read().nbytes)
        with pytest.raises(TooManyRows):
            whole.read(most_bytes=whole.read().nbytes // 2)


def test_rows_that_threads_read_are_all_counted(snapshot: Snapshot) -> None:
    whole = asked(snapshot, None, pa.table({"x": [1]}), ())
    parts = sum(len(found.chunks) for found in whole.parquet)
    most, before = whole.read().nbytes - whole.small_rows().nbytes - 1, sys.getswitchinterval()
    assert parts > 1
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            with pytest.raises(TooManyRows):
                whole.read(most_bytes=most)
    finally:
        sys.setswitchinterval(before)


def test_what_tasks_run_needs_nothing_of_ours(snapshot: Snapshot, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    found = asked(snapshot, "k", pa.table({"x": [3, 4]}), ())
    for module in (group_reader, layouts):
        cloudpickle.register_pickle_by_value(module)
    try:
        sent = cloudpickle.dumps(slice_reader([found], tasks([found]), 1000, 1 << 20))
    finally:
        for module in (group_reader, layouts):
            cloudpickle.unregister_pickle_by_value(module)
    (tmp_path / "sent").write_bytes(sent)
    code = (
        "import pickle, sys, pyarrow as pa\n"
        f"read = pickle.loads(open({str(tmp_path / 'sent')!r}, 'rb').read())\n"
        "rows = [b.num_rows for b in read(iter([pa.record_batch({'id': [0]})]))]\n"
        "print(rows, [m for m in sys.modules if m.startswith('everview')])"
    )
    shown = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert shown.stdout.strip() == "[1] []", shown.stderr
