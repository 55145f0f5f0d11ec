"""Outer joins, dropped columns and TRUNCATE under views, statement by statement.

The cases are those of incremental views in PostgreSQL. After each statement every view is compared
with its query over the same rows in SQLite, as bags.
"""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest

import everview as ev

VIEWS = {
    "left_joined": "SELECT r.i AS i, r.v AS v, s.w AS w FROM r LEFT JOIN s ON r.i = s.i",
    "right_joined": "SELECT r.v AS v, s.i AS i, s.w AS w FROM r RIGHT JOIN s ON r.i = s.i",
    "full_joined": "SELECT r.i AS a, s.i AS b, v, w FROM r FULL JOIN s ON r.i = s.i",
    "three": "SELECT r.i AS a, s.i AS b, t.i AS c FROM r LEFT JOIN s ON r.i = s.i"
    " FULL JOIN t ON s.i = t.i",
    "above": "SELECT r.i AS i, s.w AS w FROM r LEFT JOIN s ON r.i = s.i AND s.w > 25",
    "anti": "SELECT r.i AS i, r.v AS v FROM r LEFT JOIN s ON r.i = s.i WHERE s.i IS NULL",
    "sums": "SELECT r.i AS i, COUNT(*) AS n, COUNT(s.w) AS m, SUM(s.w) AS total, MIN(s.w) AS low,"
    " MAX(s.w) AS high FROM r LEFT JOIN s ON r.i = s.i GROUP BY r.i",
    "whole": "SELECT COUNT(*) AS n, SUM(v) AS total, MAX(v) AS high FROM r",
    "once": "SELECT DISTINCT v FROM r",
    "null_keys": "SELECT r.v AS v, s.w AS w FROM r FULL JOIN s ON r.i IS NOT DISTINCT FROM s.i",
    "rows": "SELECT i, v FROM r WHERE (i, v) IN ((2, 20), (4, 40)) OR (v, i) > (29, 3)",
    "both": "SELECT r.i AS i, w FROM r LEFT JOIN s ON (r.i, r.v) = (s.i, s.w - 180)",
    "outside": "SELECT v FROM r WHERE i NOT IN (SELECT i FROM s)",
    "reach": "WITH RECURSIVE p(a, b) AS (SELECT i, v FROM r UNION"
    " SELECT s.w, p.b FROM p JOIN s ON p.a = s.i) SELECT a, b FROM p",
    "ranked": "SELECT i, v, RANK() OVER (PARTITION BY i ORDER BY v DESC) AS k FROM r",
    "self": "SELECT a.i AS i, b.v AS v FROM r a JOIN r b ON a.i = b.i",
}
TABLES = {"r": "i INT, v INT", "s": "i INT, w INT", "t": "i INT, x INT"}
KEPT = ("three", "anti", "once", "rows", "outside", "ranked")
"""Some of those that do not read `w`."""
CHANGES = (
    "INSERT INTO r VALUES (1, 10), (2, 20), (2, 21), (3, 30), (NULL, 0)",
    "INSERT INTO s VALUES (2, 200), (2, 25), (4, 40), (NULL, NULL)",
    "INSERT INTO t VALUES (2, 1), (5, 5), (NULL, 9)",
    "INSERT INTO s VALUES (1, 100)",
    "DELETE FROM s WHERE i = 2",
    "INSERT INTO r VALUES (4, 40), (4, 40)",
    "UPDATE s SET w = 30 WHERE i = 4",
    "UPDATE r SET i = 4 WHERE i = 1",
    "UPDATE s SET i = NULL WHERE i = 1",
    "DELETE FROM r WHERE i = 4",
    "UPDATE r SET v = NULL WHERE i = 2",
    "BEGIN; UPDATE r SET i = NULL WHERE i = 3; UPDATE s SET i = 3 WHERE i IS NULL; COMMIT",
    "BEGIN; DELETE FROM s WHERE w IS NULL; UPDATE r SET i = 4 WHERE i IS NULL; COMMIT",
    "UPDATE r SET (i, v) = (v, i) WHERE (i, v) <> (2, 20)",
    "INSERT INTO r VALUES (2, 20)",
    "TRUNCATE TABLE s",
    "INSERT INTO s VALUES (2, 7), (3, NULL), (7, 3), (3, 2)",
    "TRUNCATE TABLE r",
    "INSERT INTO r VALUES (3, 3), (NULL, NULL)",
    "TRUNCATE TABLE r, s, t",
    "TRUNCATE TABLE r",
    "INSERT INTO t VALUES (2, 2)",
    "INSERT INTO r VALUES (2, 2)",
)


class Beside:
    """A database, and the same tables in SQLite."""

    def __init__(self, db) -> None:
        self.db, self.other = db, sqlite3.connect(":memory:")
        for name, columns in TABLES.items():
            self.run(f"CREATE TABLE {name} ({columns})")
        db.sql(";".join(f"CREATE VIEW {name} AS {text}" for name, text in VIEWS.items()))

    def run(self, text: str) -> None:
        self.db.sql(text)
        if text.startswith("TRUNCATE TABLE "):
            for name in text.removeprefix("TRUNCATE TABLE ").split(", "):
                self.other.execute(f"DELETE FROM {name}")
        else:
            self.other.executescript(text)

    def check(self, views: dict[str, str]) -> None:
        for name, text in views.items():
            assert Counter(self.db.read(name).rows()) == Counter(self.other.execute(text)), name


def run_all(db) -> Beside:
    beside = Beside(db)
    for text in CHANGES:
        beside.run(text)
        beside.check(VIEWS)
    return beside


def test_outer_joins_follow_inserts_updates_deletes_and_truncation(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        beside = run_all(db)
        db.compact()
        beside.run("DELETE FROM r")
        beside.check(VIEWS)


@pytest.mark.spark
def test_outer_joins_follow_truncation_on_spark(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        beside = Beside(db)
        for text in (*CHANGES[:3], "TRUNCATE TABLE s"):
            beside.run(text)
        beside.check(VIEWS)


def test_a_column_that_no_view_reads_is_dropped_under_joins(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        beside = Beside(db)
        for text in CHANGES[:4]:
            beside.run(text)
        beside.run("ALTER TABLE t DROP COLUMN x")
        for text in CHANGES[4:15]:
            beside.run(text)
            beside.check(VIEWS)
        db.sql("ALTER TABLE s DROP COLUMN w CASCADE")
        beside.other.execute("ALTER TABLE s DROP COLUMN w")
        left = {name: text for name, text in VIEWS.items() if name in KEPT}
        assert left.keys() <= db.catalog.views.keys()
        assert not {"left_joined", "sums", "above", "reach"} & db.catalog.views.keys()
        for text in ("DELETE FROM s WHERE i = 4", "INSERT INTO s VALUES (3), (3)"):
            beside.run(text)
            beside.check(left)
        assert db.audit().ok
