"""Compaction beside transactions: views stay right, and nobody waits for it or fails by it."""

from __future__ import annotations

import os
import random
import signal
from threading import Event, Thread
from time import monotonic
from typing import Any

import pyarrow.parquet as pq
import pytest

import everview as ev
from everview.database import background, compaction
from everview.store.compaction_policy import Policy

SETUP = """
CREATE TABLE o (id INT PRIMARY KEY, c INT, s STRING, d DOUBLE);
CREATE TABLE tag (id INT, t STRING);
CREATE VIEW totals AS SELECT c, COUNT(*) AS n, SUM(id) AS total, MAX(s) AS last FROM o GROUP BY c;
CREATE VIEW joined AS SELECT o.id, o.s, tag.t FROM o JOIN tag ON o.id = tag.id;
CREATE VIEW values_of AS SELECT DISTINCT d FROM o;
CREATE VIEW everything AS SELECT COUNT(*) AS n, SUM(c) AS c FROM o;
"""
EAGER = Policy(changes=2, fraction=0.5, least_rows=5, file_rows=20)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is due is folded in the background, and soon something is."""
    monkeypatch.setattr(compaction, "INLINE_ROWS", -1)
    monkeypatch.setattr(compaction, "COMPACTION", EAGER)


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        db.sql(SETUP)
        yield db


class Gate:
    """Holds up a fold between computing and committing, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = Event(), Event()
        real = compaction.fold_all

        def fold_all(*args: Any, **kwargs: Any) -> Any:
            folds = real(*args, **kwargs)
            self.reached.set()
            assert self.opened.wait(30)
            return folds

        monkeypatch.setattr(compaction, "fold_all", fold_all)


def change(db, chance: random.Random, alive: dict[int, tuple[Any, ...]]) -> None:
    """A transaction with inserts, updates and deletes, NULLs and duplicates."""
    with db.transaction() as tx:
        for _ in range(chance.randrange(1, 6)):
            key = chance.randrange(60)
            c, d = chance.choice((None, 1, 2, 3)), chance.choice((None, 0.0, -0.0, float("nan")))
            row = (key, c, chance.choice("abc"), d)
            if key in alive and chance.random() < 0.4:
                tx.delete("o", [alive.pop(key)])
            else:
                tx.upsert("o", [row])
                alive[key] = row
        tx.insert("tag", [(chance.choice((None, *range(9))), "x")] * chance.randrange(1, 3))


