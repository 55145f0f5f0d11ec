"""Rows are changed by their keys from Python, and SQL runs inside a transaction of Python."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import everview as ev

TABLES = """
CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(3), twice INT GENERATED ALWAYS AS (a * 2));
CREATE TABLE k (x INT, y STRING, v DECIMAL(10, 2), PRIMARY KEY (x, y));
CREATE TABLE bag (i INT);
CREATE VIEW total AS SELECT SUM(twice) AS s FROM t
"""


def filled(db):
    db.sql(TABLES)
    db.insert("t", [(i, i, "x") for i in range(1, 5)])
    db.insert("k", [(1, "a", 1), (1, "b", 2)])
    return db


@pytest.fixture
def db(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        yield filled(db)


def test_rows_named_by_their_keys_get_other_values_and_views_follow(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        filled(db)
        epoch = db.update("t", keys=[1, 2], set={"A": 10})
        assert epoch == db.epoch
        db.update("t", {3: {"b": "zz"}, 4: {"b": None}})
        db.update("k", {(1, "a"): {"v": "7.50"}})
        db.update("k", pa.table({"y": ["b"], "v": ["9.25"], "x": [1]}))
        rows = [(1, 10, "x", 20), (2, 10, "x", 20), (3, 3, "zz", 6), (4, 4, None, 8)]
        assert sorted(db.read("t").rows()) == rows
        assert sorted(db.read("k").rows()) == [
            (1, "a", Decimal("7.50")),
            (1, "b", Decimal("9.25")),
        ]
        assert db.read("total").rows() == [(54,)]
        assert db.audit().ok


def test_a_row_changed_twice_in_a_transaction_has_the_last_values(db):
    with db.transaction() as tx:
        tx.insert("t", [(9, 9, "n")])
        tx.update("t", keys=[9], set={"a": 1, "b": "m"})
        tx.update("t", [{"ID": 9, "a": 2}])
        assert sorted(tx.read("t").rows())[-1] == (9, 2, "m", 4)
        tx.update("t", [])
        tx.update("t", keys=[], set={"a": 0})
    assert sorted(db.read("t").rows())[-1] == (9, 2, "m", 4)
    assert db.read("total").rows() == [(24,)]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_a_key_of_floats_is_found_by_either_zero_and_by_nan(tmp_path, kind):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql(f"CREATE TABLE f (x {kind} PRIMARY KEY, v INT, i INT, UNIQUE (i, x))")
        db.sql(f"CREATE TABLE c (i INT, x {kind}, n INT)")
        db.sql("ALTER TABLE c ADD FOREIGN KEY (i, x) REFERENCES f (i, x) ON DELETE CASCADE")
        db.insert("f", [(0.0, 1, 1), (float("nan"), 2, 1), (1.5, 3, 1)])
        db.insert("c", [(1, -0.0, 7)])
        db.update("f", {-0.0: {"v": 4}})
        db.upsert("f", [(0.0, 8, 1), (-0.0, 5, 1)])
        db.upsert("f", [(0.0, 6, 1)])
        assert db.read("c").rows() == [(1, 0.0, 7)]
        with pytest.raises(ev.UserError, match="T010"):
            db.update("f", [{"x": 0.0, "v": 1}, {"x": -0.0, "v": 2}])
        assert {row[1] for row in db.read("f").rows()} == {6, 2, 3}
        db.delete("f", keys=[-0.0, float("nan"), 0.0])
        assert db.read("f").rows() == [(1.5, 3, 1)]
        assert db.read("c").rows() == []


def test_a_row_without_its_key_is_changed_until_the_commit_refuses_it(db):
    for key, row in (((1, None), (1, None, 3)), ((None, "a"), (None, "a", 3))):
        tx = db.transaction()
        tx.insert("k", [row, (7, "c", 1)])
        tx.update("k", {key: {"v": 5}, (7, "c"): {"v": 6}, (1, "b"): {"v": 7}})
        changed = {each[:2]: each[2] for each in tx.read("k").rows()}
        assert changed == {key: 5, (7, "c"): 6, (1, "b"): 7, (1, "a"): 1}
        with pytest.raises(ev.UserError, match="T012"):
            tx.commit()
    assert len(db.read("k").rows()) == 2


def test_plain_columns_and_collections_are_updated(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE m (name STRING PRIMARY KEY, y INT, shows BAG<INT>)")
        db.insert("m", [("a", 1, [1, 2]), ("b", 2, [])])
        db.update("m", keys=["a"], set={"y": 7})
        assert sorted(db.read("m").rows()) == [("a", 7, [1, 2]), ("b", 2, [])]
        seen = db.epoch
        db.update("m", keys=["a"], set={"shows": [1, 3]})
        db.update("m", {"b": {"Shows": [1], "y": None}})
        assert sorted(db.read("m").rows()) == [("a", 7, [1, 3]), ("b", None, [1])]
        fed = sorted((row[1], row[-2]) for row in db.changes("m", after=seen, path="shows").rows())
        assert fed == [(1, 1), (2, -1), (3, 1)]
        assert db.audit().ok


def test_a_key_that_others_refer_to_stays_and_a_rule_that_is_broken_is_named(db):
    db.sql("CREATE TABLE n (t INT REFERENCES t ON DELETE CASCADE); INSERT INTO n VALUES (1)")
    db.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (a < 100)")
    with pytest.raises(ev.UserError, match="small is violated"):
        db.update("t", keys=[1], set={"a": 100})
    db.update("t", keys=[1], set={"a": 99})
    assert db.read("n").rows() == [(1,)]
    assert db.audit().ok


BAD_UPDATES = {
    "a key that no row has": ("t", {"keys": [1, 99], "set": {"a": 1}}, "T011", "'id': 99"),
    "the key itself": ("t", {"keys": [1], "set": {"id": 3}}, "T013", "id is the key"),
    "a generated column": ("t", {"keys": [1], "set": {"twice": 3}}, "T015", "twice"),
    "nothing to set": ("t", {"keys": [1], "set": {}}, "T013", "nothing to set"),
    "keys alone": ("t", {"keys": [1]}, "T013", "what to set"),
    "values alone": ("t", {"set": {"a": 1}}, "T013", "what to set"),
    "rows and keys": ("t", {"rows": [], "keys": [1], "set": {"a": 1}}, "T013", "what to set"),
    "no key in a row": ("t", {"rows": [{"a": 3}]}, "T001", "no id"),
    "half a key": ("k", {"rows": {1: {"v": 1}}}, "T001", "has 1 values"),
    "a key twice": ("t", {"rows": [{"id": 1, "a": 3}, {"id": 1, "a": 4}]}, "T010", "'id': 1"),
    "a long text": ("t", {"keys": [1], "set": {"b": "long"}}, "T001", "VARCHAR(3)"),
    "another type": ("t", {"keys": [1], "set": {"a": "one"}}, "T001", "not a INT"),
    "an unknown column": ("t", {"keys": [1], "set": {"z": 1}}, "T001", "unknown column: z"),
    "uneven rows": ("t", {"rows": [{"id": 1, "a": 1}, {"id": 2, "b": ""}]}, "T001", "row 2"),
    "tuples": ("t", {"rows": [(1, 2)]}, "T001", "does not name its columns"),
    "no primary key": ("bag", {"keys": [1], "set": {"i": 1}}, "T004", "no primary key"),
}


@pytest.mark.parametrize("case", BAD_UPDATES)
def test_what_cannot_be_updated_is_refused_and_nothing_has_changed(db, case):
    table, given, code, part = BAD_UPDATES[case]
    before = db.epoch
    with pytest.raises(ev.UserError) as refused:
        db.update(table, **given)
    assert (refused.value.code, db.epoch) == (code, before)
    assert part in refused.value.problem
    assert refused.value.remedy


def test_sql_inside_a_transaction_sees_it_takes_parameters_and_ends_with_it(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        filled(db)
        with db.transaction() as tx:
            assert tx.sql("INSERT INTO t (id, a, b) VALUES (?, ?, ?)", [9, 1, "n"]).changed == 1
            assert tx.sql("UPDATE t SET a = :a WHERE id = :id", {"a": 5, "id": 9}).changed == 1
            assert tx.sql("SELECT * FROM t WHERE id = ?", [9]).rows() == [(9, 5, "n", 10)]
            assert tx.sql("SELECT s FROM total").rows() == [(30,)]
            assert tx.sql("EXPLAIN CHANGES OF total").rows() == [(20, -1), (30, 1)]
            assert tx.sql("DELETE FROM t WHERE id IN (1, 2); SELECT COUNT(*) FROM t").rows()
            assert db.read("total").rows() == [(20,)]
        assert db.read("total").rows() == [(24,)]
        tx = db.transaction()
        assert tx.sql("TRUNCATE TABLE t").changed == 3
        tx.rollback()
        assert db.read("total").rows() == [(24,)]


def test_a_repeated_transaction_runs_no_sql_that_changes_anything(db):
    for attempt in range(2):
        with db.transaction(id=("writer", 1)) as tx:
            changed = tx.sql("DELETE FROM t WHERE id = 1").changed
        assert (tx.repeated, changed) == ((False, 1), (True, 0))[attempt]


NOT_INSIDE = ("BEGIN", "COMMIT", "ROLLBACK", "CREATE TABLE x (i INT)", "DROP VIEW total")


@pytest.mark.parametrize("text", NOT_INSIDE)
def test_what_does_not_stand_inside_a_transaction_is_refused_there(db, text):
    with db.transaction() as tx:
        with pytest.raises(ev.UserError) as refused:
            tx.sql(text)
        assert refused.value.code == "T008"
        assert refused.value.span is not None
        assert refused.value.remedy
        tx.sql("DELETE FROM t WHERE id = 1")
    assert db.read("total").rows() == [(18,)]
    with pytest.raises(ev.UserError, match="has ended"):
        tx.sql("SELECT 1")


def test_what_an_open_transaction_holds_up_says_how_it_ends(db):
    db.sql("BEGIN; DELETE FROM t")
    for call in (lambda: db.sql("BEGIN"), db.transaction, lambda: db.insert("bag", [(1,)])):
        with pytest.raises(ev.UserError) as refused:
            call()
        assert refused.value.code == "T008"
        assert "COMMIT" in refused.value.remedy
        assert "ROLLBACK" in refused.value.remedy
    db.sql("ROLLBACK")
    for end in ("COMMIT", "ROLLBACK"):
        with pytest.raises(ev.UserError, match=f"nothing to {end}") as refused:
            db.sql(end)
        assert "BEGIN" in refused.value.remedy
    with db.transaction() as tx:
        tx.delete("t", keys=[1])
        with pytest.raises(ev.UserError) as refused:
            db.sql("DELETE FROM t")
        assert "tx" in refused.value.remedy
