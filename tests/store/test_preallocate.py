"""The file of the next epoch is made before it is needed, and is nobody's if it is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import UserError
from everview.store import preallocate
from everview.store.filesystem import Place
from everview.store.retention import retire
from everview.store.segments import epoch_of
from everview.store.store import Store
from store.worlds import rows, value


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create_or_open(tmp_path / "shop", created="2026-01-01T00:00:00Z")


def commit(store: Store, number: int) -> str:
    """Commit one row in an epoch; the file that it lies in."""
    epoch = store.latest().epoch + 1
    made = store.write_together(epoch, {"orders": (rows((number, "a", 1)), ("k",))})
    store.commit(store.latest().advance(epoch=epoch, created="t", changes=made))
    (file,) = made["orders"].files
    return file.path


def waiting(store: Store) -> list[Path]:
    """The files without a row, by epoch."""
    if store._ahead._made is not None:
        store._ahead._made.result()
    every = sorted(Path(store.absolute("changes")).iterdir())
    return [path for path in every if not path.stat().st_size]


def test_what_an_epoch_adds_is_written_to_the_file_that_waits_for_it(store: Store) -> None:
    commit(store, 1)
    for number in range(2, 9):
        made = waiting(store)[0]
        assert epoch_of(made.name) == number
        assert commit(store, number) == f"changes/{made.name}"
    store.close()
    assert waiting(store) == []
    commit(store, 9)
    again = Store.open_existing(store.place.root)
    assert value(again, again.latest()) == {(number, "a"): 1 for number in range(1, 10)}


def test_the_more_epochs_there_are_the_more_files_are_made_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preallocate, "MOST", 4)
    begun: list[int] = []
    real = Place.begin_files
    monkeypatch.setattr(
        Place, "begin_files", lambda self, paths: begun.append(len(paths)) or real(self, paths)
    )
    for number in range(1, 13):
        commit(store, number)
    assert begun == [1, 2, 4, 4, 4]
    assert [epoch_of(path.name) for path in waiting(store)] == [13, 14, 15, 16]


def test_no_rows_and_many_rows_leave_no_file_behind(store: Store) -> None:
    commit(store, 1)
    none = store.write_together(2, {"orders": (rows(), ("k",))})
    assert len(waiting(store)) == 1, "nothing was written"
    store.commit(store.latest().advance(epoch=2, created="t", changes=none))
    assert waiting(store) == []
    commit(store, 3)
    assert [epoch_of(path.name) for path in waiting(store)] == [4, 5]
    many = store.write_segment("orders", 4, rows((4, "a", 1)), ("k",))
    store.commit(store.latest().advance(epoch=4, created="t", changes={"orders": many}))
    (left,) = waiting(store)
    assert commit(store, 5) == f"changes/{left.name}"


def test_a_file_is_not_used_for_another_epoch(store: Store) -> None:
    commit(store, 1)
    other = Store.open_existing(store.place.root)
    commit(other, 2)
    other.close()
    (made,) = waiting(store)
    assert commit(store, 3) != f"changes/{made.name}"
    assert not made.exists()
    assert value(store, store.latest()) == {(number, "a"): 1 for number in (1, 2, 3)}


def test_retention_leaves_it_to_its_writer_and_deletes_what_a_crash_left(store: Store) -> None:
    commit(store, 1)
    (made,) = waiting(store)
    assert retire(store, 1) == ["manifests/00000000000000000000.json"]
    again = Store.open_existing(store.place.root)  # the other one is never closed
    commit(again, 2)
    assert f"changes/{made.name}" in retire(again, 1)


def test_a_file_that_could_not_be_made_is_made_when_it_is_needed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open
    room = iter([True, True, False])

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and flags & os.O_EXCL and not next(room, False):
            raise OSError("no space left")
        return real(path, flags, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        for number in range(1, 8):
            commit(store, number)
        store.close()
    assert waiting(store) == []
    assert value(store, store.latest()) == {(number, "a"): 1 for number in range(1, 8)}


def test_the_names_of_a_file_made_ahead_are_on_disk_before_its_epoch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    real: Any = {name: getattr(os, name) for name in ("open", "fsync", "link")}

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        handle: int = real["open"](path, flags, mode)
        if flags & os.O_CREAT:
            events.append(("made", path))
        return handle

    def synced(handle: int) -> None:
        real["fsync"](handle)
        events.append(("synced", os.path.realpath(f"/proc/self/fd/{handle}")))

    def linked(file: str, path: str) -> None:
        events.append(("named", file))
        real["link"](file, path)

    for name, spied in {"open": opened, "fsync": synced, "link": linked}.items():
        monkeypatch.setattr(os, name, spied)
    commit(store, 1)
    file = store.absolute(commit(store, 2))
    store.close()
    begun, done = events.index(("made", file)), events.index(("named", file))
    between = events[begun:done]
    assert ("synced", store.absolute("changes")) in between
    assert ("synced", file) in between
    assert ("synced", store.absolute("manifests")) in events[done:]


def test_a_file_that_somebody_took_away_is_not_counted_on(store: Store) -> None:
    commit(store, 1)
    (made,) = waiting(store)
    made.unlink()
    assert commit(store, 2) != f"changes/{made.name}", "its name would not be on disk"
    again = Store.open_existing(store.place.root)
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "a"): 1}


def test_a_fork_that_ends_leaves_the_file_to_its_writer(store: Store) -> None:
    commit(store, 1)
    (made,) = waiting(store)
    child = os.fork()
    if not child:
        try:
            store.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert made.exists()
    assert commit(store, 2) == f"changes/{made.name}"


def test_a_fork_writes_to_a_file_of_its_own(store: Store) -> None:
    commit(store, 1)
    (made,) = waiting(store)
    child = os.fork()
    if not child:
        same = store._ahead.path(2) == f"changes/{made.name}"
        store._ahead.make(3)
        os._exit(int(same or store._ahead._many > 2))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert waiting(store) == [made]


def test_a_database_that_is_closed_leaves_no_file_without_rows(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k INT, PRIMARY KEY (k))")
        for number in range(3):
            db.insert("t", [{"k": number}])
    assert all(path.stat().st_size for path in (tmp_path / "shop" / "changes").iterdir())


def test_two_files_of_one_epoch_are_both_there(store: Store) -> None:
    commit(store, 1)
    made = {
        name: store.write_together(2, {name: (rows((2, name, 1)), ("k",))})[name]
        for name in ("orders", "other")
    }
    assert len({each.files[0].path for each in made.values()}) == 2
    store.commit(store.latest().advance(epoch=2, created="t", changes=made))
    again = Store.open_existing(store.place.root)
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "orders"): 1}
    assert value(again, again.latest(), "other") == {(2, "other"): 1}
    assert again.verify(again.latest()) == {}


def test_rows_that_were_never_committed_are_not_in_the_next_epoch(store: Store) -> None:
    commit(store, 1)
    store.write_together(2, {"orders": (rows((9, "lost", 1)), ("k",))})
    commit(store, 2)
    again = Store.open_existing(store.place.root)
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
    other = Store.open_existing(store.place.root)
    commit(other, 2)
    assert store.latest().epoch == 2
    assert asked == [1]


def test_what_happened_is_looked_up_where_a_commit_ended_in_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = store.writer_lock()
    assert lock is not None
    commit(store, 1)
    real = Place._fsync

    def failing(self: Place, *paths: str) -> None:
        if "manifests" in paths:
            raise OSError("the disk is gone")
        real(self, *paths)

    with monkeypatch.context() as patched:
        patched.setattr(Place, "_fsync", failing)
        with pytest.raises(UserError, match=r"S010.*epoch 2 is committed.*gone"):
            commit(store, 2)
    assert store.latest().epoch == 2, "it has its name"
    commit(store, 3)
    assert value(store, store.latest()) == {(number, "a"): 1 for number in (1, 2, 3)}
    lock.release()


def test_an_epoch_that_somebody_made_before_the_lock_was_taken_is_seen(store: Store) -> None:
    assert store.latest().epoch == 0
    commit(Store.open_existing(store.place.root), 1)
    lock = store.writer_lock()
    assert lock is not None
    assert store.latest().epoch == 1
    commit(store, 2)
    lock.release()
