"""Views that are given another query: what is rewritten, what is kept, what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev
from e2e.shapes import query, shapes_for
from e2e.test_views import World

SETUP = """
CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);
CREATE TABLE u (k INT, w INT);
CREATE VIEW large AS SELECT id, k, v FROM t WHERE v > 1;
CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM large GROUP BY k;
CREATE VIEW other AS SELECT k, COUNT(*) AS n FROM u GROUP BY k
"""


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql(SETUP)
        with opened.transaction() as tx:
            tx.insert("t", [(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, None, 4)])
            tx.insert("u", [(1, 1), (1, 2), (2, None)])
        yield opened


def rows(db, name):
    return Counter(db.read(name).rows())


def segments(db):
    return {
        name: tuple(segment.id for segment in relation.segments)
        for name, relation in db.store.latest().relations.items()
    }


def test_a_replaced_view_and_its_readers_equal_their_queries_in_one_epoch(db):
    before = db.epoch
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW large AS SELECT id, k, v FROM t WHERE v > 2")
    assert db.epoch == before + 1
    assert rows(db, "large") == Counter([(3, 2, 3), (4, None, 4)])
    assert rows(db, "sums") == Counter([(2, 3), (None, 4)])
    assert db.audit().ok
    with db.transaction() as tx:
        tx.delete("t", [(3, 2, 3)])
        tx.insert("t", [(5, 1, 7)])
    assert rows(db, "sums") == Counter([(1, 7), (None, 4)])
    assert db.audit().ok


def test_only_what_differs_is_written_and_those_who_follow_are_told(db):
    before, epoch = segments(db), db.epoch
    db.sql("CREATE OR REPLACE VIEW large AS SELECT id, k, v FROM t WHERE v > 2")
    after = segments(db)
    touched = {name for name in before if before[name] != after.get(name)}
    readers = {
        state.name for state in db.status() if state.kind == "state" and "large" in state.name
    }
    assert touched == {"large", "sums", *readers}
    assert after["large"][: len(before["large"])] == before["large"]
    told = db.changes("large", after=epoch).rows()
    assert told == [(2, 1, 2, -1, epoch + 1)]
    assert Counter(row[:-1] for row in db.changes("sums", after=epoch).rows()) == Counter(
        [(1, 2, -1)]
    )


def test_a_query_that_means_the_same_rewrites_nothing(db):
    before = segments(db)
    db.sql("CREATE OR REPLACE VIEW large AS  select id, k, v -- the same\nfrom t where v>1")
    assert segments(db) == before
    assert db.audit().ok


def test_a_view_with_other_columns_begins_its_feed_anew(db):
    db.sql("CREATE OR REPLACE VIEW other AS SELECT w, k FROM u")
    epoch = db.epoch
    assert rows(db, "other") == Counter([(1, 1), (2, 1), (None, 2)])
    assert {row[-1] for row in db.changes("other").rows()} == {epoch}
    db.delete("u", [(1, 2)])
    assert rows(db, "other") == Counter([(1, 1), (None, 2)])
    assert db.audit().ok


def test_columns_may_be_added_under_a_reader_that_does_not_read_them(db):
    db.sql("CREATE VIEW wide AS SELECT * FROM large")
    db.sql("CREATE OR REPLACE VIEW large AS SELECT id, v, k, v * 2 AS twice FROM t WHERE v > 1")
    assert rows(db, "wide") == Counter([(2, 2, 1, 4), (3, 3, 2, 6), (4, 4, None, 8)])
    assert rows(db, "sums") == Counter([(1, 2), (2, 3), (None, 4)])
    db.delete("t", [(2, 1, 2)])
    assert rows(db, "sums") == Counter([(2, 3), (None, 4)])
    assert db.audit().ok


@pytest.mark.parametrize(
    ("query", "code", "named"),
    [
        ("SELECT id, k FROM t", "C008", "sums"),
        ("SELECT id, k, CAST(v AS DOUBLE) AS v FROM t", "C008", "sums"),
        ("SELECT id, CAST(k AS STRING) AS k, v FROM t", "C008", "sums"),
        ("SELECT k, total AS v FROM sums", "C007", "sums"),
        ("SELECT id, k, v FROM large", "C007", "itself"),
        ("SELECT nope FROM t", "Q007", "nope"),
    ],
)
def test_a_replacement_that_a_reader_cannot_bear_is_refused_and_changes_nothing(
    db, query, code, named
):
    before, epoch = segments(db), db.epoch
    with pytest.raises(ev.UserError) as caught:
        db.sql(f"CREATE OR REPLACE VIEW large AS {query}")
    assert caught.value.code == code
    assert named in caught.value.problem
    assert (segments(db), db.epoch) == (before, epoch)
    db.insert("t", [(9, 9, 9)])
    assert db.audit().ok


def test_a_replaced_view_may_read_views_declared_after_it(db):
    db.sql("CREATE OR REPLACE VIEW large AS SELECT t.id, t.k, t.v FROM t JOIN other USING (k)")
    assert rows(db, "sums") == Counter([(1, 3), (2, 3)])
    db.insert("u", [(None, 1), (2, 5)])
    db.delete("u", [(1, 1)])
    db.delete("u", [(1, 2)])
    assert rows(db, "sums") == Counter([(2, 3)])
    assert db.audit().ok


def test_a_view_that_is_empty_may_be_given_other_columns(db):
    db.delete("u", db.read("u").rows())
    db.sql("CREATE VIEW over AS SELECT o.n FROM other o JOIN t ON t.k = o.k")
    db.insert("t", [(7, 1, 1)])
    db.sql("DROP VIEW over; CREATE OR REPLACE VIEW other AS SELECT w, k, 'x' AS s FROM u")
    db.sql("CREATE VIEW over AS SELECT o.s, t.id FROM other o JOIN t ON t.k = o.k")
    db.insert("u", [(2, 8)])
    assert rows(db, "over") == Counter([("x", 3)])
    assert db.audit().ok


def test_a_failure_while_replacing_leaves_the_epoch_as_it_was(db, monkeypatch):
    before, epoch, build = segments(db), db.epoch, db.engine.build

    def broken(name, *rest):
        if name == "sums":
            raise RuntimeError("lost power")
        return build(name, *rest)

    monkeypatch.setattr(db.engine, "build", broken)
    with pytest.raises(RuntimeError):
        db.sql("CREATE OR REPLACE VIEW large AS SELECT id, k, v FROM t WHERE v > 2")
    monkeypatch.undo()
    assert (segments(db), db.epoch) == (before, epoch)
    db.insert("t", [(5, 1, 7)])
    assert rows(db, "sums") == Counter([(1, 9), (2, 3), (None, 4)])
    assert db.audit().ok


def test_replacing_what_is_not_there_creates_it_and_a_table_is_never_replaced(db):
    db.sql("CREATE OR REPLACE VIEW fresh AS SELECT k FROM u")
    assert rows(db, "fresh") == Counter([(1,), (1,), (2,)])
    for text, code in (
        ("CREATE OR REPLACE VIEW t AS SELECT 1 AS x", "C005"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS u AS SELECT 1 AS x", "Q003"),
        ("CREATE OR REPLACE TABLE t (id INT)", "Q003"),
        ("CREATE TEMPORARY TABLE other_t (id INT)", "Q003"),
    ):
        with pytest.raises(ev.UserError) as caught:
            db.sql(text)
        assert caught.value.code == code


def test_if_exists_and_if_not_exists_ask_for_nothing_twice(db):
    epoch = db.epoch
    db.sql("CREATE VIEW IF NOT EXISTS Large AS SELECT 1 AS x; DROP VIEW IF EXISTS nothing")
    assert db.epoch == epoch
    db.sql("DROP MATERIALIZED VIEW IF EXISTS sums")
    assert "sums" not in db.catalog.views


def test_a_table_may_be_made_from_a_query(db):
    epoch = db.epoch
    db.sql("CREATE TABLE copy AS SELECT k, SUM(v) AS total, 'x' AS s FROM large GROUP BY k")
    assert db.epoch == epoch + 1
    assert rows(db, "copy") == Counter([(1, 2, "x"), (2, 3, "x"), (None, 4, "x")])
    assert [c.type for c in db.catalog.schema("copy")] == ["int", "bigint", "string"]
    db.sql("CREATE VIEW over AS SELECT COUNT(*) AS n FROM copy; INSERT INTO copy VALUES (1, 1, '')")
    assert rows(db, "over") == Counter([(4,)])
    db.sql("CREATE TABLE IF NOT EXISTS copy AS SELECT 1 AS x; DELETE FROM copy WHERE k = 1")
    assert rows(db, "copy") == Counter([(2, 3, "x"), (None, 4, "x")])
    db.sql("CREATE TABLE empty AS SELECT * FROM t WHERE FALSE")
    assert rows(db, "empty") == Counter()
    assert db.audit().ok


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE t AS SELECT 1 AS x", "C001"),
        ("CREATE TABLE bad AS SELECT NULL AS x", "Q014"),
        ("CREATE TABLE bad AS SELECT k AS a, v AS A FROM t", "Q011"),
        ("CREATE TABLE bad AS SELECT * FROM t, t AS b", "Q011"),
        ("CREATE TABLE bad (a INT PRIMARY KEY, b INT, CONSTRAINT c PRIMARY KEY (b))", "Q004"),
        ("CREATE TABLE bad (a INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES t (v))", "C009"),
        ("CREATE TABLE bad (a INT) AS SELECT 1 AS a", "Q004"),
    ],
)
def test_a_table_that_cannot_be_made_is_refused(db, text, code):
    epoch = db.epoch
    with pytest.raises(ev.UserError) as caught:
        db.sql(text)
    assert caught.value.code == code
    assert db.epoch == epoch


def test_a_primary_key_may_have_a_name(db):
    db.sql("CREATE TABLE named (a INT, b INT, CONSTRAINT pk PRIMARY KEY (A, b))")
    db.insert("named", [(1, 1), (1, 2)])
    with pytest.raises(ev.UserError) as caught:
        db.insert("named", [(1, 2)])
    assert caught.value.code == "T010"


def test_a_view_may_become_many_shapes_in_turn_under_a_reader(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, seed=11)
        world.transact(0)
        shapes = shapes_for("duckdb")
        db.sql(f"CREATE VIEW base AS {query(shapes[0], 't')}")
        db.sql("CREATE VIEW sums AS SELECT k, COUNT(*) AS n, MAX(s) AS s FROM base GROUP BY k")
        for number, shape in enumerate(shapes[1::3], 1):
            db.sql(f"CREATE OR REPLACE VIEW base AS {query(shape, 't')}")
            assert db.audit().ok, shape
            world.transact(number)
            assert db.audit().ok, shape


def test_a_view_that_is_named_and_not_needed_stays_before_the_one_that_names_it(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("""
            CREATE TABLE t (k INT);
            CREATE VIEW first AS SELECT k FROM t;
            CREATE VIEW second AS WITH q AS (SELECT k FROM first) SELECT k + 1 AS z FROM t;
            CREATE OR REPLACE VIEW first AS SELECT k, k AS more FROM t
        """)
        with pytest.raises(ev.UserError) as refused:
            db.sql("DROP VIEW first")
        assert refused.value.code == "C003"
    with open_db(tmp_path / "store") as db:
        db.insert("t", [(1,)])
        assert db.read("second").rows() == [(2,)]
        assert db.audit().ok


def test_a_name_that_with_defines_is_read_where_it_is_not_defined_yet(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT)")
        db.insert("t", [(1,)])
        query = "WITH t AS (SELECT k + 1 AS k FROM t) SELECT k FROM t"
        assert db.sql(query).rows() == [(2,)]
        db.sql(f"CREATE VIEW v AS {query}")
        assert db.audit().ok
