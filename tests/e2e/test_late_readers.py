"""Readers of an older epoch beside a writer that removes epochs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import everview as ev
from everview.store import retention


@pytest.fixture
def path(tmp_path, own_files):
    return str(tmp_path / "store")


def fill(db) -> None:
    db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE VIEW s AS SELECT SUM(v) AS s FROM t")
    for n in range(4):
        db.insert("t", [(n, 10)])
    db.compact()


def test_an_epoch_stays_for_an_hour_after_it_was_the_newest(path, monkeypatch):
    with ev.open(path, engine="duckdb") as db:
        fill(db)
        epochs = db.store.epochs()
        old = db.read("t", epoch=epochs[-3])
        assert db.retain(1) == []
        assert len(old.rows()) > 0

        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(UTC) + timedelta(minutes=61)

        monkeypatch.setattr(retention, "datetime", Later)
        assert db.retain(1)
        assert db.store.epochs() == epochs[-1:]


def test_the_grace_of_an_epoch_begins_when_the_next_one_is_made(path):
    with ev.open(path, engine="duckdb") as db:
        fill(db)
        assert db.retain(2, grace=3_600) == []
        assert db.retain(2, grace=0)
        assert len(db.store.epochs()) == 2


@pytest.mark.parametrize("grace", [-1, "1h", None, 1.5])
def test_a_grace_that_is_no_number_of_seconds_is_refused(path, grace):
    with ev.open(path, engine="duckdb") as db, pytest.raises(ev.UserError):
        db.retain(1, grace=grace)


def test_a_reader_that_is_too_late_is_told_so(open_db, path):
    with open_db(path) as db:
        fill(db)
        epoch = db.epoch - 2
        late = [db.read("t", epoch=epoch), db.changes("t", after=1)]
        with open_db(path, read_only=True) as reader:
            late += [reader.read("t"), reader.sql("SELECT COUNT(*) AS n FROM t")]
            db.insert("t", [(9, 10)])
            db.compact()
            assert db.retain(1, grace=0)
            for each in late:
                with pytest.raises(ev.UserError) as caught:
                    each.rows()
                assert caught.value.code == "S006"
                assert "backup" not in caught.value.remedy
            assert len(reader.read("t").rows()) == 5


def test_a_file_that_is_missing_from_a_retained_epoch_is_damage(path):
    with ev.open(path, engine="duckdb") as db:
        fill(db)
    with ev.open(path, engine="duckdb", read_only=True) as db:
        rows = db.read("t")
        for file in db.store.latest().relations["t"].files:
            db.store.folder.remove(file.path)
        with pytest.raises(ev.UserError) as caught:
            rows.rows()
        assert caught.value.code == "S003"
