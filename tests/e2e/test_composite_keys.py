"""A key of several columns: rows are looked up by all of them, and answers stay right."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import everview as ev
from everview.program.schedule import _shared
from everview.program.steps import Fetch, KeySet

LINES = 200
"""So many lines have the same first column, which alone would bring all of them."""


def declare(db) -> None:
    db.sql("CREATE TABLE t (tenant INT, id BIGINT, n BIGINT, PRIMARY KEY (tenant, id))")
    db.insert("t", [(tenant, i, i % 5) for tenant in range(3) for i in range(LINES)])


def test_rows_are_looked_up_by_all_columns_of_the_key(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        declare(db)
        with db.transaction() as tx:
            tx.delete("t", [(1, 7, 2), (2, 9, 4)])
            tx.insert("t", [(1, 7, 50), (2, LINES, 1)])
        newest = next(e for e in db.history() if e.epoch == db.epoch and e.view is None)
        assert newest.rows_read == 2
        assert db.audit().ok


def test_rows_named_by_keys_and_cascades_look_at_all_columns_too(tmp_path, monkeypatch):
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        declare(db)
        db.sql("""CREATE TABLE below (tenant INT, id BIGINT, up BIGINT, PRIMARY KEY (tenant, id),
            FOREIGN KEY (tenant, up) REFERENCES t ON DELETE CASCADE)""")
        db.insert("below", [(tenant, i, i) for tenant in range(3) for i in range(LINES)])
        lookup, read = db.engine.local.lookup, []

        def counted(*given):
            rows = lookup(*given)
            read.append(rows.num_rows)
            return rows

        monkeypatch.setattr(db.engine.local, "lookup", counted)
        db.update("t", keys=[(1, 7), (2, 9)], set={"n": 70})
        db.upsert("t", [(1, 8, 80)])
        db.delete("t", keys=[(1, 7)])
        assert sum(read) < 20, read
        monkeypatch.undo()
        rows = {row[:2]: row[2] for row in db.read("t").rows()}
        assert (rows[2, 9], rows[1, 8], len(rows)) == (70, 80, 3 * LINES - 1)
        assert {(1, 7, 7)} == {(k, i, i) for k in range(3) for i in range(LINES)} - {
            *db.read("below").rows()
        }
        assert db.audit().ok


def test_rows_that_come_and_go_in_many_transactions_are_all_there(open_db, tmp_path):
    """What came in one transaction and went in another is in two runs, the second of them small."""
    rng = random.Random(4)
    with open_db(tmp_path / "store") as db:
        declare(db)
        rows = {(tenant, i): i % 5 for tenant in range(3) for i in range(LINES)}
        for size in (90, 2, 60, 150, 1, 5, 80, 3, 120, 40):
            gone = rng.sample(sorted(rows), size)
            with db.transaction() as tx:
                tx.delete("t", [(*key, rows.pop(key)) for key in gone])
                come = {key: rng.randrange(9) for key in gone[::2]}
                tx.insert("t", [(*key, n) for key, n in come.items()])
            rows |= come
            assert Counter(db.read("t").rows()) == Counter((*k, n) for k, n in rows.items())
            assert len(rows) > LINES


def test_what_breaks_a_rule_is_still_found(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        declare(db)
        before = Counter(db.read("t").rows())
        with pytest.raises(ev.UserError, match="primary key"):
            db.insert("t", [(1, 7, 99), (1, LINES, 0)])
        with pytest.raises(ev.UserError, match="does not have the rows"):
            db.delete("t", [(1, 7, 3), (1, 8, 3)])
        assert Counter(db.read("t").rows()) == before


def test_views_that_want_more_than_the_key_get_it(open_db, tmp_path):
    """The largest of a tenant needs all its rows, and shares the fetch of the key."""
    rng = random.Random(3)
    with open_db(tmp_path / "store") as db:
        declare(db)
        db.sql(
            "CREATE MATERIALIZED VIEW most AS SELECT tenant, MEDIAN(n) AS m FROM t GROUP BY tenant;"
            "CREATE MATERIALIZED VIEW pairs AS SELECT a.tenant, a.id, b.n FROM t a JOIN t b"
            " ON a.tenant = b.tenant AND a.id = b.n"
        )
        rows = {(tenant, i): i % 5 for tenant in range(3) for i in range(LINES)}
        for _ in range(6):
            gone = rng.sample(sorted(rows), 4)
            keys = {(rng.randrange(4), rng.randrange(2 * LINES)) for _ in range(4)}
            come = {key: rng.randrange(9) for key in keys if key not in rows or key in gone}
            with db.transaction() as tx:
                tx.delete("t", [(*key, rows.pop(key)) for key in gone])
                tx.insert("t", [(*key, n) for key, n in come.items()])
            rows |= come
            assert Counter(db.read("t").rows()) == Counter((*k, n) for k, n in rows.items())
            assert db.audit().ok


def test_who_wants_all_rows_of_a_key_is_not_narrowed_by_who_wants_some():
    some = Fetch("a", "t", (), "k", (KeySet("change", "k", (("m", "m"),)),))
    every = Fetch("b", "t", (), "k", (KeySet("change", "k"),))
    for fetches in ([some, every], [every, some]):
        [merged] = _shared(fetches, {})
        assert merged.keys == (KeySet("change", "k"),)
