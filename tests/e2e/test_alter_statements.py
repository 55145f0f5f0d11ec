"""ALTER, TRUNCATE, SHOW, DESCRIBE, COMMENT: what each does, and what each refuses."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

import everview as ev
from cases import check_each
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
    "ALTER TABLE t ALTER COLUMN a SET NOT NULL CASCADE": "Q003",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT RESTRICT": "C008",
    "ALTER TABLE t ALTER COLUMN nope SET DEFAULT 1": "Q006",
    "ALTER TABLE t ALTER COLUMN nope DROP DEFAULT": "Q006",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT 'no number'": None,
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT id": "Q004",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT rand()": None,
    "ALTER TABLE t ADD COLUMN x INT DEFAULT 0 CHECK (x > 0)": "T014",
    "ALTER TABLE t ADD COLUMN x INT DEFAULT 0 UNIQUE": "T014",
    "ALTER TABLE t ADD COLUMN x INT DEFAULT 0 REFERENCES t": "T014",
    "ALTER TABLE t ADD COLUMN x INT CHECK (nope > 0)": "C009",
    "ALTER TABLE t ADD COLUMN x INT REFERENCES nowhere": "C009",
    "ALTER TABLE t ADD COLUMN x STRING REFERENCES t": "C009",
    "ALTER TABLE t ADD COLUMN x INT GENERATED ALWAYS AS (a + 1)": "Q003",
    "ALTER TABLE t RENAME TO u": "C001",
    "ALTER TABLE t RENAME TO `..`": "Q011",
    "ALTER VIEW sums RENAME TO over": "C001",
    "TRUNCATE TABLE nope": "C002",
    "TRUNCATE TABLE sums": "C004",
    "TRUNCATE TABLE t, nope": "C002",
    "TRUNCATE TABLE IF EXISTS sums": "C004",
    "TRUNCATE TABLE t PARTITION (a = 1)": None,
    "TRUNCATE TABLE t RESTART IDENTITY": None,
    "COMMENT ON TABLE sums IS 'x'": "C005",
    "COMMENT ON TABLE sums IS NULL": "C005",
    "COMMENT ON TABLE t IS": "Q001",
    "COMMENT ON TABLE t IS 1": None,
    "START": None,
    "START TRANSACTION NOW": None,
    "START TRANSACTION WITH (number = 1)": "Q003",
    "CREATE TABLE x (a INT, b INT GENERATED ALWAYS AS (a) VIRTUAL)": "Q001",
    "CREATE TABLE x (a INT STORED)": None,
    "START TRANSACTION ISOLATION LEVEL SERIALIZABLE": "Q003",
    "COMMENT ON TABLE t IS NULL NULL": "Q001",
    "CREATE TABLE x (a INT, b INT GENERATED ALWAYS AS STORED)": "Q001",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT": "Q003",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT CASCADE CASCADE": "Q003",
    "ALTER TABLE sums ALTER COLUMN s SET DEFAULT 1": "C005",
    "ALTER TABLE t CASCADE": "Q003",
    "ALTER TABLE t ADD COLUMN x INT CHECK ()": "Q001",
    "ALTER TABLE t ADD COLUMN x INT CONSTRAINT sums CHECK (x > 1)": "C001",
    "ALTER TABLE t ADD COLUMN x INT REFERENCES t ON UPDATE CASCADE": "Q004",
    "ALTER TABLE t ADD COLUMN x INT REFERENCES t (nope)": "C009",
    "ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 1 REFERENCES t ON DELETE SET NULL": "C009",
    "UPDATE t SET DEFAULT = 1": "Q007",
    "UPDATE t SET id = DEFAULT": "T012",
    "DELETE FROM t WHERE a = DEFAULT": "Q007",
    "SELECT id FROM t WHERE (id, a) = 3": "Q012",
    "SELECT id FROM t WHERE NULL < (id, a)": "Q012",
    "SELECT id FROM t WHERE (id, a) IN ((1, 2), 3)": "Q012",
    "SELECT id FROM t WHERE (id, a) IN ((1, 2, 3))": "Q012",
    "SELECT id FROM t WHERE (id, a) IN (SELECT id FROM t)": None,
    "SELECT id FROM t WHERE (id, a) IS TRUE": "Q012",
    "SELECT id FROM t WHERE (id, a) IS NULLS": "Q007",
    "COMMENT ON COLUMN t.nope IS 'x'": "Q006",
    "COMMENT ON COLUMN id IS 'x'": "Q006",
    "SHOW COLUMNS IN nope": "C002",
    "SHOW PARTITIONS t": "Q003",
    "DESCRIBE EXTENDED t": "Q003",
    "SELECT * FROM information_schema.nope": "C002",
}


def test_bad_input_is_refused_with_its_place_and_a_remedy_and_changes_nothing(db):
    before = everything(db)

    def is_refused(text: str) -> None:
        with pytest.raises(UserError) as refused:
            db.sql(text)
        assert BAD[text] in (None, refused.value.code)
        assert refused.value.span is not None
        assert refused.value.remedy
        assert everything(db) == before

    check_each(BAD, is_refused)


def test_views_that_would_break_are_named_and_with_cascade_they_go(db):
    with pytest.raises(UserError, match="sums, over would break") as refused:
        db.sql("ALTER TABLE t DROP COLUMN a")
    assert "drop over, sums first, or write CASCADE" in str(refused.value)
    db.sql("ALTER TABLE t DROP COLUMN a CASCADE")
    assert list(db.catalog.views) == ["kept"]
    assert sorted(db.read("t").rows()) == [(1, "x", "one"), (2, "y", None), (3, "x", "three")]


def test_a_wider_type_takes_views_with_it_where_cascade_is_written(db):
    db.sql("CREATE ASSERTION few CHECK ((SELECT COUNT(*) FROM over) < 9)")
    with pytest.raises(UserError, match="sums, over, few would break"):
        db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT")
    db.sql("ALTER TABLE t ALTER COLUMN a TYPE BIGINT, ALTER COLUMN c TYPE STRING CASCADE")
    assert list(db.catalog.views) == ["kept"]
    assert not db.catalog.constraints
    db.sql("INSERT INTO t VALUES (4, 5000000000, NULL, 'longer')")
    assert db.sql("SELECT a, c FROM t WHERE id = 4").rows() == [(5_000_000_000, "longer")]


TIES = (
    "SELECT id, a FROM k ORDER BY a LIMIT 2",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY b ORDER BY a) AS n FROM k",
    "SELECT id, LAG(a) OVER (PARTITION BY b ORDER BY a) AS n FROM k WHERE id > 0",
    "SELECT b, a FROM k QUALIFY ROW_NUMBER() OVER (PARTITION BY b ORDER BY a DESC) = 1",
    "SELECT id, SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM k",
    "SELECT * FROM (SELECT id, a FROM k ORDER BY a LIMIT 3) AS q ORDER BY a DESC LIMIT 1",
)


@pytest.mark.parametrize("query", TIES)
def test_a_column_behind_the_key_breaks_no_ties_and_can_be_dropped(db, query):
    """Rows tie in `a`; the key decides between them, so what comes after it is not read."""
    db.sql("CREATE TABLE k (id INT PRIMARY KEY, a INT, b INT, rest INT)")
    db.sql(f"CREATE VIEW first AS {query}")
    db.insert("k", [(i, i // 3, i % 2, -i) for i in range(12)])
    before = Counter(db.read("first").rows())
    db.sql("ALTER TABLE k DROP COLUMN rest")
    assert Counter(db.read("first").rows()) == before
    db.sql("DELETE FROM k WHERE id < 2; INSERT INTO k VALUES (-1, 0, 1), (20, 1, 1)")
    assert db.audit().ok
    with pytest.raises(UserError, match="first would break"):
        db.sql("ALTER TABLE k DROP COLUMN a")


def test_without_a_key_all_columns_break_ties(db):
    db.sql("CREATE VIEW first AS SELECT k FROM u ORDER BY k LIMIT 1")
    with pytest.raises(UserError, match="first would break"):
        db.sql("ALTER TABLE u DROP COLUMN b")


def test_a_default_is_set_and_dropped_for_rows_that_come(db):
    db.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 'new', ALTER COLUMN a SET DEFAULT 1 + 1")
    db.sql("INSERT INTO t (id) VALUES (4)")
    db.insert("t", [{"id": 5, "b": "given"}])
    db.sql("ALTER TABLE t ALTER COLUMN b DROP DEFAULT")
    db.sql("INSERT INTO t (id, a) VALUES (6, DEFAULT)")
    rows = {row[0]: row[1:3] for row in db.read("t").rows()}
    assert rows[1] == (10, "x")
    assert (rows[4], rows[5], rows[6]) == ((2, "new"), (2, "given"), (2, None))
    assert "DEFAULT (1 + 1)" in db.sql("SHOW CREATE TABLE t").rows()[0][0]


def test_an_added_column_brings_its_constraints(db):
    db.sql("ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 5 CONSTRAINT pos CHECK (n > a - 20)")
    db.sql("ALTER TABLE t ADD COLUMN code INT UNIQUE, ADD COLUMN up INT REFERENCES t")
    db.sql("UPDATE t SET code = id, up = 1")
    refusals = {
        "INSERT INTO t (id, n) VALUES (7, NULL)": "T012",
        "INSERT INTO t (id, a) VALUES (7, 25)": "T014",
        "INSERT INTO t (id, code) VALUES (7, 1)": "T014",
        "INSERT INTO t (id, up) VALUES (7, 99)": "T014",
        "DELETE FROM t WHERE id = 1": "T014",
    }
    for text, code in refusals.items():
        with pytest.raises(UserError) as refused:
            db.sql(text)
        assert refused.value.code == code, text
    db.sql("INSERT INTO t (id, a, code, up) VALUES (7, 24, 7, 3)")
    db.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS code INT CHECK (code > 100)")
    assert len(db.catalog.constraints) == 3
    assert db.audit().ok


def test_the_standard_tables_say_which_constraints_there_are(db):
    db.sql("""CREATE TABLE c (x INT, y INT, PRIMARY KEY (x, y),
        CONSTRAINT twice UNIQUE (y, x) NOT ENFORCED, CONSTRAINT small CHECK (x < 9),
        CONSTRAINT of FOREIGN KEY (x) REFERENCES t (id) ON DELETE CASCADE)""")

    def rows(table, of):
        wanted = "WHERE constraint_name IN ('c_pkey', 'twice', 'small', 'of')"
        return db.sql(f"SELECT {of} FROM information_schema.{table} {wanted} ORDER BY ALL").rows()

    assert rows("table_constraints", "constraint_name, table_name, constraint_type, enforced") == [
        ("c_pkey", "c", "PRIMARY KEY", True),
        ("of", "c", "FOREIGN KEY", True),
        ("small", "c", "CHECK", True),
        ("twice", "c", "UNIQUE", False),
    ]
    assert rows("key_column_usage", "constraint_name, ordinal_position, column_name") == [
        ("c_pkey", 1, "x"),
        ("c_pkey", 2, "y"),
        ("of", 1, "x"),
        ("twice", 1, "y"),
        ("twice", 2, "x"),
    ]
    assert rows("referential_constraints", "referenced_table_name, delete_rule") == [
        ("t", "CASCADE")
    ]
    assert rows("check_constraints", "check_clause") == [("x < 9",)]


def test_a_comment_goes_with_null_and_start_begins_a_transaction(db):
    db.sql("COMMENT ON COLUMN t.id IS NULL; COMMENT ON TABLE t IS NULL")
    assert "COMMENT" not in db.sql("SHOW CREATE TABLE t").rows()[0][0]
    db.sql("START TRANSACTION; DELETE FROM t; ROLLBACK")
    assert len(db.read("t").rows()) == 3
    for repeated in (False, True):
        db.sql("START TRANSACTION WITH (writer = 'w', number = 1); DELETE FROM t WHERE id = ?", [1])
        assert db.sql("COMMIT").rows()[0][1] is repeated
    assert len(db.read("t").rows()) == 2


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


def test_truncate_cascade_empties_what_refers_to_the_table_at_any_distance(db):
    db.sql("""
        CREATE TABLE p (id INT PRIMARY KEY);
        CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p);
        CREATE TABLE d (c INT REFERENCES c ON DELETE SET NULL, tags BAG<INT>, id INT PRIMARY KEY);
        CREATE VIEW n AS SELECT COUNT(*) AS n FROM c""")
    rows = {"p": [(1,), (2,)], "c": [(1, 1), (2, None)], "d": [(1, [5], 1), (None, [], 2)]}
    for name, given in rows.items():
        db.insert(name, given)
    epoch = db.epoch
    for text in ("TRUNCATE TABLE p", "TRUNCATE TABLE p RESTRICT"):
        with pytest.raises(UserError, match="T014"):
            db.sql(text)
        assert db.epoch == epoch
    assert db.sql("TRUNCATE TABLE IF EXISTS p, nope CASCADE").changed == 6
    assert [db.read(name).rows() for name in ("p", "c", "d", "n")] == [[], [], [], [(0,)]]
    assert db.audit().ok


def test_if_exists_and_if_not_exists_change_nothing(db):
    before = everything(db)
    db.sql("TRUNCATE TABLE IF EXISTS nope")
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
