"""Reads are of one epoch, writes come one after the other: docs/transactions.md states it."""

from __future__ import annotations

from collections import Counter
from threading import Event, Thread

import pytest

import everview as ev

SETUP = """
CREATE TABLE doctor (id INT PRIMARY KEY, on_call INT NOT NULL);
CREATE TABLE ticket (number INT NOT NULL, taker INT NOT NULL);
CREATE VIEW on_call AS SELECT COUNT(*) AS n FROM doctor WHERE on_call = 1;
CREATE VIEW tickets AS SELECT COUNT(*) AS n, COUNT(DISTINCT number) AS d FROM ticket
"""


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SETUP)
        db.insert("doctor", [(1, 1), (2, 1), (3, 0)])
        yield db


def together(*works) -> None:
    """Run functions in threads; the first error of one is raised."""
    problems = []

    def run(work) -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_no_update_is_lost_and_every_transaction_follows_another(db):
    """Each takes the next number by looking at all the others; no two can take the same."""

    def take(taker: int) -> None:
        for _ in range(5):
            with db.transaction() as tx:
                number = len(db.read("ticket").rows())
                tx.insert("ticket", [(number, taker)])

    together(*(lambda taker=taker: take(taker) for taker in range(4)))
    assert sorted(number for number, _ in db.read("ticket").rows()) == [*range(20)]
    assert db.read("tickets").rows() == [(20, 20)]


def test_there_is_no_write_skew(db):
    """Two doctors leave if another is on call: read by both, written apart, one has to stay."""

    def leave(doctor: int) -> None:
        db.sql("BEGIN")
        [(others,)] = db.sql(
            f"SELECT COUNT(*) AS n FROM doctor WHERE on_call = 1 AND id <> {doctor}"
        ).rows()
        if others:
            db.sql(f"UPDATE doctor SET on_call = 0 WHERE id = {doctor}")
        db.sql("COMMIT")

    together(lambda: leave(1), lambda: leave(2))
    assert db.read("on_call").rows() == [(1,)]


def test_a_reader_keeps_the_epoch_it_began_with(db):
    """Neither a later commit nor a pending change shows in a result that was asked for before."""
    before, view = db.read("doctor"), db.read("on_call")
    with db.transaction() as tx:
        tx.delete("doctor", keys=[1])
        outside = []
        together(lambda: outside.extend(db.sql("SELECT id FROM doctor").rows()))
        assert sorted(outside) == [(1,), (2,), (3,)], "a dirty read"
        assert db.read("on_call").rows() == [(2,)]
    assert sorted(before.rows()) == [(1, 1), (2, 1), (3, 0)]
    assert view.rows() == [(2,)]
    assert db.read("on_call").rows() == [(1,)]
    assert db.read("on_call", epoch=db.epoch - 1).rows() == [(2,)]


def test_a_transaction_reads_the_same_rows_again(db):
    """Other writers wait until it has ended, so nothing changes under it."""
    waits, seen = Event(), []

    def write() -> None:
        waits.set()
        db.insert("doctor", [(4, 1)])

    db.sql("BEGIN")
    other = Thread(target=write)
    other.start()
    waits.wait()
    seen += [Counter(db.sql("SELECT id FROM doctor").rows()) for _ in range(3)]
    db.sql("UPDATE doctor SET on_call = 1 WHERE id = 3; COMMIT")
    other.join()
    assert seen == [Counter([(1,), (2,), (3,)])] * 3
    assert db.read("on_call").rows() == [(4,)]


def test_another_process_does_not_get_to_write(tmp_path):
    path = str(tmp_path / "store")
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
        with pytest.raises(ev.UserError, match="S0"):
            ev.open(path, engine="duckdb")
        with ev.open(path, engine="duckdb", read_only=True) as reader:
            db.insert("doctor", [(9, 1)])
            assert reader.read("on_call").rows() == [(1,)]
