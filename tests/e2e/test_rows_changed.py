"""How many rows a statement changed is its result."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev


@pytest.fixture
def db(tmp_path, open_db):
    with open_db(tmp_path / "s") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE bag (v INT)")
        db.sql("CREATE VIEW sums AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
        db.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, NULL)")
        yield db


def test_each_kind_of_statement_tells_it(db):
    inserted = db.sql("INSERT INTO bag VALUES (1), (1), (NULL), (1)")
    assert inserted.changed == 4
    assert inserted.rows() == [(4,)]
    assert inserted.columns == ("num_affected_rows",)
    assert db.sql("INSERT INTO bag SELECT v FROM t WHERE id > 100").changed == 0
    assert db.sql("UPDATE bag SET v = v WHERE v = 1").changed == 3
    assert db.sql("UPDATE bag SET v = 2").changed == 4
    assert db.sql("DELETE FROM bag WHERE v = 2").changed == 4
    assert db.sql("DELETE FROM bag").changed == 0
    assert db.sql("SELECT 1 AS x").changed is None
    assert db.sql("CREATE VIEW v AS SELECT id FROM t") is None


SOURCE = (
    "USING (SELECT * FROM VALUES (1, 11), (2, 21), (8, 81), (9, 91) AS s(id, v)) AS s "
    "ON t.id = s.id "
)
MERGES = [
    ("WHEN MATCHED THEN UPDATE SET v = s.v", 2, [(1, 11), (2, 21), (3, None)]),
    ("WHEN NOT MATCHED THEN INSERT *", 2, [(1, 10), (2, 20), (3, None), (8, 81), (9, 91)]),
    ("WHEN MATCHED THEN DELETE", 2, [(3, None)]),
    (
        "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED AND s.id = 8 THEN INSERT *",
        3,
        [(2, 21), (3, None), (8, 81)],
    ),
    ("WHEN MATCHED AND s.id > 100 THEN DELETE", 0, [(1, 10), (2, 20), (3, None)]),
]


@pytest.mark.parametrize(("clauses", "changed", "after"), MERGES)
def test_a_merge_counts_each_row_once(db, clauses, changed, after):
    assert db.sql(f"MERGE INTO t {SOURCE}{clauses}").changed == changed
    assert sorted(db.read("t").rows()) == after
    counted = Counter(v for _, v in after)
    assert Counter(dict(db.read("sums").rows())) == counted


def test_it_is_told_inside_a_transaction_and_forgotten_with_it(db):
    db.sql("BEGIN")
    assert db.sql("UPDATE t SET v = 1 WHERE id < 3").changed == 2
    assert db.sql("DELETE FROM t WHERE v = 1").changed == 2
    db.sql("ROLLBACK")
    assert db.sql("DELETE FROM t WHERE v = 1").changed == 0


def test_of_a_set_only_rows_that_have_an_effect_count(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb", allow=[f"files:{tmp_path}"]) as db:
        db.sql("CREATE TABLE s (a INT, b INT) WITH (kind = 'set')")
        path = tmp_path / "rows.csv"
        path.write_text("a,b\n1,1\n4,4\n")
        for text, changed in {
            "INSERT INTO s VALUES (1, 1), (1, 1), (2, 2)": 2,
            "INSERT INTO s VALUES (1, 1), (3, 3)": 1,
            f"COPY INTO s FROM '{path}'": 1,
            "INSERT INTO s SELECT * FROM s": 0,
            "DELETE FROM s WHERE a > 7": 0,
            "UPDATE s SET b = b WHERE a < 3": 2,
            "TRUNCATE TABLE s": 4,
        }.items():
            assert db.sql(text).changed == changed, text
