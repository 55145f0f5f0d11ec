"""Segments have no effect until a manifest names them, and then all of them have it at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from everview.errors import UserError
from everview.store import segments
from everview.store.manifest import Manifest, Relation
from everview.store.retention import retire
from everview.store.store import Store
from store.worlds import SCHEMA, add, added_up, read_segments, rows, value


def test_a_new_store_is_at_the_empty_epoch_zero(store: Store) -> None:
    assert store.epochs() == [0]
    assert store.latest() == Manifest(0, None, "2026-01-01T00:00:00Z")


def test_what_was_committed_is_there_after_reopening(store: Store) -> None:
    committed = add(store, rows((2, "b", 1), (1, "a", 1)))
    again = Store.open_existing(store.folder.root)
    assert again.latest() == committed
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "b"): 1}
    assert again.verify(committed) == {}


@pytest.mark.parametrize("spell", [str, Path, lambda path: f"file://{path}"])
def test_a_place_may_be_a_path_or_a_uri(store: Store, spell: type) -> None:
    assert Store.open_existing(spell(store.folder.root)).epochs() == [0]


def test_a_store_may_lie_below_a_filesystem_that_is_given(tmp_path: Path) -> None:
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    store = Store.create_or_open("shop", filesystem=below)
    add(store, rows((1, "a", 1)))
    assert Store.open_existing(tmp_path / "shop").latest().epoch == 1


def test_every_epoch_stays_readable(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    add(store, rows((1, "a", -1), (2, "b", 3)))
    assert [value(store, store.read(epoch)) for epoch in store.epochs()] == [
        {},
        {(1, "a"): 1},
        {(2, "b"): 3},
    ]


def test_an_epoch_that_is_not_there_is_refused_with_the_range(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    with pytest.raises(UserError, match=r"S006.*epoch 7.*epochs 0 to 1"):
        store.read(7)


def test_a_reader_notices_what_another_process_committed(store: Store) -> None:
    reader = Store.open_existing(store.folder.root)
    assert reader.latest().epoch == 0
    for _ in range(3):
        add(store, rows((1, "a", 1)))
    assert reader.latest() == store.latest()


def test_a_reader_notices_even_when_all_it_knew_was_removed(store: Store) -> None:
    reader = Store.open_existing(store.folder.root)
    reader.latest()
    for _ in range(3):
        add(store, rows((1, "a", 1)))
        retire(store, keep_epochs=1)
    assert reader.latest().epoch == 3


def test_rows_are_sorted_by_key_with_nulls_first(store: Store) -> None:
    table = rows((2, "b", 1), (None, "n", 1), (1, "z", 1), (1, "a", 1))
    segment = store.write_segment("orders", 1, table, ("k", "v"))
    (file,) = segment.files
    read = pq.read_table(store.absolute(file.path))
    assert read["k"].to_pylist() == [None, 1, 1, 2]
    assert read["v"].to_pylist() == ["n", "a", "z", "b"]
    assert (file.rows, file.low, file.high, file.has_null) == (4, ("int", 1), ("int", 2), True)


def test_many_rows_are_files_that_follow_each_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "PART_MIN_ROWS", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    given = rows(*((key, "x", 1) for key in (5, 3, None, 1, 4, 2, 9)))
    segment = store.write_segment("orders", 1, given, ("k",))
    files = [(file.rows, file.low, file.high, file.has_null) for file in segment.files]
    assert files == [
        (3, ("int", 1), ("int", 2), True),
        (3, ("int", 3), ("int", 5), False),
        (1, ("int", 9), ("int", 9), False),
    ]
    store.commit(store.latest().advance(epoch=1, created="t", changes={"orders": segment}))
    assert value(store, store.latest()) == added_up(given)
    found = read_segments(store, store.latest().relations["orders"], schema=SCHEMA)
    assert found["k"].to_pylist() == [None, 1, 2, 3, 4, 5, 9]


def test_keys_that_have_no_order_are_written_all_the_same(store: Store) -> None:
    table = pa.table({"k": [[2], [1]], "s": [{"a": 1}, {"a": 0}], "_w": [1, 1]})
    segment = store.write_segment("nested", 1, table, ("k", "s"))
    assert segment.files[0].low is None


def test_nothing_to_write_makes_no_file(store: Store) -> None:
    assert store.write_segment("orders", 1, rows(), ("k",)).files == ()
    assert store.folder.names("segments") == []


@pytest.mark.parametrize("name", ["../up", "a=b", "_hidden", ".dot", "Größe", "a/b", "x" * 300, ""])
def test_any_name_of_a_relation_is_a_safe_folder(store: Store, name: str) -> None:
    (file,) = store.write_segment(name, 1, rows((1, "a", 1)), ("k",)).files
    top, folder, _ = file.path.split("/")
    assert top == "segments"
    assert folder[0] not in "._"
    assert set("=%./").isdisjoint(folder)
    assert value(store, add(store, rows((1, "a", 1)), name), name) == {(1, "a"): 1}


def test_files_that_executors_wrote_become_a_segment(store: Store) -> None:
    directory = store.segment_directory("orders", 1)
    os.makedirs(store.absolute(directory))
    for name, table in (
        ("part-0", rows((1, "a", 1), (2, "b", 1))),
        ("part-1", rows()),
        ("part-2", rows((9, "z", 1))),
    ):
        pq.write_table(table, store.absolute(f"{directory}/{name}.snappy.parquet"))
    Path(store.absolute(f"{directory}/_SUCCESS")).touch()
    Path(store.absolute(f"{directory}/.part-0.parquet.crc")).write_bytes(b"crc")
    segment = store.adopt_segment("orders", 1, directory, ("k",), kind="base")
    assert [(file.rows, file.low, file.high) for file in segment.files] == [
        (2, ("int", 1), ("int", 2)),
        (1, ("int", 9), ("int", 9)),
    ]
    store.commit(store.latest().advance(epoch=1, created="t", bases={"orders": segment}))
    assert store.verify(store.latest()) == {}
    assert value(store, store.latest()) == {(1, "a"): 1, (2, "b"): 1, (9, "z"): 1}


def test_reading_by_key_gives_the_rows_of_those_keys(store: Store) -> None:
    add(store, rows((1, "a", 1), (None, "n", 1)))
    relation = add(store, rows((1, "a", -1), (5, "e", 1))).relations["orders"]
    read = read_segments(store, relation, columns=["v", "_w"], key="k", keys=pa.array([1, None]))
    assert sorted(read.to_pylist(), key=str) == [
        {"v": "a", "_w": -1},
        {"v": "a", "_w": 1},
        {"v": "n", "_w": 1},
    ]
    none = read_segments(store, relation, key="k", keys=pa.array([77]), schema=SCHEMA)
    assert none.schema == SCHEMA
    assert none.num_rows == 0


def test_the_feed_sums_to_the_difference_of_two_epochs(store: Store) -> None:
    for at in range(1, 5):
        add(store, rows((at, "a", 1), (at - 1, "a", -1)))
    for after in range(5):
        told = [file for segment in store.feed("orders", after) for file in segment.files]
        before = store.read(after).relations.get("orders", Relation("orders", ())).files
        whole = store.read_files([*before, *told], schema=SCHEMA)
        assert added_up(whole) == value(store, store.latest())
    assert [segment.epoch for segment in store.feed("orders", 1, upto=3)] == [2, 3]


def test_a_second_writer_of_an_epoch_loses(store: Store) -> None:
    other = Store.open_existing(store.folder.root)
    mine = store.latest().advance(epoch=1, created="t", note={"by": "me"})
    theirs = other.latest().advance(epoch=1, created="t", note={"by": "them"})
    store.commit(mine)
    with pytest.raises(UserError) as caught:
        other.commit(theirs)
    assert caught.value.code == "S007"
    assert "epoch 1" in caught.value.problem
    assert other.latest() == mine


def test_a_writer_left_far_behind_cannot_fill_a_gap(store: Store) -> None:
    behind = Store.open_existing(store.folder.root)
    late = behind.latest().advance(epoch=1, created="late")
    for _ in range(3):
        add(store, rows((1, "a", 1)))
        retire(store, keep_epochs=1)
    with pytest.raises(UserError, match="S007"):
        behind.commit(late)


def test_of_many_racing_writers_exactly_one_wins(store: Store) -> None:
    for epoch in range(1, 11):
        writers = [Store.open_existing(store.folder.root) for _ in range(6)]
        start = threading.Barrier(len(writers))
        with ThreadPoolExecutor(len(writers)) as pool:
            outcomes = list(pool.map(race, writers, range(6), [start] * 6))
        assert sorted(outcomes) == ["S007"] * 5 + ["won"]
        assert store.latest().note == {"by": outcomes.index("won")}
        assert store.latest().epoch == epoch
    assert [name for name in store.folder.names("manifests") if name.endswith(".tmp")] == []


def race(writer: Store, name: int, start: threading.Barrier) -> str:
    old = writer.latest()
    proposal = old.advance(epoch=old.epoch + 1, created="t", note={"by": name})
    start.wait()
    try:
        writer.commit(proposal)
    except UserError as problem:
        return problem.code
    return "won"


RACE = """
import sys
from everview.errors import UserError
from everview.store.store import Store
store, won = Store.open_existing(sys.argv[1]), 0
for _ in range(40):
    old = store.latest()
    try:
        store.commit(old.advance(epoch=old.epoch + 1, created="t", note={"by": sys.argv[2]}))
        won += 1
    except UserError as problem:
        assert problem.code == "S007"
