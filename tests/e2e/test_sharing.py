"""One handle in many hands: threads, forks, and hands that come after it was closed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from random import Random
from threading import Event, Thread, get_ident
from typing import Any

import pytest

import everview as ev
from everview.database.concurrency import was_interrupted

SETUP = """
CREATE TABLE account (id INT PRIMARY KEY, owner INT NOT NULL, money INT NOT NULL);
CREATE VIEW total AS SELECT COUNT(*) AS n, SUM(money) AS money FROM account;
CREATE VIEW by_owner AS SELECT owner, SUM(money) AS money FROM account GROUP BY owner
"""
OWNERS, MONEY, THREADS = 5, 1_000, 4


def transfer(db, chance: Random) -> None:
    """Move money from one account to another, in one of the ways there are; the sum stays."""
    amount, (a, b) = chance.randrange(50), chance.sample(range(2 * OWNERS), 2)
    if chance.random() < 0.5:
        with db.transaction() as tx:
            rows = {row[0]: row for row in db.read("account").rows()}
            tx.upsert("account", [(a, rows[a][1], rows[a][2] - amount)])
            tx.upsert("account", [(b, rows[b][1], rows[b][2] + amount)])
    else:
        db.sql(
            f"BEGIN; UPDATE account SET money = money - {amount} WHERE id = {a};"
            f"UPDATE account SET money = money + {amount} WHERE id = {b}; COMMIT"
        )


def look(db, chance: Random) -> None:
    """Whatever is read is of one epoch, at which no money is on its way."""
    if chance.random() < 0.5:
        assert db.read("total").rows() == [(2 * OWNERS, MONEY)]
        assert sum(row[1] for row in db.read("by_owner").rows()) == MONEY
    else:
        both = "SELECT t.money, (SELECT SUM(money) FROM by_owner) AS s FROM total t"
        assert db.sql(both).rows() == [(MONEY, MONEY)]


def opened_shop(open_db, path):
    db = open_db(path)
    db.sql(SETUP)
    db.insert("account", [(i, i % OWNERS, MONEY // (2 * OWNERS)) for i in range(2 * OWNERS)])
    return db


def run_together(db, seconds: float) -> Counter:
    """Writers and readers for some seconds; how often each came to its end."""
    ended, done, problems = time.monotonic() + seconds, Counter(), []

    def go(work: Callable[[Any, Random], None], number: int) -> None:
        chance = Random(number)
        try:
            while time.monotonic() < ended and not problems:
                work(db, chance)
                done[work.__name__, number] += 1
        except BaseException as problem:
            problems.append(problem)

    threads = [Thread(target=go, args=(w, n)) for w in (transfer, look) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return done


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_four_writers_and_four_readers_share_a_handle(open_db, tmp_path, seconds):
    with opened_shop(open_db, tmp_path / "store") as db:
        before = db.epoch
        done = run_together(db, seconds)
        writes = sum(n for (work, _), n in done.items() if work == "transfer")
        assert db.epoch >= before + writes / 2, "compaction adds epochs, moving nothing adds none"
        assert len(done) == 2 * THREADS, "everybody had a turn"
        look(db, Random(1))
        assert db.audit().ok
    with open_db(tmp_path / "store") as db:
        assert db.audit().ok


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE VIEW s AS SELECT SUM(v) AS s FROM t"
        )
        db.insert("t", [(1, 10)])
        yield db


@contextmanager
def refused(code: str):
    with pytest.raises(ev.UserError) as caught:
        yield
    assert caught.value.code == code
    assert caught.value.remedy


def test_a_writer_waits_for_a_transaction_of_another_thread(db):
    tx, began, waited = db.transaction(), Event(), Event()

    def write() -> None:
        began.set()
        db.insert("t", [(3, 30)])
        waited.set()

    tx.insert("t", [(2, 20)])
    thread = Thread(target=write)
    thread.start()
    began.wait(5)
    assert not waited.wait(0.3)
    assert db.read("s").rows() == [(10,)]
    tx.commit()
    thread.join(10)
    assert waited.is_set()
    assert db.read("s").rows() == [(60,)]


def test_what_a_thread_has_begun_is_not_seen_by_another_and_ends_with_it(db):
    def begin() -> None:
        db.sql("BEGIN; INSERT INTO t VALUES (2, 20)")
        assert db.sql("SELECT COUNT(*) AS n FROM t").rows() == [(2,)]

    thread = Thread(target=begin)
    thread.start()
    thread.join()
    with refused("T008"):
        db.sql("COMMIT")
    db.insert("t", [(3, 30)])
    assert db.read("s").rows() == [(40,)]


def test_a_transaction_within_another_of_its_thread_is_refused(db):
    with db.transaction() as tx:
        tx.insert("t", [(2, 20)])
        for nested in (
            db.transaction,
            db.compact,
            lambda: db.retain(1),
            lambda: db.insert("t", [(3, 30)]),
            lambda: db.sql("CREATE TABLE u (a INT)"),
            lambda: db.sql("INSERT INTO t VALUES (3, 30)"),
            lambda: tx.insert("t", (db.insert("t", [(n, n)]) for n in range(3))),
        ):
            with refused("T008"):
                nested()
    assert db.read("s").rows() == [(30,)]
    assert db.audit().ok


def test_a_transaction_that_is_let_go_of_holds_nobody_up(db):
    db.transaction().insert("t", [(2, 20)])
    db.insert("t", [(3, 30)])
    assert db.read("s").rows() == [(40,)]


def test_a_closed_database_refuses_everything(db, tmp_path):
    rows, feed = db.read("t"), db.changes("t")
    query, plan = db.sql("SELECT * FROM t"), db.source("t")
    tx = db.transaction()
    tx.insert("t", [(2, 20)])
    db.close()
    db.close()
    calls: dict[str, Callable[[], Any]] = {
        "epoch": lambda: db.epoch,
        "catalog": lambda: db.catalog,
        "store": lambda: db.store,
        "engine": lambda: db.engine,
        "read": lambda: db.read("t"),
        "changes": lambda: db.changes("t"),
        "transaction": db.transaction,
        "insert": lambda: db.insert("t", [(2, 20)]),
        "delete": lambda: db.delete("t", [(1, 10)]),
        "upsert": lambda: db.upsert("t", [(1, 20)]),
        "update": lambda: db.update("t", keys=[1], set={"v": 20}),
        "compact": db.compact,
        "retain": lambda: db.retain(1),
        "function": lambda: db.function("f", abs, "int", deterministic=True),
        "sql": lambda: db.sql("SELECT 1 AS one"),
        "run": lambda: list(db.run(())) or db.sql("EXPLAIN s"),
        "datalog": lambda: db.datalog(".decl a(x:number)\na(1).\n.output a"),
        "agca": lambda: db.agca("q[a] := Sum(t(a, b) * b)"),
        "relalg": lambda: db.relalg("u", "t"),
        "nested": lambda: db.nested("for r in t union sng(r.a)", name="n"),
        "load_module": lambda: db.load_module("nowhere.py"),
        "view": lambda: db.view("w", plan),
        "source": lambda: db.source("t"),
        "explain": lambda: db.explain("s"),
        "audit": db.audit,
        "status": db.status,
        "history": db.history,
        "memory": lambda: db.memory,
    }
    named = {name for name in dir(db) if not name.startswith("_")}
    assert named - calls.keys() <= {"close", "handle"}
    calls |= {
        "rows": rows.rows,
        "feed": feed.to_arrow,
        "query": query.to_pandas,
        "begin": lambda: db.sql("BEGIN"),
        "commit": lambda: db.sql("COMMIT"),
        "insert of a transaction": lambda: tx.insert("t", [(3, 30)]),
        "commit of a transaction": tx.commit,
        "with": db.__enter__,
    }
    for name, call in calls.items():
        with pytest.raises(ev.UserError) as caught:
            call()
        assert caught.value.code == "H001", name
    with ev.open(str(tmp_path / "store"), engine="duckdb") as again:
        assert again.read("t").rows() == [(1, 10)]


def test_closing_waits_for_a_writer_and_ends_the_others(db):
    def write() -> None:
        with refused("H001"):
            while True:
                db.upsert("t", [(get_ident() % 1_000, 1)])

    def read() -> None:
        with refused("H001"):
            while True:
                assert db.read("s").rows()[0][0] >= 10

    threads = [Thread(target=work) for work in (write, write, read, read)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    db.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_a_child(work: Callable[[], None]) -> int:
    """Do some work in a fork that ends as programs do; its exit code."""
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            work()
        except BaseException:
            os._exit(1)
        sys.stderr = sys.stdout = None
        os.close(2)
        os.execv("/bin/true", ["/bin/true"])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_cannot_use_its_parents_handle_nor_harm_it(db, tmp_path):
    tx, path = db.transaction(), str(tmp_path / "store")
    tx.insert("t", [(2, 20)])
    rows = db.read("t")

    def child() -> None:
        for call in (
            lambda: db.insert("t", [(3, 30)]),
            lambda: db.sql("CREATE TABLE u (a INT)"),
            lambda: db.read("t").rows(),
            lambda: tx.insert("t", [(3, 30)]),
            tx.commit,
            rows.rows,
        ):
            with refused("H002"):
                call()
        db.close()
        with refused("S008"):
            ev.open(path, engine="duckdb")

    assert in_a_child(child) == 0
    with refused("S008"):
        ev.open(path, engine="duckdb")
    tx.commit()
    db.insert("t", [(3, 30)])
    assert db.read("s").rows() == [(60,)]
    assert db.audit().ok


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_that_lives_on_does_not_keep_its_parents_lock(tmp_path):
    path = str(tmp_path / "store")
    db = ev.open(path, engine="duckdb")
    child = os.fork()
    if not child:
        time.sleep(30)
        os._exit(0)
    try:
        db.close()
        with ev.open(path, engine="duckdb") as again:
            again.sql("CREATE TABLE t (a INT)")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_causes_that_go_in_a_circle_are_each_looked_at_once():
    first, second, third = ev.UserError("X", "a", remedy="b"), ValueError(), KeyboardInterrupt()
    first.__cause__, second.__context__ = second, first
    assert not was_interrupted(first)
    second.__cause__ = third
    assert was_interrupted(first)
