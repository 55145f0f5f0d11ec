"""Transactions of many rows: written beside the computing, checked by their neighbours."""

from __future__ import annotations

import pyarrow as pa
import pytest

import everview as ev
from everview.database.database import Database
from everview.errors import UserError
from everview.store.store import Store

ROWS = 30_000


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE t (k BIGINT, l STRING, v INT, PRIMARY KEY (k, l))")
        opened.sql("CREATE VIEW sums AS SELECT v, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY v")
        opened.insert("t", rows(0, ROWS, 7))
        yield opened


def rows(first: int, last: int, modulus: int) -> pa.Table:
    keys = range(first, last)
    values = [None if key % 50 == 0 else key % modulus for key in keys]
    texts = [str(key % 3) for key in keys]
    return pa.table({"k": keys, "l": texts, "v": pa.array(values, pa.int64())})


def holds(db: Database, expected: int) -> None:
    assert db.read("t").to_arrow().num_rows == expected
    assert db.audit().ok


def test_many_rows_go_come_back_and_are_replaced(db):
    with db.transaction() as tx:
        tx.insert("t", rows(ROWS, 2 * ROWS, 7))
        tx.delete("t", rows(5, ROWS, 7))
    holds(db, ROWS + 5)
    db.insert("t", rows(5, ROWS, 11))
    holds(db, 2 * ROWS)
    db.upsert("t", rows(0, 2 * ROWS, 13))
    holds(db, 2 * ROWS)
    with db.transaction() as tx:
        tx.insert("t", rows(1, ROWS, 5))
        tx.delete("t", rows(1, ROWS, 13))
    holds(db, 2 * ROWS)
    db.delete("t", rows(1, ROWS, 5))
    db.delete("t", rows(ROWS, 2 * ROWS, 13))
    holds(db, 1)


def test_one_wrong_row_among_many_is_named_and_nothing_changes(db):
    epoch = db.epoch
    wrong = pa.table({"k": [17], "l": ["2"], "v": [0]})
    with pytest.raises(UserError, match=r"T011.*k=17, l='2', v=0"):
        db.delete("t", pa.concat_tables([rows(20, ROWS, 7), wrong]))
    with pytest.raises(UserError, match=r"T010.*k=17, l='2'"):
        db.insert("t", pa.concat_tables([rows(ROWS, 2 * ROWS, 7), wrong]))
    with pytest.raises(UserError, match=r"T010.*k=90001, l='1'"):
        db.insert("t", pa.concat_tables([rows(ROWS, 3 * ROWS + 2, 7), rows(90_001, 90_002, 2)]))
    missing = pa.table({"k": [90_000], "l": pa.nulls(1, pa.string()), "v": [1]})
    with pytest.raises(UserError, match=r"T012.*k=90000, l=None"):
        db.insert("t", pa.concat_tables([rows(ROWS, 2 * ROWS, 7), missing]))
    assert db.epoch == epoch
    holds(db, ROWS)


def test_a_segment_that_cannot_be_written_ends_the_transaction(db, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    epoch = db.epoch
    with monkeypatch.context() as patch:
        patch.setattr(Store, "write_segment", full)
        with pytest.raises(OSError, match="no space left"):
            db.delete("t", rows(0, ROWS, 7))
    assert db.epoch == epoch
    holds(db, ROWS)
    db.delete("t", rows(0, ROWS, 7))
    holds(db, 0)