sys.stdout.write(str(won))
"""


def test_racing_processes_commit_each_epoch_once(store: Store) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, store.folder.root, name], stdout=subprocess.PIPE, text=True
        )
        for name in ("left", "right")
    ]
    won = {
        name: int(each.communicate()[0])
        for name, each in zip(("left", "right"), racers, strict=True)
    }
    by = [store.read(epoch).note["by"] for epoch in store.epochs()[1:]]
    assert won == {name: by.count(name) for name in won}


def test_what_a_crash_leaves_behind_does_not_matter(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    store.write_segment("orders", 2, rows((2, "b", 1)), ("k",))
    store.folder.write("manifests/.00000000000000000002.json.ab.tmp", b'{"format":1,"chec')
    again = Store.create_or_open(store.folder.root)
    assert again.epochs() == [0, 1]
    assert value(again, again.latest()) == {(1, "a"): 1}
    add(again, rows((2, "b", 1)))
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "b"): 1}


def test_a_creation_that_was_interrupted_is_taken_up_again(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    assert Store.create_or_open(tmp_path).epochs() == [0]


def test_a_manifest_cannot_name_a_file_that_is_not_there(store: Store) -> None:
    segment = store.write_segment("orders", 1, rows((1, "a", 1)), ("k",))
    store.folder.remove(segment.files[0].path)
    with pytest.raises(UserError, match=r"S003.*missing"):
        store.commit(store.latest().advance(epoch=1, created="t", changes={"orders": segment}))
    assert store.epochs() == [0]


def test_all_that_a_manifest_names_is_on_disk_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync, link = os.fsync, os.link
    named: list[list[str]] = []

    def synced_too(handle: int) -> None:
        synced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def linked(temporary: str, path: str) -> None:
        named.append([*synced, os.path.realpath(temporary)])
        link(temporary, path)

    monkeypatch.setattr(os, "fsync", synced_too)
    monkeypatch.setattr(os, "link", linked)
    manifest = add(store, rows((1, "a", 1)))
    (before,) = named
    files = {store.absolute(file.path) for file in manifest.files}
    root = Path(store.folder.root)
    above = {folder for file in files for folder in Path(file).parents}
    folders = {str(folder) for folder in above if folder.is_relative_to(root)}
    assert files | folders <= set(before)
    assert before[-1] in before[:-1], "the manifest itself has its content on disk"
    assert store.absolute("manifests") in synced[len(before) - 1 :]


def test_opening_nothing_says_so(tmp_path: Path) -> None:
    for location in (tmp_path / "nowhere", tmp_path, "nosuch://x/y"):
        with pytest.raises(UserError, match="S004"):
            Store.open_existing(location)


def test_the_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match=r"S005.*thesis\.tex"):
        Store.create_or_open(tmp_path)
    with pytest.raises(UserError, match="S005"):
        Store.create_or_open(tmp_path / "thesis.tex")
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_filesystem_without_exclusive_create_needs_a_word_from_the_caller() -> None:
    memory = fs._MockFileSystem()
    with pytest.raises(UserError, match=r"S009.*\n.*single_writer"):
        Store.create_or_open("shop", filesystem=memory)
    store = Store.create_or_open("shop", filesystem=memory, single_writer=True)
    assert store.writer_lock() is None
    late = store.latest().advance(epoch=1, created="late")
    add(store, rows((1, "a", 1)))
    with pytest.raises(UserError, match="S007"):
        store.commit(late)
    reader = Store.open_existing("shop", filesystem=memory)
    assert value(reader, reader.latest()) == {(1, "a"): 1}
    with pytest.raises(UserError, match="S009"):
        reader.commit(reader.latest().advance(epoch=2, created="t"))
