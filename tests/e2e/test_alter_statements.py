"""ALTER, TRUNCATE, SHOW, DESCRIBE, COMMENT: what each does, and what each refuses."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

import everview as ev
from e2e.interrupting import raising, recorded
from everview.errors import UserError

SETUP = """
CREATE TABLE t (id INT PRIMARY KEY COMMENT 'who', a INT, b STRING, c VARCHAR(5)) COMMENT 'it''s';
CREATE TABLE u (k INT, b STRING);
CREATE VIEW sums AS SELECT b, SUM(a) AS s FROM t GROUP BY b;
CREATE VIEW over AS SELECT COUNT(*) AS n FROM sums;
CREATE VIEW kept AS SELECT id FROM t;
INSERT INTO t VALUES (1, 10, 'x', 'one'), (2, 20, 'y', NULL), (3, NULL, 'x', 'three');
INSERT INTO u VALUES (1, 'x'), (1, 'x'), (9, NULL)
"""


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql(SETUP)
        yield opened


def everything(db) -> tuple[object, ...]:
    """All that a statement could change."""
    rows = {n: Counter(db.read(n).rows()) for n in (*db.catalog.tables, *db.catalog.views)}
    return db.epoch, db.catalog.to_json(), rows


BAD = {
    "ALTER TABLE nope ADD COLUMN x INT": "C002",
    "ALTER TABLE sums ADD COLUMN x INT": "C005",
    "ALTER VIEW t RENAME TO x": "C005",
    "ALTER VIEW sums ADD COLUMN x INT": "Q003",
    "ALTER TABLE t ADD COLUMN A INT": "Q004",
    "ALTER TABLE t ADD COLUMN _w INT": "Q011",
    "ALTER TABLE t ADD COLUMN x INTERVAL": "Q005",
    "ALTER TABLE t ADD COLUMN x INT NOT NULL": "Q004",
    "ALTER TABLE t ADD COLUMN x INT DEFAULT a": "Q004",
    "ALTER TABLE t ADD COLUMN x INT DEFAULT (SELECT MAX(a) FROM t)": "Q004",
    "ALTER TABLE t ADD COLUMN x INT DEFAULT 'no number'": None,
    "ALTER TABLE t ADD COLUMN x INT FIRST": "Q003",
    "ALTER TABLE t ADD COLUMN x NOPE": "Q003",
    "ALTER TABLE t ADD COLUMN x": "Q003",
    "ALTER TABLE t ADD COLUMN x INT PRIMARY KEY": "Q003",
    "ALTER TABLE t DROP COLUMN nope": "Q006",
    "ALTER TABLE t DROP COLUMN id": "C008",
    "ALTER TABLE t DROP COLUMN a": "C008",
    "ALTER TABLE t ADD COLUMN x INT, DROP COLUMN a": "C008",
    "ALTER TABLE t RENAME COLUMN nope TO x": "Q006",
    "ALTER TABLE t RENAME COLUMN a TO B": "Q004",
    "ALTER TABLE t RENAME COLUMN a TO `x/y`": "Q011",
    "ALTER TABLE t ALTER COLUMN a TYPE SMALLINT": "Q005",
    "ALTER TABLE t ALTER COLUMN a TYPE STRING": "Q005",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT": "C008",
    "ALTER TABLE t ALTER COLUMN c TYPE VARCHAR(4)": "Q005",
    "ALTER TABLE t ALTER COLUMN b TYPE VARCHAR(40)": "Q005",
    "ALTER TABLE t RENAME TO u": "C001",
    "ALTER TABLE t RENAME TO `..`": "Q011",
    "ALTER VIEW sums RENAME TO over": "C001",
    "TRUNCATE TABLE nope": "C002",
    "TRUNCATE TABLE sums": "C004",
    "TRUNCATE TABLE t PARTITION (a = 1)": None,
    "COMMENT ON TABLE sums IS 'x'": "C005",
    "COMMENT ON COLUMN t.nope IS 'x'": "Q006",
    "COMMENT ON COLUMN id IS 'x'": "Q006",
    "SHOW COLUMNS IN nope": "C002",
    "SHOW PARTITIONS t": "Q003",
    "DESCRIBE EXTENDED t": "Q003",
    "SELECT * FROM information_schema.nope": "C002",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_input_is_refused_with_its_place_and_a_remedy_and_changes_nothing(db, text):
    before = everything(db)
    with pytest.raises(UserError) as refused:
        db.sql(text)
    assert BAD[text] in (None, refused.value.code)
    assert refused.value.span is not None
    assert refused.value.remedy
    assert everything(db) == before


def test_views_that_would_break_are_named_and_with_cascade_they_go(db):
    with pytest.raises(UserError, match="sums, over would break") as refused:
        db.sql("ALTER TABLE t DROP COLUMN a")
    assert "drop over, sums first, or write CASCADE" in str(refused.value)
    db.sql("ALTER TABLE t DROP COLUMN a CASCADE")
    assert list(db.catalog.views) == ["kept"]
    assert sorted(db.read("t").rows()) == [(1, "x", "one"), (2, "y", None), (3, "x", "three")]


def test_a_dropped_column_is_missed_though_its_name_means_another_one_then(db):
    db.sql("CREATE VIEW inner_b AS SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE b = 'x')")
    with pytest.raises(UserError, match="inner_b would break"):
        db.sql("ALTER TABLE u DROP COLUMN b")
    assert len(db.read("inner_b").rows()) == 3


def test_inside_a_transaction_only_rows_change(db):
    db.sql("BEGIN")
    with pytest.raises(UserError, match="T008"):
        db.sql("ALTER TABLE t ADD COLUMN x INT")
    db.sql("TRUNCATE TABLE t; ROLLBACK")
    assert len(db.read("t").rows()) == 3
    db.sql("BEGIN; TRUNCATE TABLE t; INSERT INTO t VALUES (7, 7, 'z', NULL); COMMIT")
    assert db.read("sums").rows() == [("z", 7)]


def test_if_exists_and_if_not_exists_change_nothing(db):
    before = everything(db)
    db.sql("ALTER TABLE IF EXISTS nope RENAME TO x")
    db.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS a BIGINT")
    db.sql("ALTER TABLE t DROP COLUMN IF EXISTS nope")
    assert everything(db) == before


def test_a_feed_goes_on_under_another_name(db):
    seen = Counter(db.changes("sums").rows())
    db.sql("ALTER VIEW sums RENAME TO totals; ALTER TABLE t RENAME TO items")
    db.sql("CREATE TABLE t (other STRING)")
    db.sql("DELETE FROM items WHERE id = 2")
    assert Counter(db.changes("totals").rows()) - seen == Counter([("y", 20, -1, db.epoch)])
    assert len(db.changes("items").rows()) == 4
    assert db.audit().ok


def test_wider_types_hold_the_values_there_are(db):
    db.sql("CREATE TABLE w (i TINYINT, f FLOAT, d DECIMAL(5,2), at DATE, n INT)")
    db.sql(
        "INSERT INTO w VALUES (1, 0.1, 12.34, DATE '1969-12-30', 7), (NULL, NULL, NULL, NULL, 8)"
    )
    before = db.sql(
        "SELECT CAST(i AS BIGINT), CAST(f AS DOUBLE), CAST(d AS DECIMAL(9,4)), "
        "CAST(at AS TIMESTAMP_NTZ), CAST(n AS DOUBLE) FROM w ORDER BY n"
    ).rows()
    db.compact()
    db.sql(
        "ALTER TABLE w ALTER COLUMN i TYPE BIGINT, ALTER COLUMN f TYPE DOUBLE, "
        "ALTER COLUMN d TYPE DECIMAL(9,4), ALTER COLUMN at TYPE TIMESTAMP_NTZ, "
        "ALTER COLUMN n TYPE DOUBLE"
    )
    assert db.sql("SELECT * FROM w ORDER BY n").rows() == before
    db.sql("UPDATE w SET d = 99999.1234 WHERE i = 1")
    db.compact()
    assert db.sql("SELECT COUNT(*) AS n FROM w WHERE d > 99999").rows() == [(1,)]


def test_what_show_create_says_declares_the_same_again(db, tmp_path):
    db.sql("COMMENT ON COLUMN sums.s IS 'a `sum`'; COMMENT ON VIEW sums IS 'it''s'")
    asked = ["SHOW CREATE TABLE t", "SHOW CREATE TABLE u", "SHOW CREATE VIEW sums"]
    texts = [db.sql(each).rows()[0][0] for each in asked]
    with ev.open(str(tmp_path / "other"), engine="duckdb") as other:
        for text in texts:
            other.sql(text)
        assert [other.sql(each).rows()[0][0] for each in asked] == texts
        assert other.catalog.tables == {name: db.catalog.tables[name] for name in ("t", "u")}


def test_what_is_declared_can_be_read(db):
    assert db.sql("SHOW TABLES").rows() == [("t", "it's"), ("u", "")]
    assert [name for name, _ in db.sql("SHOW VIEWS").rows()] == ["sums", "over", "kept"]
    assert db.sql("DESCRIBE t").rows()[0] == ("id", "int", False, "who")
    counted = db.sql(
        "SELECT t.table_type, COUNT(*) AS n FROM information_schema.tables t "
        "JOIN information_schema.columns c ON t.table_name = c.table_name GROUP BY 1 ORDER BY 1"
    )
    assert counted.rows() == [("BASE TABLE", 6), ("MATERIALIZED VIEW", 4)]
    texts = dict(db.sql("SELECT table_name, view_definition FROM information_schema.views").rows())
    assert texts["kept"] == "SELECT id FROM t"


def test_an_exception_at_any_moment_leaves_an_alter_done_or_not_begun(db):
    def flip(number: int) -> None:
        db.sql(f"ALTER TABLE t ADD COLUMN x{number} INT DEFAULT {number}")

    with recorded() as sites:
        flip(0)
    every = max(1, len(sites) // 12)
    for number, at in zip(count(1), range(0, len(sites), every), strict=False):
        width = len(db.catalog.tables["t"].columns)
        raising(lambda n=number: flip(n), KeyboardInterrupt, at)
        assert len(db.catalog.tables["t"].columns) in (width, width + 1)
        db.sql("UPDATE t SET a = a + 1 WHERE id = 1")
        assert [row[:2] for row in db.read("t").rows() if row[0] == 1] == [(1, 10 + number)]
        assert Counter(db.read("sums").rows()) == Counter([("x", 10 + number), ("y", 20)])
    assert db.audit().ok
