"""An epoch is read from a checkpoint and the deltas after it, however they came to lie there."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.database.verify import verify
from everview.errors import UserError
from everview.store import manifest_log
from everview.store.filesystem import Folder
from everview.store.manifest_log import manifest_path
from everview.store.retention import retire
from everview.store.store import Store
from store.worlds import add, rows, value


def sizes(store: Store) -> list[int]:
    return [os.path.getsize(store.absolute(manifest_path(epoch))) for epoch in store.epochs()]


def checkpoints(store: Store) -> list[int]:
    return [epoch for epoch in store.epochs() if store.log.read(epoch).is_checkpoint]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_log, "CHECKPOINT_MIN_DELTAS", 3)
    monkeypatch.setattr(manifest_log, "CHECKPOINT_MAX_DELTAS", 5)


def test_checkpoints_come_when_their_deltas_have_paid_for_them(often: None, store: Store) -> None:
    for number in range(30):
        add(store, rows((number, "a", 1)))
    found = checkpoints(store)
    assert found[:2] == [0, 4], "three deltas are larger than an empty store"
    apart = [later - epoch for epoch, later in pairwise(found)]
    assert {*apart[1:]} <= {4, 5, 6}
    assert apart[-1] == 6, "no more deltas than may be read"
    again = Store.open_existing(store.folder.root)
    assert again.latest() == store.latest()
    assert [value(again, again.read(epoch)) for epoch in again.epochs()] == [
        {(number, "a"): 1 for number in range(epoch)} for epoch in range(31)
    ]


def test_any_order_of_reading_gives_the_same_epochs(often: None, store: Store) -> None:
    for number in range(12):
        add(store, rows((number, "a", 1)))
    alone = {epoch: Store.open_existing(store.folder.root).read(epoch) for epoch in store.epochs()}
    again = Store.open_existing(store.folder.root)
    for epoch in [*reversed(range(13)), *range(13), 7, 3, 7, 12]:
        assert again.read(epoch) == alone[epoch]


def test_who_knows_the_epoch_before_reads_one_small_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Store.open_existing(store.folder.root)
    for number in range(6):
        add(store, rows((number, "a", 1)))
    reader.latest()
    read: list[str] = []
    real = Folder.last_line

    def last_line(self: Folder, path: str) -> bytes:
        read.append(path)
        return real(self, path)

    monkeypatch.setattr(Folder, "last_line", last_line)
    add(store, rows((7, "a", 1)))
    assert reader.latest() == store.latest()
    assert read == [manifest_path(7)]
    read.clear()
    reader.feed("orders", 2)
    assert len(read) <= 7, "the feed reads each epoch once"


def test_a_commit_writes_as_many_bytes_into_a_large_store(tmp_path: Path) -> None:
    """5 and 200 relations, 20 and 2,000 segments, declared and changed by the pipeline."""
    written = {}
    for tables, segments in ((5, 4), (200, 10)):
        store = Store.create_or_open(tmp_path / str(tables))
        names = [f"t{number}" for number in range(tables)]
        for _ in range(segments):
            few = {name: (rows((1, "a", 1)), ("k",)) for name in names}
            epoch = store.latest().epoch + 1
            made = store.write_changes(epoch, few)
            store.commit(store.latest().advance(epoch=epoch, created="t", changes=made))
        for number in range(40):
            add(store, rows((number, "a", 1)), "t1")
        manifest = store.latest()
        assert sum(len(each.segments) for each in manifest.relations.values()) > 20
        written[tables] = sorted(sizes(store)[-40:])
    small, large = written[5], written[200]
    assert large[len(large) // 2] < 1.1 * small[len(small) // 2]
    assert large[-2] < 2 * small[-2], "one checkpoint at most"


def test_a_transaction_does_not_grow_with_the_views_of_others(tmp_path: Path) -> None:
    written = {}
    for views in (1, 40):
        at = tmp_path / str(views)
        with ev.open(str(at), engine="duckdb") as db:
            db.sql("CREATE TABLE t (k INT PRIMARY KEY); CREATE TABLE u (k INT PRIMARY KEY)")
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
            db.sql(
                ";".join(
                    f"CREATE MATERIALIZED VIEW u{n} AS SELECT COUNT(*) + {n} AS n FROM u"
                    for n in range(views)
                )
            )
            db.insert("u", [(1,)])
            for number in range(4):
                db.insert("t", [(number,)])
            written[views] = sizes(db.store)[-2:]
    assert max(written[40]) < 1.2 * max(written[1])


def test_retention_keeps_what_later_epochs_are_read_from(often: None, store: Store) -> None:
    for number in range(14):
        add(store, rows((number, "a", 1)))
        if number % 3 == 2:
            deleted = retire(store, keep_epochs=2)
            assert store.epochs() == [number, number + 1]
            assert all("manifests" in path for path in deleted)
            assert store.log.read(number).is_checkpoint
            for reader in (store, Store.open_existing(store.folder.root)):
                for epoch in reader.epochs():
                    expected = {(each, "a"): 1 for each in range(epoch)}
                    assert value(reader, reader.read(epoch)) == expected
                with pytest.raises(UserError, match="S006"):
                    reader.read(number - 1)


@pytest.mark.parametrize("removals", range(5))
def test_a_crash_of_retention_leaves_what_is_retained_readable(
    store: Store, monkeypatch: pytest.MonkeyPatch, removals: int
) -> None:
    for number in range(6):
        add(store, rows((number, "a", 1)))
    before = [store.read(epoch) for epoch in store.epochs()]

    real, left = Folder.remove, removals

    def crash(self: Folder, path: str) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        real(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "remove", crash)
        with pytest.raises(KeyboardInterrupt):
            retire(store, keep_epochs=3)
    again = Store.open_existing(store.folder.root)
    assert again.epochs() == [4, 5, 6]
    assert [again.read(epoch) for epoch in again.epochs()] == before[4:]
    assert verify(again).ok
    for epoch in range(4):
        with pytest.raises(UserError, match=r"S006.*4 to 6") if removals else nullcontext():
            again.read(epoch)
    add(again, rows((6, "a", 1)))
    assert value(again, Store.open_existing(again.folder.root).latest()) == {
        (number, "a"): 1 for number in range(7)
    }
    retire(again, keep_epochs=9, grace=timedelta(hours=1))
    assert again.folder.names("manifests") == [f"{epoch:020d}.json" for epoch in range(4, 8)]


def test_readers_are_not_disturbed_by_retention(often: None, store: Store) -> None:
    """Each reads the newest epoch from the files alone, while others are removed below it."""
    stop, problems = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                manifest = Store.open_existing(store.folder.root).latest()
                assert len(manifest.relations["orders"].segments) == manifest.epoch
            except UserError as problem:
                if problem.code != "S006":  # the newest was not the newest any more
                    problems.append(problem)

    add(store, rows((0, "a", 1)))
    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in readers:
        each.start()
    for number in range(1, 40):
        add(store, rows((number, "a", 1)))
        retire(store, keep_epochs=1 + number % 2)
    stop.set()
    for each in readers:
        each.join()
    assert problems == []


def test_a_delta_after_retention_refers_to_the_checkpoint_that_it_made(store: Store) -> None:
    for number in range(5):
        add(store, rows((number, "a", 1)))
    retire(store, keep_epochs=2)
    add(store, rows((5, "a", 1)))
    document: Any = store.log._document(6)[0]
    assert document.checkpoint == 4


def test_writers_by_turns_with_retention_between_them_leave_all_readable(
    often: None, store: Store
) -> None:
    other = Store.open_existing(store.folder.root)
    for number in range(20):
        add((store, other)[number % 2], rows((number, "a", 1)))
        if number % 5 == 4:
            retire(other, keep_epochs=3)
    again = Store.open_existing(store.folder.root)
    for epoch in again.epochs():
        assert value(again, again.read(epoch)) == {(each, "a"): 1 for each in range(epoch)}