@pytest.mark.parametrize("seed", range(4))
def test_views_are_right_whenever_and_however_relations_are_compacted(
    tmp_path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, alive = random.Random(seed), dict[int, tuple[Any, ...]]()
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        db.sql(SETUP)
        for _ in range(25):
            policy = Policy(
                changes=chance.randrange(4),
                fraction=chance.choice((0.0, 0.5, 1.0)),
                least_rows=chance.choice((0, 5, 50)),
                growth=chance.choice((1.0, 2.0, 100.0)),
                file_rows=chance.choice((2, 10, 1_000)),
            )
            monkeypatch.setattr(compaction, "COMPACTION", policy)
            monkeypatch.setattr(compaction, "INLINE_ROWS", chance.choice((-1, 20, 10_000)))
            change(db, chance, alive)
            if chance.random() < 0.1:
                db.compact()
            if chance.random() < 0.1:
                db.retain(2, grace=0)
            assert db.audit().ok
            assert len(db.read("o").rows()) == len(alive)
        db.handle.wait()
        assert db.audit().ok
        assert db.store.verify(db.store.latest()) == {}
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        assert db.audit().ok
        change(db, chance, alive)
        assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_what_is_committed_while_segments_are_folded_stays(
    db, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    for key in range(3):
        db.insert("o", [(key, 1, "a", None)])
    db.insert("o", [(3, 1, "a", None)])
    assert gate.reached.wait(30)
    before = db.epoch
    db.insert("o", [(4, None, "b", 1.0)])
    db.delete("o", [(0, 1, "a", None)])
    assert db.epoch == before + 2, "nobody waits for a fold"
    gate.opened.set()
    db.handle.wait()
    assert db.epoch > before + 2
    assert [each.kind for each in db.history() if each.kind == "compaction"]
    assert sorted(row[0] for row in db.read("o").rows()) == [1, 2, 3, 4]
    assert db.audit().ok
    db.insert("o", [(5, 1, "c", None)])
    assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_an_open_transaction_is_waited_for(db, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    for key in range(4):
        db.insert("o", [(key, 1, "a", None)])
    assert gate.reached.wait(30)
    with db.transaction() as tx:
        tx.insert("o", [(7, 1, "a", None)])
        gate.opened.set()
        before = db.epoch
        tx.insert("o", [(8, 1, "a", None)])
        assert db.epoch == before
    db.handle.wait()
    assert db.audit().ok
    assert len(db.read("o").rows()) == 6


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize(
    "meanwhile",
    [
        "DROP VIEW joined; DROP VIEW totals; DROP VIEW values_of; DROP VIEW everything; "
        "DROP TABLE o; CREATE TABLE o (id INT PRIMARY KEY, c INT)",
        "CREATE OR REPLACE VIEW totals AS SELECT c, COUNT(*) AS n FROM o GROUP BY c",
        None,
    ],
)
def test_a_fold_of_what_is_gone_is_thrown_away(
    db, monkeypatch: pytest.MonkeyPatch, meanwhile: str | None
) -> None:
    gate = Gate(monkeypatch)
    for key in range(5):
        db.insert("o", [(key, 1, "a", None)])
    assert gate.reached.wait(30)
    if meanwhile is None:
        gate.opened.set()
        db.compact()
    else:
        db.sql(meanwhile)
    gate.opened.set()
    db.handle.wait()
    assert db.audit().ok
    assert db.store.verify(db.store.latest()) == {}
    before = len(db.read("o").rows())
    db.sql("INSERT INTO o (id, c) VALUES (99, 2)")
    assert db.audit().ok
    assert len(db.read("o").rows()) == before + 1


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("problem", [RuntimeError, MemoryError, OSError])
def test_a_fold_that_fails_fails_nothing_else(
    db, monkeypatch: pytest.MonkeyPatch, problem: type[Exception]
) -> None:
    def fold_all(*_: Any, **__: Any) -> None:
        raise problem

    with monkeypatch.context() as failing:
        failing.setattr(compaction, "fold_all", fold_all)
        for key in range(8):
            db.insert("o", [(key, 1, "a", None)])
            assert db.audit().ok
        db.handle.wait()
    db.insert("o", [(9, 1, "a", None)])
    db.handle.wait()
    assert db.audit().ok
    assert max(each.segments for each in db.status()) < 6


def test_with_many_segments_a_transaction_compacts_itself(
    db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "INLINE_ROWS", -1)
    monkeypatch.setattr(compaction, "BACKLOG", 20)
    monkeypatch.setattr(background.Background, "start", lambda *_: None)
    for key in range(30):
        db.insert("o", [(key, 1, "a", None)])
    assert max(each.segments for each in db.status()) <= 22
    assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_closing_ends_what_is_folded(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "CLOSE_SECONDS", 0.2)
    real, folding = compaction.fold_all, Event()

    def fold_all(*args: Any) -> Any:
        between = args[-1]
        folding.set()
        ends = monotonic() + 30
        while monotonic() < ends:
            between()
        return real(*args)

    db = ev.open(str(tmp_path / "shop"), engine="duckdb")
    db.sql(SETUP)
    monkeypatch.setattr(compaction, "fold_all", fold_all)
    for key in range(4):
        db.insert("o", [(key, 1, "a", None)])
    assert folding.wait(30)
    epoch, began = db.epoch, monotonic()
    db.close()
    assert monotonic() - began < 5
    monkeypatch.setattr(compaction, "fold_all", real)
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        assert db.epoch == epoch
        assert db.audit().ok
        db.insert("o", [(9, 1, "a", None)])
        db.handle.wait()
        assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_closing_lets_a_short_fold_end(tmp_path) -> None:
    path = str(tmp_path / "shop")
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
        for key in range(4):
            db.insert("o", [(key, 1, "a", None)])
    with ev.open(path, engine="duckdb", read_only=True) as db:
        assert max(each.segments for each in db.status()) < 4
        assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_closing_within_an_open_transaction_does_not_wait_for_it(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = ev.open(str(tmp_path / "shop"), engine="duckdb")
    db.sql(SETUP)
    gate = Gate(monkeypatch)
    for key in range(4):
        db.insert("o", [(key, 1, "a", None)])
    assert gate.reached.wait(30)
    tx = db.transaction()
    tx.insert("o", [(9, 1, "a", None)])
    gate.opened.set()
    began = monotonic()
    db.close()
    assert monotonic() - began < 4
    db.handle.wait()


@pytest.mark.usefixtures("beside")
def test_a_fork_has_nothing_to_do_with_the_background(db, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    for key in range(4):
        db.insert("o", [(key, 1, "a", None)])
    assert gate.reached.wait(30)
    child = os.fork()
    if not child:
        signal.alarm(20)
        db.handle.wait()
        db.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    gate.opened.set()
    db.handle.wait()
    assert db.audit().ok


@pytest.mark.usefixtures("beside")
def test_threads_write_while_relations_are_compacted(db) -> None:
    def write(first: int) -> None:
        for key in range(first, first + 15):
            db.insert("o", [(key, key % 3, "a", None)])
            if key % 3 == 0:
                db.delete("o", [(key, 0, "a", None)])

    threads = [Thread(target=write, args=(first,)) for first in (0, 300, 600)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert db.audit().ok
    for thread in threads:
        thread.join()
    db.handle.wait()
    assert db.audit().ok
    assert len(db.read("o").rows()) == 30


@pytest.mark.spark
def test_executors_fold_what_is_long(spark, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everview.engines.spark import compaction as by_executors

    real, folded = by_executors.compact, []

    def compact(*args: Any) -> Any:
        made = real(*args)
        folded.append(args[1].name)
        return made

    monkeypatch.setattr(by_executors, "EXECUTORS_MIN_ROWS", 0)
    monkeypatch.setattr(by_executors, "compact", compact)
    chance, alive = random.Random(5), dict[int, tuple[Any, ...]]()
    with ev.open(str(tmp_path / "shop"), spark=spark) as db:
        db.sql(SETUP)
        for _ in range(3):
            for _ in range(2):
                change(db, chance, alive)
            db.compact()
            assert db.audit().ok
            assert max(each.segments for each in db.status()) <= 1
        assert {"o", "tag", "totals"} <= set(folded)
        monkeypatch.setattr(compaction, "INLINE_ROWS", -1)
        monkeypatch.setattr(compaction, "COMPACTION", EAGER)
        before = len(folded)
        for _ in range(4):
            change(db, chance, alive)
        db.handle.wait()
        assert len(folded) > before
        assert db.audit().ok
        assert len(db.read("o").rows()) == len(alive)
        assert db.store.verify(db.store.latest()) == {}


@pytest.mark.spark
def test_row_groups_that_executors_write_are_small(spark, tmp_path) -> None:
    from everview.engines.spark import actions

    assert actions.write_sorted(spark.range(40_000), str(tmp_path / "n"), ["id"]) == 40_000
    for file in (tmp_path / "n").glob("*.parquet"):
        metadata = pq.read_metadata(file)
        groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        assert max(groups) <= 16_384
