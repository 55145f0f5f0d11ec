"""Declarations that stand together in a text are one step: all or none, every state built once."""

from __future__ import annotations

from collections import Counter

import pytest

from everview.errors import UserError

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT);
CREATE TABLE u (k INT, name STRING);
"""
ROWS = [(1, 7, 10), (2, 7, 20), (3, 8, 30), (4, None, 40)]
VIEWS = """
CREATE VIEW joined AS SELECT t.k, u.name FROM t JOIN u ON t.k = u.k;
CREATE VIEW summed AS SELECT u.name, SUM(t.x) AS x FROM t JOIN u ON t.k = u.k GROUP BY u.name;
CREATE FUNCTION twice(a BIGINT) RETURNS BIGINT RETURN a + a;
CREATE VIEW doubled AS SELECT name, twice(x) AS x FROM summed;
CREATE TABLE later (k INT);
CREATE VIEW met AS SELECT k FROM later WHERE k IN (SELECT k FROM joined);
"""


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql(TABLES)
        opened.insert("t", ROWS)
        opened.insert("u", [(7, "a"), (8, "b"), (None, "c")])
        yield opened


def sorted_rows(db, name):
    return sorted(db.read(name).rows())


def states(db):
    return {each.name for each in db.status() if each.kind == "state"}


def test_neighbouring_declarations_make_one_epoch(db):
    before = db.epoch
    db.sql(VIEWS)
    assert db.epoch == before + 1
    assert sorted_rows(db, "doubled") == [("a", 60), ("b", 60)]
    db.insert("later", [(8,), (9,)])
    with db.transaction() as tx:
        tx.delete("t", [(3, 8, 30)])
        tx.insert("t", [(5, 7, 1)])
    assert sorted_rows(db, "doubled") == [("a", 62)]
    assert sorted_rows(db, "met") == []
    assert db.audit().ok


def test_one_after_the_other_or_together_is_the_same_in_the_end(db, open_db, tmp_path):
    with open_db(tmp_path / "other") as other:
        other.sql(TABLES)
        other.insert("t", ROWS)
        other.insert("u", [(7, "a"), (8, "b"), (None, "c")])
        for statement in VIEWS.split(";")[:-1]:
            other.sql(statement)
        db.sql(VIEWS)
        assert states(db) == states(other)
        for name in (*db.catalog.stored(),):
            relations = (each.store.latest().relations[name] for each in (db, other))
            assert len({relation.rows for relation in relations}) == 1, name
        assert Counter(db.read("joined").rows()) == Counter(other.read("joined").rows())


def test_no_state_is_built_twice_and_none_that_is_there_already(db):
    built = []
    build = db.engine.build

    def counted(name, *rest):
        built.append(name)
        return build(name, *rest)

    db.engine.build = counted
    db.sql(VIEWS)
    assert sorted(built) == sorted([*db.catalog.views, *states(db)])
    built.clear()
    before = states(db)
    db.sql("CREATE VIEW again AS SELECT name, SUM(x) AS x FROM t JOIN u ON t.k = u.k GROUP BY 1")
    assert sorted(built) == sorted(["again", *(states(db) - before)])


def test_what_is_dropped_together_goes_in_one_epoch_and_nothing_is_built_for_the_rest_of_it(db):
    db.sql(VIEWS)
    before, built = db.epoch, []
    db.engine.build = lambda name, *_: built.append(name)
    with pytest.raises(UserError, match="C002"):
        db.sql("DROP VIEW met; DROP VIEW doubled; DROP VIEW nope; DROP VIEW summed")
    assert (db.epoch, len(db.catalog.views)) == (before, 4)
    db.sql("""
        DROP VIEW met; DROP VIEW joined; DROP VIEW doubled; DROP VIEW summed;
        DROP FUNCTION twice; DROP TABLE later;
    """)
    assert db.epoch == before + 1
    assert not built
    assert not db.catalog.views
    assert not states(db)
    assert sorted(db.catalog.tables) == ["t", "u"]
    assert db.audit().ok


def test_who_asks_is_told_what_is_built(db):
    told = []
    db.handle.on_progress = told.append
    db.sql(VIEWS)
    wanted = len(db.catalog.views) + len(states(db))
    assert [each.partition(":")[0] for each in told if each] == [
        f"building {number} of {wanted}" for number in range(1, wanted + 1)
    ]
    assert told[-1] == ""


def test_of_declarations_that_stand_together_none_is_made_if_one_is_refused(db):
    before = db.epoch
    text = f"{VIEWS}\nCREATE VIEW wrong AS SELECT nope FROM t;\nCREATE VIEW last AS SELECT 1 AS a;"
    with pytest.raises(UserError) as refused:
        db.sql(text)
    assert refused.value.span.text == text
    assert text[refused.value.span.start : refused.value.span.stop] == "nope"
    assert db.epoch == before
    assert not db.catalog.views
    assert not db.catalog.functions
    db.sql(VIEWS)
    assert db.audit().ok


@pytest.mark.parametrize(
    ("faulty", "rest"),
    [
        ("CREATE VIEW shares AS SELECT id, 100 DIV (x - 30) AS y FROM t", "SELECT y FROM shares"),
        (
            "CREATE VIEW shares AS SELECT 100 DIV (x - 30) AS y, COUNT(*) AS n FROM t GROUP BY 1",
            "SELECT n FROM shares",
        ),
    ],
)
def test_rows_that_cannot_be_computed_are_told_of_the_view_that_asks_for_them(db, faulty, rest):
    before = db.epoch
    text = f"CREATE VIEW first AS SELECT k FROM t;\n{faulty};\nCREATE VIEW after AS {rest};"
    with pytest.raises(UserError) as refused:
        db.sql(text)
    span = refused.value.span
    assert refused.value.code == "E010"
    assert text[span.start : span.stop] in faulty
    assert db.epoch == before
    assert not db.catalog.views


def test_other_statements_stand_between_steps(db):
    before = db.epoch
    with pytest.raises(UserError):
        db.sql("""
            CREATE VIEW a AS SELECT k FROM t; CREATE VIEW b AS SELECT k FROM a;
            INSERT INTO t VALUES (9, 9, 9);
            CREATE TABLE copied AS SELECT k FROM b;
            DROP VIEW b;
            CREATE VIEW b AS SELECT x FROM t; CREATE VIEW c AS SELECT x + nope FROM b;
        """)
    assert db.epoch == before + 4
    assert sorted(db.catalog.views) == ["a"]
    assert len(db.read("copied").rows()) == 5


def test_a_view_can_be_replaced_beside_a_new_one_that_reads_it(db):
    db.sql("CREATE VIEW a AS SELECT k, x FROM t WHERE x > 10")
    before = db.epoch
    db.sql("""
        CREATE OR REPLACE VIEW a AS SELECT k, x FROM t WHERE x > 20;
        CREATE VIEW b AS SELECT k FROM a;
        CREATE OR REPLACE VIEW b AS SELECT x FROM a;
        CREATE VIEW IF NOT EXISTS a AS SELECT 1 AS one;
    """)
    assert db.epoch == before + 1
    assert sorted_rows(db, "b") == [(30,), (40,)]
    assert db.changes("a", after=before).rows() == [(7, 20, -1, before + 1)]
    assert db.audit().ok


def test_what_is_there_already_makes_no_epoch(db):
    before = db.epoch
    db.sql("CREATE TABLE IF NOT EXISTS t (a INT); CREATE TABLE IF NOT EXISTS u (b INT)")
    assert db.epoch == before


def test_rows_looked_up_by_one_column_are_stored_once_for_all_who_do(open_db, tmp_path):
    with open_db(tmp_path / "other") as db:
        db.sql("""
            CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, x INT);
            CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT);
            CREATE VIEW by_one AS SELECT u.id, t.x FROM u JOIN t ON u.a = t.a;
            CREATE VIEW by_two AS
                SELECT u.id, t.id AS other FROM u JOIN t ON u.a = t.a AND u.b = t.b;
        """)
        stored = [name for name in states(db) if name.startswith("t__by")]
        assert len(stored) == 1
        db.insert("t", [(1, 1, 1, 10), (2, 1, 2, 20), (3, 2, None, 30), (4, None, 1, 40)])
        db.insert("u", [(1, 1, 2), (2, 2, None), (3, None, 1)])
        db.delete("t", [(1, 1, 1, 10)])
        assert sorted_rows(db, "by_one") == [(1, 20), (2, 30)]
        assert sorted_rows(db, "by_two") == [(1, 2)]
        assert db.audit().ok
