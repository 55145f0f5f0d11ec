"""A commit moves a store once, whoever else writes and whatever ended the commit before."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from everview.errors import UserError
from everview.store.filesystem import Folder
from everview.store.store import Store
from store.worlds import rows, value


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create_or_open(tmp_path / "shop", created="2026-01-01T00:00:00Z")


def commit(store: Store, number: int) -> str:
    """Commit one row in an epoch; the file that it lies in."""
    epoch = store.latest().epoch + 1
    made = store.write_changes(epoch, {"orders": (rows((number, "a", 1)), ("k",))})
    store.commit(store.latest().advance(epoch=epoch, created="t", changes=made))
    (file,) = made["orders"].files
    return file.path


def test_two_files_of_one_epoch_are_both_there(store: Store) -> None:
    commit(store, 1)
    made = {
        name: store.write_changes(2, {name: (rows((2, name, 1)), ("k",))})[name]
        for name in ("orders", "other")
    }
    assert len({each.files[0].path for each in made.values()}) == 2
    store.commit(store.latest().advance(epoch=2, created="t", changes=made))
    again = Store.open_existing(store.folder.root)
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "orders"): 1}
    assert value(again, again.latest(), "other") == {(2, "other"): 1}
    assert again.verify(again.latest()) == {}


def test_rows_that_were_never_committed_are_not_in_the_next_epoch(store: Store) -> None:
    commit(store, 1)
    store.write_changes(2, {"orders": (rows((9, "lost", 1)), ("k",))})
    commit(store, 2)
    again = Store.open_existing(store.folder.root)
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "a"): 1}
    assert again.verify(again.latest()) == {}


def test_who_has_the_lock_looks_for_no_other_writer_until_it_is_released(store: Store) -> None:
    lock = store.writer_lock()
    assert lock is not None
    commit(store, 1)
    asked: list[int] = []
    real = store._is_newest
    store._is_newest = lambda epoch: asked.append(epoch) or real(epoch)  # type: ignore[method-assign,func-returns-value]
    assert store.latest().epoch == 1
    assert asked == []
    lock.release()
    other = Store.open_existing(store.folder.root)
    commit(other, 2)
    assert store.latest().epoch == 2
    assert asked == [1]


def test_what_happened_is_looked_up_where_a_commit_ended_in_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = store.writer_lock()
    assert lock is not None
    commit(store, 1)
    real = Folder._fsync

    def failing(self: Folder, *paths: str) -> None:
        if "manifests" in paths:
            raise OSError("the disk is gone")
        real(self, *paths)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_fsync", failing)
        with pytest.raises(UserError, match=r"S010.*epoch 2 is committed.*gone"):
            commit(store, 2)
    assert store.latest().epoch == 2, "it has its name"
    commit(store, 3)
    assert value(store, store.latest()) == {(number, "a"): 1 for number in (1, 2, 3)}
    lock.release()


def test_an_epoch_that_somebody_made_before_the_lock_was_taken_is_seen(store: Store) -> None:
    assert store.latest().epoch == 0
    commit(Store.open_existing(store.folder.root), 1)
    lock = store.writer_lock()
    assert lock is not None
    assert store.latest().epoch == 1
    commit(store, 2)
    lock.release()


def test_a_fork_that_opens_the_store_itself_commits(store: Store) -> None:
    commit(store, 1)
    child = os.fork()
    if not child:
        signal.alarm(20)
        commit(Store.open_existing(store.folder.root), 2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert value(store, store.latest()) == {(1, "a"): 1, (2, "a"): 1}
