"""Killed at any moment, a store shows a whole epoch, and the lost transaction can be repeated."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import everview as ev
from cases import THOROUGH
from everview.errors import UserError

WRITER = """
import sys
import everview as ev

db = ev.open(sys.argv[1], engine=sys.argv[3])
print("ready", flush=True)
batch = int(sys.argv[2])
while True:
    with db.transaction() as tx:
        tx.insert("a", [(batch, i) for i in range(20)])
        tx.insert("b", [(batch, i) for i in range(10)])
        if batch:
            tx.delete("b", [(batch - 1, 9)])
    print(batch, flush=True)
    batch += 1
"""

SETUP = """
CREATE TABLE a (batch INT, i INT CHECK (i >= 0), UNIQUE (batch, i));
CREATE TABLE b (batch INT, i INT, FOREIGN KEY (batch, i) REFERENCES a (batch, i));
CREATE ASSERTION enough CHECK ((SELECT COUNT(*) FROM a) >= (SELECT COUNT(*) FROM b));
CREATE ASSERTION whole_batches CHECK (NOT EXISTS (
  SELECT batch, COUNT(*) AS n FROM a GROUP BY batch HAVING COUNT(*) <> 20));
CREATE MATERIALIZED VIEW per_batch AS
  SELECT a.batch, COUNT(*) AS n FROM a JOIN b ON a.batch = b.batch GROUP BY a.batch;
CREATE MATERIALIZED VIEW batches AS SELECT DISTINCT batch FROM a;
CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n FROM b
"""


KILLS = {"spark": 10, "duckdb": 60} if THOROUGH else {"spark": 3, "duckdb": 6}
"""A writer on Spark starts a Java of its own, which takes as long as all writers on DuckDB."""
PATIENCE = {"spark": 0.2, "duckdb": 0.03}
"""Seconds after a commit within which the writer is killed: some three transactions."""


def test_a_store_survives_sigkill_at_random_moments(open_db, engine, tmp_path):
    path = str(tmp_path / "store")
    with open_db(path) as db:
        db.sql(SETUP)
    chance, batch = random.Random(5), 0
    for _ in range(KILLS[engine]):
        commits, seconds = chance.randint(0, 3), chance.random() * PATIENCE[engine]
        batch = killed_while_writing(path, engine, batch, commits, seconds)
        with open_db(path) as db:
            batch = whole(db, batch)
    with open_db(path) as db:
        assert db.audit().ok
        assert batch > 3, "the writer was killed before it wrote anything"
        before = db.epoch
        with db.transaction() as tx:
            tx.insert("a", [(batch, i) for i in range(20)])
            tx.insert("b", [(batch, i) for i in range(10)])
            tx.delete("b", [(batch - 1, 9)])
        assert db.epoch > before
        whole(db, batch)
        assert db.audit().ok
        for rows in ([(batch, 3)], [(batch + 1, i) for i in range(19)], [(batch + 1, -1)]):
            with pytest.raises(UserError, match="T014"):
                db.insert("a", rows)
        with pytest.raises(UserError, match="T014"):
            db.insert("b", [(batch + 1, 0)])


REPEATED = "repeated\n"

SENDER = """
import sys
import everview as ev

db = ev.open(sys.argv[1], engine=sys.argv[3])
print("ready", flush=True)
batch = int(sys.argv[2])
while True:
    with db.transaction(id=("sender", batch)) as tx:
        tx.insert("a", [(batch, i) for i in range(20)])
        tx.insert("b", [(batch, 0)])
    if tx.repeated:
        print("repeated", flush=True)
    print(batch, flush=True)
    batch += 1
"""


def test_batches_sent_again_after_sigkill_count_once(tmp_path):
    """What was committed but not acknowledged is sent again by whoever was not told of it.

    Only some senders die between the two. So every second acknowledgment is lost as well. The
    engine has no part in it.
    """
    path, engine = str(tmp_path / "store"), "duckdb"
    with ev.open(path, engine=engine) as db:
        db.sql(SETUP)
    chance, batch = random.Random(7), 0
    for turn in range(KILLS[engine] * 2 // 3):
        commits, seconds = chance.randint(1, 3), chance.random() * PATIENCE[engine]
        batch = killed_while_writing(path, engine, batch, commits, seconds, SENDER)
        batch = max(batch - turn % 2, 0)
    with ev.open(path, engine=engine) as db:
        for number in range(max(batch - 2, 0), batch + 3):
            with db.transaction(id=("sender", number)) as tx:
                tx.insert("a", [(number, i) for i in range(20)])
                tx.insert("b", [(number, 0)])
        sent = range(batch + 3)
        assert batch > 3, "the senders were killed before they sent anything"
        assert sorted(db.read("a").rows()) == [(n, i) for n in sent for i in range(20)]
        assert dict(db.read("per_batch").rows()) == dict.fromkeys(sent, 20)
        assert db.read("total").rows() == [(len(sent),)]
        assert db.audit().ok


def killed_while_writing(
    path: str, engine: str, batch: int, commits: int, seconds: float, writer: str = WRITER
) -> int:
    """Start a writer, kill it some time after some commits; the first batch it did not tell of."""
    child = subprocess.Popen(
        [sys.executable, "-c", writer, path, str(batch), engine],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert child.stdout is not None
    with child.stdout as told:
        assert told.readline().strip() == "ready"
        done = [int(line) for _ in range(commits) if (line := told.readline()) != REPEATED]
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()
        done += [int(line) for line in told.read().split() if line != REPEATED.strip()]
    return done[-1] + 1 if done else batch


def whole(db, told: int) -> int:
    """Every batch is there in both tables or in neither; the next batch to write."""
    batches = {row[0] for row in db.read("batches").rows()}
    # What was told is committed; one more may have been committed but not told.
    assert max(batches, default=-1) in (told - 1, told)
    assert batches == set(range(len(batches)))
    last = len(batches) - 1
    expected = {b: 20 * (10 if b == last else 9) for b in batches}
    assert dict(db.read("per_batch").rows()) == expected
    assert db.read("total").rows() == [(sum(expected.values()) // 20,)]
    return len(batches)
